// The volumes of a fleet's Machines. Volumes have no metadata, so the name of each ends with a mark that only the fleet's state
// can make. The mark, or the id in the state, shows that the fleet made a volume; a name alone proves nothing (R18). An
// interrupted run finds its volume by the mark and creates none twice, also on another computer. Copies have a mark of their own:
// one that no Machine has mounted is as old as the attempt that made it, so that it must not become the volume of a later Machine.
import { createHash } from "node:crypto";
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import { MachinesError, messageOf } from "../client/errors.ts";
import { orUndefined } from "../client/existence.ts";
import type { Volume } from "../client/listCache.ts";
import { retryWhilePreconditionFails } from "../client/poll.ts";
import { isDestroyed, type Machine } from "../client/machine.ts";
import { isLeaving } from "../apps/app.ts";
import type { Call } from "../core/resource.ts";
import { begin, bringToSize, setSnapshots } from "../volumes/steps.ts";
import type { FleetInputs } from "./inputs.ts";
import { volumeOf, type FleetKey } from "./members.ts";

type Wanted = NonNullable<FleetInputs["volume"]>;

/** Names of volumes have 30 characters at most. */
const longestName = 30;
/** A shorter mark could be another volume's by chance. */
const [shortestMark, longestMark] = [4, 8];

/** The name of a Machine in the name of its volume, which has no hyphens. */
const baseNameOf = (machine: string): string => machine.replaceAll("-", "_");

/** The name of a Machine, from the name of its volume without the mark. */
const machineNameOf = (base: string): string => base.replaceAll("_", "-");

/** The name of a volume with its mark; undefined if the Machine's name leaves no room for one. */
function markedName(app: string, machine: string, stack: string, isCopy: boolean): string | undefined {
  const base = baseNameOf(machine);
  const length = Math.min(longestMark, longestName - 1 - base.length);
  if (length < shortestMark) return undefined;
  const digest = createHash("sha256")
    .update(JSON.stringify([stack, app, base, ...(isCopy ? ["copy"] : [])]))
    .digest("hex");
  const mark = BigInt(`0x${digest}`).toString(36);
  return `${base}_${mark.slice(0, length)}`;
}

/** Name of the volume of a Machine. */
function volumeNameOf({ app, stack }: FleetKey, machine: string, isCopy: boolean): string {
  const name = markedName(app, machine, stack, isCopy);
  if (name !== undefined) return name;
  throw new MachinesError(
    "invalid-input",
    `name: the volume of Machine ${machine} needs a name of at most ${longestName} characters; choose a shorter name for the fleet`,
  );
}

const markAtEnd = new RegExp(`_[a-z0-9]{${shortestMark},${longestMark}}$`);

/** What the name of a volume may be without its mark: earlier versions made volumes without marks. */
const basesOf = ({ name = "" }: Volume): readonly string[] => [name, name.replace(markAtEnd, "")];

/** Whether a volume has a name that the volume of a Machine may have. */
const isNamedFor = (volume: Volume, machine: string): boolean => basesOf(volume).includes(baseNameOf(machine));

/** The name of a Machine that has or had a volume, if a fleet made it. */
export const machineOf = (volume: Volume): string => machineNameOf(basesOf(volume).at(-1) ?? "");

/** Names of Machines that have or had the volumes. */
export const machinesOf = (volumes: readonly Volume[]): Set<string> =>
  new Set(volumes.flatMap((volume) => basesOf(volume).map(machineNameOf)));

/** Whether a volume is the fleet's: its id is known, or its name has the mark of this state. */
export const owns = (fleet: FleetKey, volume: Volume): boolean =>
  fleet.volumes.has(volume.id) || madeFor(fleet, volume) !== undefined;

/** The Machine that the fleet made a volume for, as its name says with the mark of this state. */
export function madeFor(fleet: FleetKey, volume: Volume): string | undefined {
  const machine = machineIn(volume);
  return isMarked(fleet, volume, machine, false) || isMarked(fleet, volume, machine, true) ? machine : undefined;
}

