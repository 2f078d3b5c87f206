// The lifecycle of Postgres clusters (docs/interface.md#cluster-states).
import type { Cluster, Endpoints } from "../runtime/postgresEngine.ts";
import type { BackupRow, ClusterRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { periods } from "../time/delays.ts";
import { clearCluster } from "./removal.ts";

/** A cluster, also a deleted one. */
export const findCluster = (context: Context, id: string): ClusterRow | undefined =>
  context.store.get<ClusterRow>("SELECT * FROM clusters WHERE id = ?", id);

/** A cluster in the form of the engine. */
export const clusterOf = ({ id, name, region, plan, pg_major_version, disk_size_gb, status }: ClusterRow): Cluster => ({
  ...{ id, name, region, plan, status },
  version: pg_major_version,
  diskGb: disk_size_gb,
});

/** Changes a cluster's row. */
export function changeCluster(context: Context, row: ClusterRow, changes: Partial<ClusterRow>): ClusterRow {
  context.store.update("clusters", "id", row.id, changes);
  touch(context, row.id);
  return { ...row, ...changes };
}

const inState = (context: Context, id: string, ...states: readonly ClusterRow["status"][]): ClusterRow | undefined => {
  const row = findCluster(context, id);
  return row && states.includes(row.status) ? row : undefined;
};

/** The engine is setting a cluster up. */
export function initializing(context: Context, id: string): void {
  const row = inState(context, id, "creating");
  if (row) changeCluster(context, row, { status: "initializing" });
}

/** A cluster can be used. */
export function ready(context: Context, id: string, endpoints: Endpoints): void {
  const row = inState(context, id, "creating", "initializing");
  if (!row) return;
  changeCluster(context, row, { status: "ready", endpoints: JSON.stringify(endpoints) });
  context.timers.after(periods.measure, "cluster.measure", id);
}

/** A cluster could not be set up. */
export function failed(context: Context, id: string): void {
  const row = inState(context, id, "creating", "initializing");
  if (row) changeCluster(context, row, { status: "failed" });
}

/** A cluster is deleted; it stays in lists with `include_deleted`, without its contents. */
export function destroyed(context: Context, id: string): void {
  const row = inState(context, id, "deleting");
  if (!row) return;
  changeCluster(context, row, { status: "deleted", deleted_at: context.clock.now(), endpoints: null });
  context.timers.cancel(id, "cluster.step", "cluster.measure");
  clearCluster(context, id);
}

/** Measures the size of a cluster, every hour. */
export function measure(context: Context, id: string): void {
  const row = inState(context, id, "ready");
  if (!row) return;
  changeCluster(context, row, { storage_used_bytes: context.postgres.storedBytes(clusterOf(row)) });
  context.timers.after(periods.measure, "cluster.measure", id);
}

// ASSUMED: the latest 100 backups of a cluster are kept. No request deletes a backup, so refusing further ones would end all backups of the cluster.
const keptBackups = 100;

/** A backup is complete; the oldest one beyond the limit is deleted. */
export function finishBackup(context: Context, id: string): void {
  const backup = context.store.get<Pick<BackupRow, "cluster">>("SELECT cluster FROM backups WHERE id = ?", id);
  const row = backup && findCluster(context, backup.cluster);
  if (!row) return;
  context.store.touch(row.id);
  const size_bytes = context.postgres.storedBytes(clusterOf(row));
  context.store.update("backups", "id", id, { status: "completed", size_bytes, finished_at: context.clock.now() });
  context.store.run(
    `DELETE FROM backups WHERE cluster = ?1 AND number <=
      (SELECT number FROM backups WHERE cluster = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)`,
    row.id,
    keptBackups,
  );
}
