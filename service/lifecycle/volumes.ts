// The lifecycle of volumes and their snapshots.
import { createHash } from "node:crypto";
import { networkOf } from "./appSubject.ts";
import type { VolumeSubject } from "../runtime/runtime.ts";
import type { SnapshotRow, VolumeRow, Written } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { periods } from "../time/delays.ts";
import { isLeaving, type VolumeState } from "../states/volumeStates.ts";

export const findVolume = (context: Context, id: string): VolumeRow | undefined =>
  context.store.get<VolumeRow>("SELECT * FROM volumes WHERE id = ?", id);

/** Changes a volume's row. */
export function changeVolume(context: Context, volume: VolumeRow, changes: Partial<VolumeRow>): VolumeRow {
  const all = { ...changes, updated_at: context.clock.now() };
  context.store.update("volumes", "id", volume.id, all);
  touch(context, volume.id);
  // An open page shows the volume with its Machine.
  for (const machine of new Set([volume.machine, changes.machine])) if (machine) context.store.touch(machine);
  return { ...volume, ...all };
}

/** Starts a volume on a path of states: it enters the first now and the others one after another. */
export function walk(context: Context, volume: VolumeRow, [first, ...rest]: readonly VolumeState[]): VolumeRow {
  context.timers.cancel(volume.id, "volume.step");
  const changed = first === undefined ? volume : changeVolume(context, volume, { state: first });
  if (rest.length > 0) context.timers.after(context.delays.volume, "volume.step", volume.id, rest.join(","));
  if (first === "pending_destroy") context.timers.after(periods.volumeKept, "volume.remove", volume.id);
  return changed;
}

/** The next state of a path. A volume is not `created` before the runtime has written its contents. */
export function stepVolume(context: Context, id: string, path: string): void {
  const volume = findVolume(context, id);
  const states = path.split(",") as VolumeState[];
  if (!volume || (states[0] === "created" && volume.written === 0 && keepsData(context))) return;
  walk(context, volume, states);
}

const keepsData = (context: Context): boolean => context.runtime.volumeChanged !== undefined;

/** Whether the contents of a new volume or snapshot are written. */
export const unwritten = (context: Context): Written => (keepsData(context) ? 0 : null);

/** The runtime has written the contents of a volume or snapshot. */
export function written(context: Context, id: string, bytes: number): void {
  const volume = findVolume(context, id);
  if (!volume) {
    context.store.run("UPDATE snapshots SET status = 'created', written = 1, bytes = ? WHERE id = ?", bytes, id);
    return;
  }
  // Its step came before, and did nothing: of a new volume, or of one that is extended after its engine was lost.
  const isLate = !isLeaving(volume.state) && !context.timers.pending(id, "volume.step");
  changeVolume(context, volume, { written: 1, ...(isLate ? { state: "created" } : {}) });
}

/** The runtime keeps nothing of a volume or snapshot that was deleted. */
export const discarded = (context: Context, id: string): void =>
  context.store.run("DELETE FROM discarded WHERE id = ?", id);

/** A volume or snapshot as a runtime sees it. */
export function volumeSubject(context: Context, id: string): VolumeSubject | undefined {
  const volume = findVolume(context, id);
  const snapshot = volume ? undefined : context.store.get<SnapshotRow>("SELECT * FROM snapshots WHERE id = ?", id);
  const either = volume ?? snapshot;
  return (
    either && {
      id,
      machine: volume?.machine ?? null,
      source: snapshot ? snapshot.volume : (volume?.source ?? null),
      isWritten: either.written === 1,
      isSnapshot: snapshot !== undefined,
      region: volume?.region ?? "",
      sizeGb: either.size_gb,
      get network() {
        return networkOf(context, either.app);
      },
    }
  );
}

/** Ids of the volumes and snapshots that the runtime has to write or to discard. */
export const unsettledVolumes = ({ store }: Context): readonly string[] =>
  store
    .all<{ id: string }>(
      `SELECT id FROM volumes WHERE written = 0 UNION ALL SELECT id FROM snapshots WHERE written = 0
        UNION ALL SELECT id FROM discarded`,
    )
    .map(({ id }) => id);

/** Lets the runtime write what another runtime did not keep. */
export function keepAll(context: Context): void {
  if (!keepsData(context)) return;
  for (const table of ["volumes", "snapshots"])
    context.store.run(`UPDATE ${table} SET written = 0 WHERE written IS NULL`);
}

/** Detaches the volume of a destroyed Machine. */
export function unbind(context: Context, id: string): void {
  const volume = findVolume(context, id);
  if (volume) changeVolume(context, volume, { machine: null });
}

/** Removes a volume after its day of grace. Its snapshots stay until they expire. */
export function removeVolume(context: Context, id: string): void {
  context.timers.cancel(id, "volume.backup");
  context.store.run("DELETE FROM volumes WHERE id = ?", id);
  context.runtime.volumeChanged?.(id);
  touch(context, id);
}

/** Removes a snapshot. */
export function removeSnapshot(context: Context, id: string): void {
  context.store.run("DELETE FROM snapshots WHERE id = ?", id);
  context.runtime.volumeChanged?.(id);
}

/** Sets or cancels the timer of a volume's daily snapshot. */
export function armBackup(context: Context, volume: VolumeRow): void {
  context.timers.cancel(volume.id, "volume.backup");
  if (volume.auto_backup === 1 && !isLeaving(volume.state))
    context.timers.after(periods.backup, "volume.backup", volume.id);
}

/** Takes the daily snapshot, unless another one is being written: a volume has one at a time. */
export function backup(context: Context, id: string): void {
  const volume = findVolume(context, id);
  if (!volume || isLeaving(volume.state)) return;
  const canCopy = context.runtime.copyProblem?.(volume.region, volume.region) === undefined;
  if (canCopy && !pendingSnapshot(context, volume)) takeSnapshot(context, volume);
  armBackup(context, volume);
}

/** The snapshot of a volume that is being written, if any. */
export const pendingSnapshot = (context: Context, volume: VolumeRow): SnapshotRow | undefined =>
  context.store.get<SnapshotRow>("SELECT * FROM snapshots WHERE volume = ? AND status = 'pending'", volume.id);

/** Begins a snapshot. */
export function takeSnapshot(context: Context, volume: VolumeRow): void {
  const id = context.ids.snapshot();
  const row: SnapshotRow = {
    id,
    volume: volume.id,
    app: volume.app,
    status: "pending",
    digest: `sha256:${createHash("sha256").update(id).digest("hex")}`,
    size_gb: volume.size_gb,
    retention_days: volume.snapshot_retention,
    written: unwritten(context),
    bytes: 0,
    created_at: context.clock.now(),
  };
  context.store.insert("snapshots", row);
  if (context.runtime.volumeChanged) context.runtime.volumeChanged(id);
  else context.timers.after(context.delays.snapshot, "snapshot.done", id);
  context.timers.after(volume.snapshot_retention * periods.day, "snapshot.expire", id);
}