const machineIn = ({ name = "" }: Volume): string => machineNameOf(name.slice(0, name.lastIndexOf("_")));

const isMarked = ({ app, stacks }: FleetKey, { name = "" }: Volume, machine: string, isCopy: boolean): boolean =>
  machine !== "" && stacks.some((stack) => name === markedName(app, machine, stack, isCopy));

/** Whether a volume is a copy of which the state does not show whether a Machine has mounted it. */
export const isUnknownCopy = (fleet: FleetKey, volume: Volume): boolean =>
  !fleet.volumes.has(volume.id) && isMarked(fleet, volume, machineIn(volume), true);

/** The size of a volume when none is given. */
const sizeOf = ({ sizeGb = 3 }: Wanted): number => sizeGb;

/** The volumes of an App that are not being deleted. */
export const volumesIn = async (api: Api, app: string): Promise<Volume[]> =>
  (await api.volumes.list({ appName: app })).filter(({ state }) => !isLeaving(state));

/** The volumes of a region that are, or may be, those of a Machine. */
const namedFor = async ({ api }: Call, { app }: FleetKey, machine: string, region: string): Promise<Volume[]> =>
  (await volumesIn(api, app)).filter((one) => one.region === region && isNamedFor(one, machine));

/** Why a Machine gets no volume of the region, although one has a name for it. */
export const foundByName = (app: string, machine: string, volumes: readonly Volume[]): string =>
  `volume: ${volumes.map(({ id, name = "" }) => `${app}/${id} (${name})`).join(", ")} ${volumes.length === 1 ? "has a name" : "have names"} for Machine ${machine}, and nothing shows that a Machine of this fleet has mounted ${volumes.length === 1 ? "it" : "them"}. To mount one with its data, add its id to volume.adopt. Otherwise delete it, or choose another name for the fleet.`;

/** Whether a new Machine may mount a volume that has a name for it. */
const mayMount = (fleet: FleetKey, volume: Volume): boolean => owns(fleet, volume) && !isUnknownCopy(fleet, volume);

/** The volumes that a new Machine would be refused for: unused ones that have a name for it, and are not the fleet's or copies. */
export const foreignFor = (
  fleet: FleetKey,
  machine: string,
  region: string,
  volumes: readonly Volume[],
): readonly Volume[] => {
  const named = volumes.filter((one) => one.region === region && isNamedFor(one, machine));
  return named.some((one) => mayMount(fleet, one)) ? [] : named.filter(({ attachedMachineId }) => !attachedMachineId);
};

/** The volume for a new Machine. */
export interface VolumeOfNew {
  readonly id: string;
  /** Whether it was created just now, so that nothing is lost if it is deleted before a Machine mounts it. */
  readonly isNew: boolean;
}

/**
 * A copy of a volume for a new Machine. `isBegun`: an interrupted run may have made it. The fleet knows it as its own once a Machine
 * mounts it.
 */
export async function copyFor(
  call: Call,
  fleet: FleetKey,
  machine: string,
  region: string,
  { source, isBegun, wanted }: { source: string; isBegun: boolean; wanted: Wanted },
): Promise<VolumeOfNew> {
  const known = isBegun ? await namedFor(call, fleet, machine, region) : [];
  const found = known.find((one) => !one.attachedMachineId && owns(fleet, one));
  const body = { name: volumeNameOf(fleet, machine, true), region, sourceVolumeId: source };
  const volume = found ?? (await begin(call, undefined, fleet.app, body));
  call.progress(`volume ${volume.id} of Machine ${machine} is a copy of ${source} from this moment`);
  const { id } = await grow(call, fleet.app, volume, wanted);
  return { id, isNew: found === undefined };
}

