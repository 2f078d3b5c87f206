// The lifecycle of volumes and their snapshots.
import { createHash } from "node:crypto";
import type { SnapshotRow, VolumeRow } from "../store/rows.ts";
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

/** The next state of a path. */
export function stepVolume(context: Context, id: string, path: string): void {
  const volume = findVolume(context, id);
  if (volume) walk(context, volume, path.split(",") as VolumeState[]);
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
  touch(context, id);
}

/** Sets or cancels the timer of a volume's daily snapshot. */
export function armBackup(context: Context, volume: VolumeRow): void {
  context.timers.cancel(volume.id, "volume.backup");
  if (volume.auto_backup === 1 && !isLeaving(volume.state))
    context.timers.after(periods.backup, "volume.backup", volume.id);
}

/** Takes the daily snapshot. */
export function backup(context: Context, id: string): void {
  const volume = findVolume(context, id);
  if (!volume || isLeaving(volume.state)) return;
  takeSnapshot(context, volume);
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
    created_at: context.clock.now(),
  };
  context.store.insert("snapshots", row);
  context.timers.after(context.delays.snapshot, "snapshot.done", id);
  context.timers.after(volume.snapshot_retention * periods.day, "snapshot.expire", id);
}
