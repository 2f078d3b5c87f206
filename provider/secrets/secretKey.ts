// Secret keys of an App: keys that never leave the service and are used by name (docs/interface.md#secret-keys).
import { z } from "zod";
import { appName, secretName } from "../../api/names.ts";
import { bytes, optional, required } from "../../api/schema.ts";
import { keyLengthProblem, secretKeyType } from "../../api/secretKeys.ts";
import type { AnswerOf } from "../client/api.ts";
import { orUndefined } from "../client/existence.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { ApiError, MachinesError } from "../client/errors.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, defineResource } from "../core/resource.ts";

const inputs = z.object({
  app: required(appName, "App that gets the key: the `id` of an App. Changing it replaces the key.", {
    format: "reference",
  }),
  name: required(secretName, "Name, 1 to 255 letters, digits and `_`. Changing it replaces the key."),
  type: required(
    secretKeyType,
    "Kind of key. `nacl_auth`, `hs256`, `hs384`, `hs512`, `es256` and `nacl_sign` sign; `nacl_secretbox`, `xaes256gcm` and `nacl_box` encrypt. Changing it replaces the key.",
  ),
  value: optional(
    bytes(),
    "The key, base64: 32 bytes; for `hs256`, `hs384` and `hs512` at least 32, 48 and 64, at most 1024. When left out, the service generates it, and no one else ever knows it. Leave it out after an import too: the service returns no value, so a value that is added later counts as another key. Changing it replaces the key.",
    { secret: true },
  ),
  allowDataLoss: behaviour(z.boolean().default(false)).describe(
    "Allows a change that replaces the key. All data that was encrypted or signed with it becomes unusable.",
  ),
});

const outputs = z.object({
  publicKey: optional(bytes(), "Public half, base64, of the kinds that have one: `es256`, `nacl_box`, `nacl_sign`."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  updatedAt: required(z.string(), "RFC 3339 time at which the key's value was set."),
});

type Live = AnswerOf<"secretKeys", "get">;

const toLive = (app: string, { name, type, publicKey, createdAt, updatedAt = "" }: Live) => ({
  ...{ app, name, type, publicKey, createdAt, updatedAt },
});

export const secretKey = defineResource({
  name: "SecretKey",
  summary: "A key of an App that never leaves the service and is used by name.",
  description:
    "An existing key of the name is never overwritten: import it. An import knows everything except the value: leave `value` out of the program, and the key stays unchanged. If others replace the key, the next refresh notices it, and a `value` in the program shows as changed. Restoring that value destroys the other key, so it needs `allowDataLoss`.",
  inputs,
  outputs,
  id: pathId("app", "name"),
  list: {
    objects: async ({ api }, appName) =>
      (await api.secretKeys.list({ appName })).secretKeys.map(({ name, createdAt }) => ({
        parts: { app: appName, name },
        createdAt,
      })),
    shownBy: "secretKeys.get",
    deletedBy: "secretKeys.delete",
  },
  namedAs: "key",
  replaceOn: ["app", "name", "type", "value"],
  uniqueBy: ["app", "name"],
  losesData: "everything encrypted or signed with it",
  validate: ({ type, value }) => {
    if (type === undefined || value === undefined) return [];
    const problem = keyLengthProblem(type, Buffer.from(value, "base64").length);
    return problem === undefined ? [] : [{ path: ["value"], message: problem, about: ["type", "value"] }];
  },
  refuse: (old, next) =>
    old.value === undefined && next.value !== undefined && isSameKey(old, next) && !next.allowDataLoss
      ? { path: ["value"], message: unknownValue }
      : undefined,
  observed: ["updatedAt", "publicKey"],

  async create({ inputs: { app, name, type, value }, owner, ...call }) {
    const { api } = call;
    const key = { appName: app, secretName: name };
    const send = () =>
      value === undefined
        ? api.secretKeys.generate({ ...key, body: { type } })
        : api.secretKeys.set({ ...key, body: { type, value } });
    const created = await createExactlyOnce<Live, Live>(call, {
      what: `secret key ${name} of App ${app}`,
      owner,
      place: `secret keys of App ${app}`,
      name,
      unique: true,
      list: async () => [await orUndefined(() => api.secretKeys.get(key))].filter((found) => found !== undefined),
      keyOf: () => name,
      createdAt: ({ createdAt, updatedAt }) => updatedAt ?? createdAt,
      send,
      pick: ([found]) => (found?.type === type ? found : undefined),
      conflictWith: () => new MachinesError("refused", isThere(app, name)),
      // A key that the service has generated may be in use. One that a program has given is not kept if the program gives none now.
      fixedInputs: { value: value === undefined ? undefined : "given" },
      // The interrupted run may have set another value.
      adopt: (found) => (value === undefined ? Promise.resolve(found) : send()),
      isUncertain: mayHaveWorked,
    });
    return toLive(app, created);
  },

  async read({ id, state, api }) {
    const live = toLive(id.app, await api.secretKeys.get({ appName: id.app, secretName: id.name }));
    const isAnother =
      state !== undefined &&
      (["updatedAt", "publicKey"] as const).some((part) => state[part] !== undefined && state[part] !== live[part]);
    return { ...live, value: isAnother ? null : undefined };
  },

  // Every input that is sent replaces: there is nothing to send.
  async update({ id, api }) {
    return toLive(id.app, await api.secretKeys.get({ appName: id.app, secretName: id.name }));
  },

  async delete({ id, api }) {
    await api.secretKeys.delete({ appName: id.app, secretName: id.name });
  },
});

/** Setting a value is repeatable: any failure except a refusal leaves open whether it was set. */
const mayHaveWorked = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 408 || error.status >= 500;

type Named = Partial<Record<"name" | "type", string | undefined>>;

const isSameKey = (old: Named, next: Named): boolean => old.name === next.name && old.type === next.type;

const unknownValue =
  "it is unknown whether the existing key has this value: it was imported, generated by the service, or created by others, and the service shows no value. " +
  "Leave `value` out, and the key stays as it is; allowDataLoss: true replaces it and destroys everything encrypted or signed with it";

const isThere = (app: string, name: string): string =>
  `App ${app} has a secret key ${name} already; creating it here would destroy that key and everything encrypted or signed with it. ` +
  `Take it over with \`pulumi import machines:index:SecretKey <name> ${app}/${name}\` and leave \`value\` out, or choose another name.`;
