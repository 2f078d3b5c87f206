// Several secrets of an App, by name (docs/interface.md#secrets).
import { z } from "zod";
import { appName, secretName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { secretInput } from "../core/writeOnly.ts";
import { givingUp, isAsWritten, rememberedSecrets, secretClaim, secretFacts, secretsByName } from "./digests.ts";
import { takenOver, writeSecrets, type WrittenHere } from "./digests.ts";

const inputs = z.object({
  app: required(appName, "App that gets the secrets: the `id` of an App. Changing it replaces the AppSecrets.", {
    format: "reference",
  }),
  ...secretInput(
    "values",
    z.record(secretName, z.string()).optional(),
    "Values by name; a name is 1 to 255 letters, digits and `_`. Only these names are managed: one that is removed later is unset, and all others of the App are left alone.",
  ),
});

const outputs = z.object({
  version: required(
    z.int(),
    "Version of the App's secrets after the last change by this resource. A Machine with this as `minSecretsVersion` gets these values. It is 0 after an import, until the first change.",
  ),
  digests: required(
    z.record(z.string(), z.string()),
    "Digest of each value as it was written, by name. It is secret, because its digest reveals a value that is easy to guess.",
    { secret: true },
  ),
  updatedAt: optional(z.string(), "RFC 3339 time of the last change by this resource."),
});

type State = Partial<z.output<typeof inputs> & z.output<typeof outputs>>;
const byValues = ["values", "valuesVersion"] as const;

const writtenBy = ({ digests = {}, values = {}, valuesVersion, updatedAt }: State): WrittenHere => ({
  ...{ digests, values, isWriteOnly: valuesVersion !== undefined, updatedAt },
});

/** Names that a state owns: those it wrote, and those it would have written if others had not changed them. */
const ownedNames = (state: State): string[] => [
  ...new Set([...Object.keys(state.digests ?? {}), ...Object.keys(state.values ?? {})]),
];

export const appSecrets = defineResource({
  name: "AppSecrets",
  summary: "Secrets of an App, by name, written together.",
  description:
    "Every change is one request, whatever it sets and unsets. Machines get new values with their next update. The service never returns values. A refresh compares digests to find secrets that others changed or unset, and the next up writes exactly these again. An existing secret of a listed name is overwritten, with a warning. A name that is no longer listed is unset. It stays set, with a warning, if another resource of the program claims it or if something else has written it since. If this resource overwrote the value of the other one, that value is restored. An import knows only the App: the next up writes all values.",
  inputs,
  outputs,
  id: pathId("app"),
  unlisted: "each of its secrets is listed as a Secret",
  partOf: "App",
  replaceOn: ["app"],
  uniqueBy: ["app"],
  claims: ({ app, values = {}, valuesWo = values }) =>
    Object.fromEntries(
      Object.entries(valuesWo).flatMap(([name, value]) => Object.entries(secretClaim(app, name, value))),
    ),
  dependsOn: { version: byValues, digests: byValues, updatedAt: byValues },

  observe({ id, inputs, state = {}, ...call }) {
    const { values = {}, valuesWo = values } = inputs ?? {};
    return secretFacts(call, id.app, new Set([...ownedNames(state), ...Object.keys(valuesWo)]));
  },
  remember: ({ digests = {} }, digest) => rememberedSecrets(digests, digest),

  async create({ inputs: { app, values = {}, valuesWo = values }, api, warn }) {
    const existing = await secretsByName(api, app);
    const adopted = Object.keys(valuesWo).filter((name) => existing.has(name));
    if (adopted.length > 0) warn(takenOver(app, adopted));
    return { app, ...(await writeSecrets(api, app, valuesWo)) };
  },

  async read({ id, state, api }) {
    const live = await secretsByName(api, id.app);
    const { digests = {}, values, version = 0, updatedAt } = state ?? {};
    const isKept = (name: string): boolean => isAsWritten(digests[name], live.get(name));
    return {
      app: id.app,
      values: values && Object.fromEntries(Object.entries(values).filter(([name]) => isKept(name))),
      // The missing version, which the program gives, shows as changed.
      valuesVersion: Object.keys(digests).every(isKept) ? undefined : null,
      ...{ version, digests, updatedAt },
    };
  },

  async update({ id, inputs: { values = {}, valuesWo }, old, api, warn, otherClaimant }) {
    const wanted = valuesWo ?? values;
    const owned = ownedNames(old);
    const added = Object.keys(wanted).filter((name) => !owned.includes(name));
    const dropped = owned.filter((name) => !Object.hasOwn(wanted, name));
    const live = added.length + dropped.length > 0 ? await secretsByName(api, id.app) : new Map<string, never>();
    const adopted = added.filter((name) => live.has(name));
    if (adopted.length > 0) warn(takenOver(id.app, adopted));
    const given = givingUp({ app: id.app, names: dropped, live, written: writtenBy(old) }, { warn, otherClaimant });
    // Unchanged secrets are left out of the request: they would only get a newer time of change. Write-only ones are unknown.
    const changed = Object.entries(wanted).filter(([name, value]) => valuesWo || old.values?.[name] !== value);
    const { version, updatedAt } = old;
    const written =
      changed.length + Object.keys(given).length > 0
        ? await writeSecrets(api, id.app, { ...Object.fromEntries(changed), ...given })
        : { version, updatedAt, digests: {} };
    const digests = Object.entries({ ...old.digests, ...written.digests });
    return {
      version: written.version,
      updatedAt: written.updatedAt ?? updatedAt,
      digests: Object.fromEntries(digests.filter(([name]) => Object.hasOwn(wanted, name))),
    };
  },

  async delete({ id, state, api, ...call }) {
    const names = ownedNames(state);
    if (names.length === 0) return;
    const live = await secretsByName(api, id.app);
    const given = givingUp({ app: id.app, names, live, written: writtenBy(state) }, call);
    if (Object.keys(given).length > 0) await writeSecrets(api, id.app, given);
  },
});
