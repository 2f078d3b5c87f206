// Metadata keys on a Machine that somebody else manages (spec 4.2, bodies 5.2).
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { required } from "../../api/schema.ts";
import { growingPause } from "../client/clock.ts";
import { findMachine } from "../client/inventory.ts";
import { versionOf, type Machine, type MachineKey } from "../client/wait.ts";
import { ApiError, MachinesError } from "../core/errors.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, defineResource, type Call, type Problem } from "../core/resource.ts";
import { metadataProblems } from "./machineProblems.ts";
import { isForeign } from "./machineSettings.ts";

type Values = Readonly<Record<string, string>>;

const inputs = z.object({
  app: required(appName, "App of the Machine: the `id` of an App. Changing it replaces the MachineMetadata.", {
    format: "reference",
  }),
  machine: required(
    z.string().min(1),
    "The Machine: the `id` of a Machine. Changing it replaces the MachineMetadata.",
    {
      format: "reference",
    },
  ),
  values: z
    .record(z.string(), z.string())
    .describe(
      "Values by key, none of them empty. Keys that begin with `pulumi-` or `fly_` are not to be set. Keys that are not named here are left alone.",
    ),
  adopt: behaviour(z.boolean().default(false)).describe(
    "Whether a key that the Machine has already, with another value, is taken over; it is refused otherwise.",
  ),
});

const outputs = z.object({ machineId: required(z.string(), "Identifier of the Machine within its App.") });

/** State from a Machine's metadata; `owned` are the keys that are ours. */
const toLive = (app: string, machine: string, metadata: Values, owned: readonly string[]) => ({
  app,
  machine,
  machineId: machine,
  values: Object.fromEntries(Object.entries(metadata).filter(([key]) => owned.includes(key))),
});

export const machineMetadata = defineResource({
  name: "MachineMetadata",
  summary: "Metadata keys on a Machine that is managed elsewhere.",
  description:
    "It owns its keys alone, and makes no new version of the Machine. A Machine resource leaves the keys alone that it does not set itself.",
  inputs,
  outputs,
  id: pathId("app", "machineId"),
  takesOver: true,
  replaceOn: ["app", "machine"],
  uniqueBy: ["app", "machine"],
  validate: ({ values = {} }) => [...metadataProblems(values, ["values"]), ...platformKeys(values)],

  async create({ inputs: { app, machine, values, adopt }, ...call }) {
    await write(call, { appName: app, machineId: machine }, { values, owned: [], adopt });
    return toLive(app, machine, values, Object.keys(values));
  },

  async read({ id, state, api }) {
    const live = await findMachine(api, id.app, id.machineId);
    if (live.state === "destroyed") return undefined;
    // While its host is not reachable a Machine shows no configuration.
    const metadata = live.config
      ? (live.config.metadata ?? {})
      : await api.machines.getMetadata({ appName: id.app, machineId: id.machineId });
    const owned = state?.values ?? Object.fromEntries(Object.entries(metadata).filter(([key]) => !isForeign(key)));
    return toLive(id.app, id.machineId, metadata, Object.keys(owned));
  },

  async update({ id, inputs: { values, adopt }, old, ...call }) {
    const key = { appName: id.app, machineId: id.machineId };
    await write(call, key, { values, owned: Object.keys(old.values), adopt });
    return toLive(id.app, id.machineId, values, Object.keys(values));
  },

  async delete({ id, state, api }) {
    const metadata = Object.fromEntries(Object.keys(state.values ?? {}).map((key) => [key, null]));
    if (Object.keys(metadata).length === 0) return;
    await api.machines.patchMetadata({ appName: id.app, machineId: id.machineId, body: { metadata } });
  },
});

const platformKeys = (values: Values): Problem[] =>
  Object.keys(values)
    .filter((key) => key.startsWith("fly_"))
    .map((key) => ({ path: ["values", key], message: 'keys that begin with "fly_" are the platform\'s own' }));

interface Wanted {
  readonly values: Values;
  /** Keys that were ours before. */
  readonly owned: readonly string[];
  readonly adopt: boolean;
}

/** Sets the values and removes keys that are ours no longer, for the very version that was looked at; else it looks again. */
async function write({ api }: Pick<Call, "api">, key: MachineKey, wanted: Wanted): Promise<void> {
  const { values, owned } = wanted;
  const removed = owned.filter((name) => !Object.hasOwn(values, name));
  const metadata = { ...Object.fromEntries(removed.map((name) => [name, null])), ...values };
  const pause = growingPause(100, 2000);
  for (;;) {
    const live = await api.machines.get(key);
    requireOurs(key, live, wanted);
    try {
      return await api.machines.patchMetadata({ ...key, body: { metadata, machineVersion: versionOf(live) } });
    } catch (error) {
      // There is another version, and with it there may be other values.
      if (!(error instanceof ApiError) || error.status !== 412) throw error;
    }
    await api.clock.sleep(pause(), api.deadline.signal);
  }
}

/** A value that somebody else gave a key is not ours to replace, unless the program says so. */
function requireOurs({ appName: app, machineId: id }: MachineKey, live: Machine, wanted: Wanted): void {
  if (live.state === "destroyed") throw new MachinesError("api", `Machine ${app}/${id} is destroyed: nothing was set`);
  if (wanted.adopt) return;
  const there = live.config?.metadata ?? {};
  const taken = Object.entries(wanted.values)
    .filter(([key, value]) => !wanted.owned.includes(key) && Object.hasOwn(there, key) && there[key] !== value)
    .map(([key]) => JSON.stringify(key));
  if (taken.length > 0)
    throw new MachinesError(
      "refused",
      `Machine ${app}/${id} has ${taken.join(", ")} already, with another value. Nothing was changed; set adopt: true to take over what is there, or use other keys.`,
    );
}
