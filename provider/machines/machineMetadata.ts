// Metadata keys on a Machine that is managed elsewhere (docs/interface.md#metadata).
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { required } from "../../api/schema.ts";
import { Pending, poll } from "../client/poll.ts";
import { findMachine } from "../client/listCache.ts";
import { versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { ApiError, MachinesError } from "../client/errors.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, defineResource, type Call, type GivingUp, type Problem } from "../core/resource.ts";
import { bareId } from "../../api/names.ts";
import { metadataProblems } from "./validation.ts";
import { isForeign, movedKeys } from "./settings.ts";

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
      "Values by key; a value must not be empty. Keys that begin with `pulumi-` or `fly_` are refused. Keys that are not listed here are left alone.",
    ),
  adopt: behaviour(z.boolean().default(false)).describe(
    "Whether to overwrite a key that the Machine already has with another value. Otherwise such a key is refused.",
  ),
});

const outputs = z.object({ machineId: required(z.string(), "Identifier of the Machine within its App.") });

/** State from a Machine's metadata; `owned` are our keys. */
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
    "It manages only its keys, and creates no new version of the Machine. A Machine resource leaves keys alone that it does not set itself.",
  inputs,
  outputs,
  id: pathId("app", "machineId"),
  unlisted: "it is a part of its Machine",
  partOf: "Machine",
  replaceOn: ["app", "machine"],
  uniqueBy: ["app", "machine"],
  claims: ({ app = "", machine = "", values = {} }) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [keyClaim(app, machine, key), value])),
  marksOwner: true,
  validate: ({ values = {} }) => [...metadataProblems(values, ["values"]), ...platformKeys(values)],
  observed: ["values"],

  async create({ inputs: { app, machine, values, adopt }, owner, ...call }) {
    await write(call, { appName: app, machineId: machine }, { values, owned: {}, adopt, owner, formerOwners: [] });
    return toLive(app, machine, values, Object.keys(values));
  },

  async read({ id, state, api }) {
    const live = await findMachine(api, id.app, id.machineId);
    if (live.state === "destroyed") return undefined;
    // While its host is unreachable, a Machine has no configuration in its answer.
    const metadata = live.config
      ? (live.config.metadata ?? {})
      : await api.machines.getMetadata({ appName: id.app, machineId: id.machineId });
    const owned = state?.values ?? Object.fromEntries(Object.entries(metadata).filter(([key]) => !isForeign(key)));
    return toLive(id.app, id.machineId, metadata, Object.keys(owned));
  },

  async update({ id, inputs: { values, adopt }, old, owner, formerOwners, ...call }) {
    const key = { appName: id.app, machineId: id.machineId };
    await write(call, key, { values, owned: old.values, adopt, owner, formerOwners });
    return toLive(id.app, id.machineId, values, Object.keys(values));
  },

  async delete({ id, state, owner, formerOwners, ...call }) {
    const key = { appName: id.app, machineId: id.machineId };
    const owned = state.values ?? {};
    if (Object.keys(owned).length > 0) await write(call, key, { values: {}, owned, adopt: true, owner, formerOwners });
  },
});

const platformKeys = (values: Values): Problem[] =>
  Object.keys(values)
    .filter((key) => key.startsWith("fly_"))
    .map((key) => ({ path: ["values", key], message: 'keys that begin with "fly_" are the platform\'s own' }));

/** The claim on a metadata key (R12). */
const keyClaim = (app: string, machine: string, key: string): string =>
  `metadata ${bareId(app)}/${bareId(machine)}/${key}`;

/**
 * Beside a key that a resource took over, this one records its new owner: the state of the resource that had it before
 * cannot
 * (R12).
 */
const holderKey = (key: string): string => `pulumi-holder-${key}`;

interface WantedKeys {
  readonly values: Values;
  /** Our previous keys, with the values we gave them. */
  readonly owned: Values;
  readonly adopt: boolean;
  readonly owner: string | undefined;
  /** Owners that this resource had under other names, or in other stacks. */
  readonly formerOwners: readonly string[];
}

/**
 * Sets the values and removes keys that are no longer ours, for exactly the version that was read; otherwise it reads
 * again.
 */
