// The volumes of a fleet that no Machine mounts, because a run was interrupted, an earlier update kept them, or others destroyed their
// Machines: they are reported or deleted.
import type { Volume } from "../client/listCache.ts";
import { orUndefined } from "../client/existence.ts";
import { isLeaving } from "../apps/app.ts";
import type { Machine } from "../client/machine.ts";
import type { Call } from "../core/resource.ts";
import { phaseOf, volumeOf, type FleetKey } from "./members.ts";
import { memberName } from "./planner.ts";
import { holderOf, isUnknownCopy, machineOf, madeFor, remove, warnOfKept } from "./volumes.ts";

/**
 * Whether a volume is a copy that an interrupted rollout left without a Machine: it is newer than all Machines that serve, so none of
 * them, and no fleet before this one, has written to it.
 */
export function isLeftCopy(fleet: FleetKey, volume: Volume, machines: readonly Machine[]): boolean {
  const serving = machines.filter((machine) => phaseOf(machine) === "serving");
  const { createdAt = "" } = volume;
  return (
    serving.length > 0 &&
    serving.every((machine) => machine.createdAt !== undefined && machine.createdAt < createdAt) &&
    machines.every((machine) => volumeOf(machine) !== volume.id) &&
    isUnknownCopy(fleet, volume) &&
    !fleet.kept.has(volume.id)
  );
}

/** Forgets the volumes that are deleted, so that the state does not grow. A list or a failed read does not prove that (R8). */
export async function forgetDeleted(
  { api }: Call,
  { app, volumes, kept }: FleetKey,
  listed: readonly Volume[],
): Promise<void> {
  const existing = new Set(listed.map(({ id }) => id));
  for (const volumeId of new Set([...volumes, ...kept].filter((id) => !existing.has(id)))) {
    const isDeleted = await orUndefined(() => api.volumes.get({ appName: app, volumeId })).then(
      (live) => live === undefined || isLeaving(live.state),
      () => false,
    );
    if (isDeleted) for (const ids of [volumes, kept]) ids.delete(volumeId);
  }
}

/** Deletes some of the volumes that no Machine mounts, for example after an interrupted run, and reports others that are the fleet's. */
export async function leaveUnmounted(
  call: Call,
  fleet: FleetKey,
  volumes: readonly Volume[],
  isUnwanted: (volume: Volume) => boolean,
): Promise<Error[]> {
  const unwanted = volumes.filter(isUnwanted);
  await reportUnmounted(
    call,
    fleet,
    volumes.filter((volume) => !unwanted.includes(volume)),
  );
  return removeUnmounted(call, fleet, unwanted);
}

async function reportUnmounted(call: Call, fleet: FleetKey, volumes: readonly Volume[]): Promise<void> {
  for (const volume of volumes) {
    const machine = memberWith(fleet, volume) ?? (fleet.volumes.has(volume.id) ? machineOf(volume) : undefined);
    if (machine === undefined) continue;
    const holder = await holderOf(call, fleet.app, volume).catch(() => undefined);
    if (holder === undefined) warnOfKept(call, fleet, machine, volume);
  }
}

/** How long the volumes that an interrupted run left may take to be deleted. */
const removalTime = 60_000;

/** Returns the errors: one volume does not keep the next from its deletion. */
async function removeUnmounted(call: Call, fleet: FleetKey, volumes: readonly Volume[]): Promise<Error[]> {
  const { clock, deadline } = call.api;
  const errors: Error[] = [];
  for (const volume of volumes) {
    const at = Math.min(deadline.at, clock.now() + removalTime);
    const api = call.api.within({ ...deadline, at, allowed: `${removalTime / 1000}s` });
    const machine = memberWith(fleet, volume) ?? volume.id;
    try {
      if ((await holderOf({ ...call, api }, fleet.app, volume)) === undefined)
        await remove({ ...call, api }, fleet, machine, volume.id);
    } catch (error) {
      errors.push(error as Error);
    }
  }
  return errors;
}

/** Whether a deletion of the fleet deletes a volume with the Machines: the state has it, an earlier update did not keep it. */
export const isInUse = (fleet: FleetKey, volume: Volume): boolean =>
  fleet.volumes.has(volume.id) && !fleet.kept.has(volume.id) && memberWith(fleet, volume) !== undefined;

/** The member of this fleet, and of no other one of the state, that a volume was created for. */
function memberWith(fleet: FleetKey, volume: Volume): string | undefined {
  const machine = madeFor(fleet, volume) ?? "";
  const number = Number(machine.slice(machine.lastIndexOf("-") + 1));
  return machine === memberName(fleet.name, volume.region ?? "", number) ? machine : undefined;
}
