// Several secrets of an App, by name (spec 4.5, bodies 8).
import { z } from "zod";
import { appName, secretName } from "../../api/names.ts";
import { required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { isAsWritten, secretsByName, takenOver, writeSecrets } from "./secretDigests.ts";

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
    "Version of the App's secrets after the last change made here. A Machine whose `minSecretsVersion` it is gets these values. 0 after an import, until the first change.",
  ),
  digests: required(
    z.record(z.string(), z.string()),
    "Digest of each value as it was written, by name. Secret: a value that is easy to guess could be found by its digest.",
    { secret: true },
  ),
});

/** Names a state owns: what it wrote, and what it would have written had nobody changed it. */
const ownedNames = (state: { values?: object | undefined; digests?: object | undefined }): string[] => [
  ...new Set([...Object.keys(state.digests ?? {}), ...Object.keys(state.values ?? {})]),
];

export const appSecrets = defineResource({
  name: "AppSecrets",
  summary: "Secrets of an App, by name, written together.",
  description:
    "Every change is one request, whatever it sets and unsets. Machines get new values with their next update. " +
    "Values never come back from the service: a refresh tells by their digests which were changed or unset by others, and the next up writes exactly these again. " +
    "A name that exists already is overwritten, with a warning; one that another resource of the same up has set stays set when this one no longer lists it. An import knows the App alone: the next up writes all values.",
  inputs,
  outputs,
  id: pathId("app"),
  replaceOn: ["app"],
  uniqueBy: ["app"],
  moves: { version: ["values"], digests: ["values"] },

  async create({ inputs: { app, values }, api, warn }) {
    const there = await secretsByName(api, app);
    const taken = Object.keys(values).filter((name) => there.has(name));
    if (taken.length > 0) warn(takenOver(app, taken));
    return { app, ...(await writeSecrets({ api, warn }, app, { set: values, since: 0 })) };
  },

  async read({ id, state, api }) {
    const live = await secretsByName(api, id.app);
    const digests = state?.digests ?? {};
    const kept = Object.entries(state?.values ?? {}).filter(([name]) => isAsWritten(digests[name], live.get(name)));
    return { app: id.app, values: Object.fromEntries(kept), version: state?.version ?? 0, digests };
  },

  async update({ id, inputs: { values }, old, api, warn }) {
    const owned = ownedNames(old);
    const added = Object.keys(values).filter((name) => !owned.includes(name));
    const there = added.length > 0 ? await secretsByName(api, id.app) : new Map<string, unknown>();
    const taken = added.filter((name) => there.has(name));
    if (taken.length > 0) warn(takenOver(id.app, taken));
    const dropped = owned.filter((name) => !Object.hasOwn(values, name));
    // What stays as it is stays out of the request: it would only get a newer time of change.
    const changed = Object.entries(values).filter(([name, value]) => old.values[name] !== value);
    const written = await writeSecrets({ api, warn }, id.app, {
      set: Object.fromEntries(changed),
      unset: dropped,
      since: old.version,
    });
    const kept = Object.entries(old.digests).filter(([name]) => Object.hasOwn(values, name));
    return { version: written.version, digests: { ...Object.fromEntries(kept), ...written.digests } };
  },

  async delete({ id, state, api, warn }) {
    const owned = ownedNames(state);
    if (owned.length > 0) await writeSecrets({ api, warn }, id.app, { unset: owned, since: state.version ?? 0 });
  },
});