function write(call: Writing, key: MachineKey, wanted: WantedKeys): Promise<unknown> {
  const { api } = call;
  const setOnce = async (): Promise<unknown> => {
    const live = await api.machines.get(key);
    // The metadata was deleted with its Machine.
    if (live.state === "destroyed" && Object.keys(wanted.values).length === 0) return undefined;
    requireOurs(key, live, wanted);
    const metadata = changesTo(live.config?.metadata ?? {}, key, wanted, call);
    if (Object.keys(metadata).length === 0) return undefined;
    try {
      return await api.machines.patchMetadata({ ...key, body: { metadata, machineVersion: versionOf(live) } });
    } catch (error) {
      // There is a new version, which may have other values.
      if (!(error instanceof ApiError) || error.status !== 412) throw error;
      return new Pending();
    }
  };
  return poll({ api }, setOnce, { longest: 2000 });
}

type Writing = Pick<Call, "api" | "warn"> & Partial<GivingUp>;

/**
 * Keys to set, and keys to remove (null). Keys that another resource claims, or that others have changed since, are not
 * removed (R12). A claimant whose value this resource overwrote gets it back.
 */
function changesTo(
  current: Values,
  { appName, machineId }: MachineKey,
  { values, owned, owner, formerOwners }: WantedKeys,
  { warn, otherClaimant }: Writing,
): Record<string, string | null> {
  const given = Object.keys(owned).filter((name) => !Object.hasOwn(values, name) && Object.hasOwn(current, name));
  const changes = given.map((name): Readonly<Record<string, string | null>> => {
    const claimant = otherClaimant?.(keyClaim(appName, machineId, name));
    const holder = current[holderKey(name)];
    const isHeld = holder === undefined || holder === owner || formerOwners.includes(holder);
    const isForeign = !isHeld || current[name] !== owned[name];
    if (claimant === undefined && !isForeign)
      return { [name]: null, ...(holder === undefined ? {} : { [holderKey(name)]: null }) };
    const stays = `${JSON.stringify(name)} of Machine ${appName}/${machineId} stays: `;
    const by = claimant === undefined ? undefined : `${JSON.stringify(claimant.name)} of this program sets it`;
    // Its own state says that it is written.
    const isReturned = !isForeign && claimant?.value !== undefined && claimant.value !== current[name];
    warn(`${stays}${by ?? "another client has set it since"}${isReturned ? ", and gets its value back." : "."}`);
    return isReturned ? { [name]: claimant.value, [holderKey(name)]: claimant.owner } : {};
  });
  // The next state will not name the former owners.
  const isFormer = (name: string): boolean => formerOwners.includes(current[holderKey(name)] ?? "");
  const conflicts = Object.keys(values).filter(
    (name) => Object.hasOwn(current, name) && (!Object.hasOwn(owned, name) || isFormer(name)),
  );
  return {
    ...(Object.assign({}, ...changes) as Record<string, string | null>),
    ...values,
    ...(owner === undefined ? {} : Object.fromEntries(conflicts.map((name) => [holderKey(name), owner]))),
  };
}

/** A value that another client wrote is not replaced, unless the program says so. */
function requireOurs({ appName: app, machineId: id }: MachineKey, live: Machine, wanted: WantedKeys): void {
  if (live.state === "destroyed")
    throw new MachinesError("api", `Machine ${app}/${id} is destroyed, so nothing was set`);
  if (wanted.adopt) return;
  const current = live.config?.metadata ?? {};
  const moved = movedKeys(wanted.owned, current, wanted.values);
  if (moved.length > 0)
    throw new MachinesError(
      "stale-version",
      `the metadata of Machine ${app}/${id} was changed outside of this program (${moved.map((key) => `values[${JSON.stringify(key)}]`).join(", ")}). ` +
        "Nothing was changed. Run pulumi refresh to see the changes, then up decides.",
    );
  const conflicts = Object.entries(wanted.values)
    .filter(
      ([key, value]) => !Object.hasOwn(wanted.owned, key) && Object.hasOwn(current, key) && current[key] !== value,
    )
    .map(([key]) => JSON.stringify(key));
  if (conflicts.length > 0)
    throw new MachinesError(
      "refused",
      `Machine ${app}/${id} has ${conflicts.join(", ")} already, with another value. Nothing was changed; set adopt: true to adopt them, or use other keys.`,
    );
}
