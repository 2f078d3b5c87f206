// What happens to volumes and their snapshots.
import { createHash } from "node:crypto";
import type { SnapshotRow, VolumeRow } from "../store/rows.ts";
import { touch, type World } from "../world.ts";
import { periods } from "./delays.ts";
import { isLeaving, volumeStep, type VolumeState } from "./volumeStates.ts";

export const findVolume = (world: World, id: string): VolumeRow | undefined =>
  world.store.get<VolumeRow>("SELECT * FROM volumes WHERE id = ?", id);

/** Changes a volume's row. */
export function changeVolume(world: World, volume: VolumeRow, changes: Partial<VolumeRow>): VolumeRow {
  const all = { ...changes, updated_at: world.clock.now() };
  world.store.update("volumes", "id", volume.id, all);
  touch(world, volume.id);
  return { ...volume, ...all };
}

/** Puts a volume on a path of states: in the first now, in the others one after the other. */
export function walk(world: World, volume: VolumeRow, [first, ...rest]: readonly VolumeState[]): VolumeRow {
  world.timers.cancel(volume.id, "volume.step");
  const changed = first === undefined ? volume : changeVolume(world, volume, { state: first });
  if (rest.length > 0) world.timers.after(world.delays[volumeStep], "volume.step", volume.id, rest.join(","));
  if (first === "pending_destroy") world.timers.after(periods.volumeKept, "volume.remove", volume.id);
  return changed;
}

/** The next state of a path. */
export function stepVolume(world: World, id: string, path: string): void {
  const volume = findVolume(world, id);
  if (volume) walk(world, volume, path.split(",") as VolumeState[]);
}

/** A destroyed Machine has let go of its volume. */
export function unbind(world: World, id: string): void {
  const volume = findVolume(world, id);
  if (volume) changeVolume(world, volume, { machine: null });
}

/** The day of grace is over. Snapshots stay until they expire. */
export function removeVolume(world: World, id: string): void {
  world.timers.cancel(id, "volume.backup");
  world.store.run("DELETE FROM volumes WHERE id = ?", id);
  touch(world, id);
}

/** Arms the daily snapshot of a volume, or takes it back. */
export function armBackup(world: World, volume: VolumeRow): void {
  world.timers.cancel(volume.id, "volume.backup");
  if (volume.auto_backup === 1 && !isLeaving(volume.state))
    world.timers.after(periods.backup, "volume.backup", volume.id);
}

/** The daily snapshot. */
export function backup(world: World, id: string): void {
  const volume = findVolume(world, id);
  if (!volume || isLeaving(volume.state)) return;
  takeSnapshot(world, volume);
  armBackup(world, volume);
}

/** The snapshot of a volume that is being written, if any. */
export const pendingSnapshot = (world: World, volume: VolumeRow): SnapshotRow | undefined =>
  world.store.get<SnapshotRow>("SELECT * FROM snapshots WHERE volume = ? AND status = 'pending'", volume.id);

/** Begins a snapshot. */
export function takeSnapshot(world: World, volume: VolumeRow): void {
  const id = world.ids.snapshot();
  const row: SnapshotRow = {
    id,
    volume: volume.id,
    app: volume.app,
    status: "pending",
    digest: `sha256:${createHash("sha256").update(id).digest("hex")}`,
    size_gb: volume.size_gb,
    retention_days: volume.snapshot_retention,
    created_at: world.clock.now(),
  };
  world.store.insert("snapshots", row);
  world.timers.after(world.delays.snapshot, "snapshot.done", id);
  world.timers.after(volume.snapshot_retention * periods.day, "snapshot.expire", id);
}
