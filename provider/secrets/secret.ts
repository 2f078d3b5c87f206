// One secret of an App (docs/interface.md#secrets).
import { z } from "zod";
import { appName, secretName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { orUndefined } from "../client/existence.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { secretInput, valueToSend } from "../core/writeOnly.ts";
import { claimTo, givingUp, isAsWritten, secretClaim, shownDigest, takenOver, type ShownSecret } from "./digests.ts";

const inputs = z.object({
  app: required(appName, "App that gets the secret: the `id` of an App. Changing it replaces the secret.", {
    format: "reference",
  }),
  name: required(secretName, "Name, 1 to 255 letters, digits and `_`. Changing it replaces the secret."),
  ...secretInput("value", z.string(), "The value; it may be empty."),
});

const outputs = z.object({
  digest: optional(z.string(), "Digest of the value. It is secret, because it reveals a value that is easy to guess.", {
    secret: true,
  }),
  version: required(
    z.int(),
    "Version of the App's secrets after the last change by this resource. A Machine with this as `minSecretsVersion` gets this value. It is 0 after an import, until the first change.",
  ),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  updatedAt: optional(z.string(), "RFC 3339 time of the last change by this resource."),
});

const toLive = (app: string, { name, digest, createdAt, updatedAt }: ShownSecret) => ({
  ...{ app, name, digest, createdAt, updatedAt },
});

const byValue = ["value", "valueVersion"] as const;

async function set(api: Api, app: string, name: string, value: string) {
  const answer = await api.secrets.set({ appName: app, secretName: name, body: { value } });
  return { ...toLive(app, answer), version: answer.version ?? 0 };
}

export const secret = defineResource({
  name: "Secret",
  summary: "One secret of an App.",
  description:
    "For several secrets of one App, use AppSecrets: it writes them in one request. Machines get a new value with their next update. The service never returns the value. A refresh compares digests to find out whether others changed it, and the next up writes it again. An existing secret of the name is overwritten, with a warning. Deleting this resource unsets the secret. It stays set, with a warning, if another resource of the program claims it or if something else has written it since. If this resource overwrote the value of the other one, that value is restored.",
  inputs,
  outputs,
  id: pathId("app", "name"),
  list: {
    objects: async ({ api }, appName) =>
      (await api.secrets.list({ appName })).secrets.map(({ name, createdAt }) => ({
        parts: { app: appName, name },
        createdAt,
      })),
    shownBy: "secrets.get",
    deletedBy: "secrets.delete",
  },
  replaceOn: ["app", "name"],
  uniqueBy: ["app", "name"],
  claims: ({ app, name, value, valueWo = value }) => secretClaim(app, name, valueWo),
  dependsOn: { digest: byValue, version: byValue, updatedAt: byValue },

  async observe({ id: { app, name }, api, claimed }) {
    const live = await orUndefined(() => api.secrets.get({ appName: app, secretName: name }));
    const digest = claimed(claimTo(app, name), shownDigest(live));
    return digest === "none" ? undefined : { digest };
  },
  remember: ({ digest: written = "" }, digest) => ({ digest: digest(written) }),

  async create({ inputs: { app, name, value, valueWo }, api, warn }) {
    const key = { appName: app, secretName: name };
    if (await orUndefined(() => api.secrets.get(key))) warn(takenOver(app, [name]));
    return set(api, app, name, valueToSend("value", valueWo, value));
  },

  async read({ id, state, api }) {
    const live = await api.secrets.get({ appName: id.app, secretName: id.name });
    const changed = state !== undefined && !isAsWritten(state.digest, live);
    const { version = 0, updatedAt = live.updatedAt } = state ?? {};
    // The missing one of them, which the program gives, shows as changed.
    const written = changed ? null : undefined;
    return { ...toLive(id.app, live), version, updatedAt, value: written, valueVersion: written };
  },

  async update({ id, inputs: { value, valueWo }, api }) {
    return set(api, id.app, id.name, valueToSend("value", valueWo, value));
  },

  async delete({ id: { app, name }, state, api, ...call }) {
    const key = { appName: app, secretName: name };
    const live = new Map([[name, await api.secrets.get(key)]]);
    const { digest, value, valueVersion, updatedAt } = state;
    const isWriteOnly = valueVersion !== undefined;
    const written = { digests: { [name]: digest }, values: { [name]: value }, isWriteOnly, updatedAt };
    const writes = givingUp({ app, names: [name], live, written }, call);
    if (writes[name] === null) await api.secrets.delete(key);
    else if (writes[name] !== undefined) await set(api, app, name, writes[name]);
  },
});
