// Several secrets of an App, by name (docs/interface.md#secrets).
import { z } from "zod";
import { appName, secretName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { givingUp, isAsWritten, secretClaim, secretsByName, takenOver, writeSecrets } from "./digests.ts";

const inputs = z.object({
  app: required(appName, "App that gets the secrets: the `id` of an App. Changing it replaces the AppSecrets.", {
    format: "reference",
  }),
  values: z.record(secretName, z.string()).default({}).meta({
    secret: true,
    description:
      "Values by name; a name is 1 to 255 letters, digits and `_`. Only these names are managed: one that is left out later is unset, all others of the App stay as they are.",
  }),
});

const outputs = z.object({
  version: required(
    z.int(),
    "Version of the App's secrets after the last change by this resource. A Machine with it as `minSecretsVersion` gets these values. 0 after an import, until the first change.",
  ),
  digests: required(
    z.record(z.string(), z.string()),
    "Digest of each value as it was written, by name. Secret: a value that is easy to guess could be found by its digest.",
    { secret: true },
  ),
  updatedAt: optional(z.string(), "RFC 3339 time of the last change by this resource."),
});

/** Names that a state owns: those it wrote, and those it would have written if others had not changed them. */
const ownedNames = (state: { values?: object | undefined; digests?: object | undefined }): string[] => [
  ...new Set([...Object.keys(state.digests ?? {}), ...Object.keys(state.values ?? {})]),
];

export const appSecrets = defineResource({
  name: "AppSecrets",
  summary: "Secrets of an App, by name, written together.",
  description:
    "Every change is one request, whatever it sets and unsets. Machines get new values with their next update. " +
    "Values never come back from the service. A refresh compares digests to find secrets that others changed or unset, and the next up writes exactly these again. " +
    "A name that exists already is overwritten, with a warning. A name that this resource no longer lists stays set, with a warning, if another resource of the program claims it or something else has written it since. A claimant whose value this one overwrote gets it back. An import knows the App alone: the next up writes all values.",
  inputs,
  outputs,
  id: pathId("app"),
  unlisted: "each of its secrets is listed as a Secret",
  partOf: "App",
  replaceOn: ["app"],
  uniqueBy: ["app"],
  claims: ({ app, values = {} }) =>
    Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) => Object.entries(secretClaim(app, name, value))),
    ),
  dependsOn: { version: ["values"], digests: ["values"], updatedAt: ["values"] },

  async create({ inputs: { app, values }, api, warn }) {
    const existing = await secretsByName(api, app);
    const adopted = Object.keys(values).filter((name) => existing.has(name));
    if (adopted.length > 0) warn(takenOver(app, adopted));
    return { app, ...(await writeSecrets(api, app, values)) };
  },

  async read({ id, state, api }) {
    const live = await secretsByName(api, id.app);
    const digests = state?.digests ?? {};
    const kept = Object.entries(state?.values ?? {}).filter(([name]) => isAsWritten(digests[name], live.get(name)));
    const { version = 0, updatedAt } = state ?? {};
    return { app: id.app, values: Object.fromEntries(kept), version, digests, updatedAt };
  },

  async update({ id, inputs: { values }, old, api, warn, otherClaimant }) {
    const owned = ownedNames(old);
    const added = Object.keys(values).filter((name) => !owned.includes(name));
    const dropped = owned.filter((name) => !Object.hasOwn(values, name));
    const live = added.length + dropped.length > 0 ? await secretsByName(api, id.app) : new Map<string, never>();
    const adopted = added.filter((name) => live.has(name));
    if (adopted.length > 0) warn(takenOver(id.app, adopted));
    const given = givingUp({ app: id.app, names: dropped, live, written: old }, { warn, otherClaimant });
    // Unchanged secrets are left out of the request: they would only get a newer time of change.
    const changed = Object.entries(values).filter(([name, value]) => old.values[name] !== value);
    const { version, updatedAt } = old;
    const written =
      changed.length + Object.keys(given).length > 0
        ? await writeSecrets(api, id.app, { ...Object.fromEntries(changed), ...given })
        : { version, updatedAt, digests: {} };
    const digests = Object.entries({ ...old.digests, ...written.digests });
    return {
      version: written.version,
      updatedAt: written.updatedAt ?? updatedAt,
      digests: Object.fromEntries(digests.filter(([name]) => Object.hasOwn(values, name))),
    };
  },

  async delete({ id, state, api, ...call }) {
    const names = ownedNames(state);
    if (names.length === 0) return;
    const live = await secretsByName(api, id.app);
    const { digests = {}, values = {}, updatedAt } = state;
    const given = givingUp({ app: id.app, names, live, written: { digests, values, updatedAt } }, call);
    if (Object.keys(given).length > 0) await writeSecrets(api, id.app, given);
  },
});