/** The volume for a new Machine: the one that an earlier Machine of the name had, or a new one. */
export async function volumeFor(
  call: Call,
  fleet: FleetKey,
  machine: string,
  region: string,
  wanted: Wanted,
): Promise<VolumeOfNew> {
  const { app } = fleet;
  const named = await namedFor(call, fleet, machine, region);
  const own = named.filter((one) => mayMount(fleet, one));
  const [found, ...more] = own;
  if (more.length > 0)
    throw new MachinesError(
      "ambiguous",
      `App ${app} has several volumes for Machine ${machine}: ${own.map(({ id }) => id).join(", ")}. Delete those without the wanted data, and run up again.`,
    );
  const foreign = foreignFor(fleet, machine, region, await released(call, app, named));
  if (foreign.length > 0) throw new MachinesError("refused", foundByName(app, machine, foreign));
  if (found) await refuseMounted(call, fleet, machine, found);
  const { snapshotRetention = 5, encrypted = true } = wanted;
  const name = volumeNameOf(fleet, machine, false);
  const body = { name, region, sizeGb: sizeOf(wanted), snapshotRetention, encrypted };
  let volume = found ?? (await begin(call, undefined, app, body));
  if (found && isUnused(fleet, found)) {
    const { id: volumeId, autoBackupEnabled } = found;
    volume = await setSnapshots(call, { appName: app, volumeId }, found, { snapshotRetention, autoBackupEnabled });
  }
  if (found) call.progress(`Machine ${machine} gets the volume ${found.id} again, with its data`);
  if (found && (found.encrypted ?? encrypted) !== encrypted)
    call.warn(
      `Machine ${app}/${machine} gets the volume ${found.id} again, which is ${encrypted ? "not encrypted" : "encrypted"}. Nothing changes that; to have another volume, delete this one first.`,
    );
  const { id } = await grow(call, app, volume, wanted);
  // The fleet knows it as its own once a Machine mounts it: it may be one that an earlier fleet left with its data.
  return { id, isNew: found === undefined };
}

/** Whether no Machine has mounted a volume of the fleet yet: then it shows no file system. It may be a copy, with data. */
const isUnused = (fleet: FleetKey, volume: Volume): boolean =>
  volume.fstype === "" && !fleet.volumes.has(volume.id) && isMarked(fleet, volume, machineIn(volume), false);

/** Deletes the volume of a Machine whose creation was refused. */
export async function discardVolume(call: Call, fleet: FleetKey, machine: string, volumeId: string): Promise<void> {
  try {
    await call.api.volumes.delete({ appName: fleet.app, volumeId });
    fleet.volumes.delete(volumeId);
  } catch (error) {
    call.warn(
      `volume ${fleet.app}/${volumeId} of Machine ${machine}, whose creation was refused, was not deleted: ${messageOf(error)}`,
    );
  }
}

/** The Machine that mounts a volume, if it exists. One that is deleted releases the volume a moment later. */
export async function holderOf(
  { api }: Call,
  app: string,
  { attachedMachineId: machineId }: Volume,
): Promise<Machine | undefined> {
  const holder = machineId ? await orUndefined(() => api.machines.get({ appName: app, machineId })) : undefined;
  return holder === undefined || isDestroyed(holder) ? undefined : holder;
}

/** Volumes, without those Machines that are gone. */
const released = (call: Call, app: string, volumes: readonly Volume[]): Promise<Volume[]> =>
  Promise.all(
    volumes.map(async (volume) =>
      (await holderOf(call, app, volume)) === undefined ? { ...volume, attachedMachineId: null } : volume,
    ),
  );

/** Refuses a volume of the fleet that a Machine of others mounts. */
async function refuseMounted(call: Call, { app }: FleetKey, machine: string, volume: Volume): Promise<void> {
  const holder = await holderOf(call, app, volume);
  if (holder !== undefined)
    throw new MachinesError(
      "refused",
      `volume: volume ${app}/${volume.id} of Machine ${machine} is mounted by Machine ${holder.name ?? "?"} (${holder.id}), which is not the fleet's. Release it there, and run up again.`,
    );
}

