// What happens to Postgres clusters (docs/interface.md#cluster-states).
import type { Cluster, Endpoints } from "../runtime/postgresEngine.ts";
import type { BackupRow, ClusterRow } from "../store/rows.ts";
import { touch, type World } from "../world.ts";
import { periods } from "./delays.ts";
import { clearCluster } from "./removal.ts";

/** A cluster, also a deleted one. */
export const findCluster = (world: World, id: string): ClusterRow | undefined =>
  world.store.get<ClusterRow>("SELECT * FROM clusters WHERE id = ?", id);

/** A cluster as the engine sees it. */
export const clusterOf = ({ id, name, region, plan, pg_major_version, disk_size_gb, status }: ClusterRow): Cluster => ({
  ...{ id, name, region, plan, status },
  version: pg_major_version,
  diskGb: disk_size_gb,
});

/** Changes a cluster's row. */
export function changeCluster(world: World, row: ClusterRow, changes: Partial<ClusterRow>): ClusterRow {
  world.store.update("clusters", "id", row.id, changes);
  touch(world, row.id);
  return { ...row, ...changes };
}

const inState = (world: World, id: string, ...states: readonly ClusterRow["status"][]): ClusterRow | undefined => {
  const row = findCluster(world, id);
  return row && states.includes(row.status) ? row : undefined;
};

/** The engine is setting a cluster up. */
export function initializing(world: World, id: string): void {
  const row = inState(world, id, "creating");
  if (row) changeCluster(world, row, { status: "initializing" });
}

/** A cluster can be used. */
export function ready(world: World, id: string, endpoints: Endpoints): void {
  const row = inState(world, id, "creating", "initializing");
  if (!row) return;
  changeCluster(world, row, { status: "ready", endpoints: JSON.stringify(endpoints) });
  world.timers.after(periods.measure, "cluster.measure", id);
}

/** A cluster could not be set up. */
export function failed(world: World, id: string): void {
  const row = inState(world, id, "creating", "initializing");
  if (row) changeCluster(world, row, { status: "failed" });
}

/** A cluster is gone; it stays in lists with `include_deleted`. What was in it is not kept. */
export function destroyed(world: World, id: string): void {
  const row = inState(world, id, "deleting");
  if (!row) return;
  changeCluster(world, row, { status: "deleted", deleted_at: world.clock.now(), endpoints: null });
  world.timers.cancel(id, "cluster.step", "cluster.measure");
  clearCluster(world, id);
}

/** What a cluster stores is measured every hour. */
export function measure(world: World, id: string): void {
  const row = inState(world, id, "ready");
  if (!row) return;
  changeCluster(world, row, { storage_used_bytes: world.postgres.storedBytes(clusterOf(row)) });
  world.timers.after(periods.measure, "cluster.measure", id);
}

// ASSUMED: the latest 100 backups of a cluster are kept. No request deletes one, so that to refuse more would mean no backup ever again.
const keptBackups = 100;

/** A backup has been written; the oldest beyond those that are kept is forgotten. */
export function finishBackup(world: World, id: string): void {
  const backup = world.store.get<Pick<BackupRow, "cluster">>("SELECT cluster FROM backups WHERE id = ?", id);
  const row = backup && findCluster(world, backup.cluster);
  if (!row) return;
  const size_bytes = world.postgres.storedBytes(clusterOf(row));
  world.store.update("backups", "id", id, { status: "completed", size_bytes, finished_at: world.clock.now() });
  world.store.run(
    `DELETE FROM backups WHERE cluster = ?1 AND number <=
      (SELECT number FROM backups WHERE cluster = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)`,
    row.id,
    keptBackups,
  );
}