/** Makes a volume as large as wanted, and waits until it can be used. It never shrinks. */
const grow = (call: Call, app: string, volume: Volume, wanted: Wanted): Promise<Volume> =>
  bringToSize(call, { appName: app, volumeId: volume.id }, volume, sizeOf(wanted), (needsRestart) => {
    if (needsRestart)
      call.warn(`volume ${app}/${volume.id} was extended; its Machine sees the new size after a restart`);
  });

/** Makes those of the fleet's volumes that its Machines mount as large as wanted. An interrupted run may have created some. */
export async function growVolumes(
  call: Call,
  fleet: FleetKey,
  { machines, volumes }: { readonly machines: readonly Machine[]; readonly volumes: readonly Volume[] },
  wanted: Wanted,
): Promise<void> {
  const mounted = new Set(machines.map(volumeOf));
  for (const volume of volumes.filter((one) => mounted.has(one.id) && owns(fleet, one))) {
    fleet.volumes.add(volume.id);
    if ((volume.sizeGb ?? 0) < sizeOf(wanted)) await grow(call, fleet.app, volume, wanted);
  }
}

/** What a fleet of an earlier version made, whose state has no ids of volumes: those that its Machines mount, by name. */
export const mountedByName = (machines: readonly Machine[], volumes: readonly Volume[]): string[] =>
  machines.flatMap((machine) => {
    const mounted = volumes.find(({ id }) => id === volumeOf(machine));
    return mounted !== undefined && isNamedFor(mounted, machine.name ?? "") ? [mounted.id] : [];
  });

/** Notes the volumes that a fleet adopts. */
export const adoptVolumes = ({ volumes }: FleetKey, { adopt = [] }: Pick<Wanted, "adopt">): void => {
  for (const id of adopt) volumes.add(bareId(id));
};

/** After its Machine is gone: keeps the volume and says how to find it, or deletes it if that is wanted and it is the fleet's. */
export async function leaveVolume(
  call: Call,
  fleet: FleetKey,
  machine: string,
  volumeId: string,
  deleteVolumes: boolean,
): Promise<void> {
  const key = { appName: fleet.app, volumeId };
  const volume = await orUndefined(() => call.api.volumes.get(key));
  if (volume === undefined || isLeaving(volume.state)) return;
  // The Machine has mounted it.
  if (owns(fleet, volume)) fleet.volumes.add(volumeId);
  if (deleteVolumes && owns(fleet, volume)) await remove(call, fleet, machine, volumeId);
  else warnOfKept(call, fleet, machine, volume);
}

/** Deletes a volume. It is detached a moment after its Machine is gone. */
export async function remove(
  call: Call,
  { app, volumes, kept }: FleetKey,
  machine: string,
  volumeId: string,
): Promise<void> {
  await retryWhilePreconditionFails(call, `volume ${volumeId} of ${machine} to be detached`, () =>
    call.api.volumes.delete({ appName: app, volumeId }),
  );
  for (const ids of [volumes, kept]) ids.delete(volumeId);
}

/** Notes that a volume is kept, and says how to find it. */
export function warnOfKept(call: Call, fleet: FleetKey, machine: string, volume: Volume): void {
  const name = `${fleet.app}/${volume.id}`;
  if (owns(fleet, volume)) fleet.kept.add(volume.id);
  const why = !owns(fleet, volume)
    ? ", because the fleet did not create it"
    : isUnknownCopy(fleet, volume)
      ? "; it is a copy, and the state does not show whether a Machine has mounted it"
      : isMarked(fleet, volume, machine, true)
        ? `; a Machine ${machine} of the fleet mounts it again, and one of a new fleet if volume.adopt names it`
        : `; a Machine ${machine} of the fleet mounts it again`;
  const imported = `pulumi import machines:index:Volume ${baseNameOf(machine)} ${name}`;
  call.warn(`volume ${name} of Machine ${machine} is kept with its data${why}. To manage it: ${imported}`);
}
