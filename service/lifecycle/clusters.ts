// The lifecycle of Postgres clusters (docs/interface.md#cluster-states).
import type { Cluster, ClusterSource, Endpoint, Endpoints } from "../runtime/postgresEngine.ts";
import type { BackupRow, ClusterRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { periods } from "../time/delays.ts";
import { clearCluster } from "./removal.ts";

/** The resources of each plan. ASSUMED: the plan `basic` has no replica, the others have one. */
export const plans: Readonly<
  Record<string, { cpu_kind: string; cpus: number; memory_mb: number; replicas: number } | undefined>
> = {
  basic: { cpu_kind: "shared", cpus: 2, memory_mb: 1024, replicas: 0 },
  starter: { cpu_kind: "shared", cpus: 2, memory_mb: 2048, replicas: 1 },
  launch: { cpu_kind: "performance", cpus: 2, memory_mb: 8192, replicas: 1 },
  scale: { cpu_kind: "performance", cpus: 4, memory_mb: 32_768, replicas: 1 },
  Performance: { cpu_kind: "performance", cpus: 8, memory_mb: 65_536, replicas: 1 },
};

/** A cluster, also a deleted one. */
export const findCluster = (context: Context, id: string): ClusterRow | undefined =>
  context.store.get<ClusterRow>("SELECT * FROM clusters WHERE id = ?", id);

/** Ids of the clusters that are not deleted. */
export const liveClusters = ({ store }: Context): string[] =>
  store.all<{ id: string }>("SELECT id FROM clusters WHERE status <> 'deleted' ORDER BY number").map(({ id }) => id);

/** The backups of a cluster that exist or are being written, oldest first. */
export const backupsOf = ({ store }: Context, cluster: string): { id: string; isRunning: boolean }[] =>
  store
    .all<Pick<BackupRow, "id" | "status">>(
      "SELECT id, status FROM backups WHERE cluster = ? AND status <> 'failed' ORDER BY number",
      cluster,
    )
    .map(({ id, status }) => ({ id, isRunning: status === "running" }));

/** A cluster as the engine sees it. */
export const clusterOf = (row: ClusterRow): Cluster => ({
  id: row.id,
  name: row.name,
  region: row.region,
  plan: row.plan,
  cpus: plans[row.plan]?.cpus ?? 1,
  isShared: plans[row.plan]?.cpu_kind === "shared",
  memoryMb: plans[row.plan]?.memory_mb ?? 1024,
  replicas: plans[row.plan]?.replicas ?? 0,
  version: row.pg_major_version,
  diskGb: row.disk_size_gb,
  poolMode: row.pool_mode,
  status: row.status,
  source: row.source === null ? undefined : (JSON.parse(row.source) as ClusterSource),
  endpoints: row.endpoints === null ? undefined : (JSON.parse(row.endpoints) as Endpoints),
});

/** The name of a cluster's organization. */
export const organizationOf = ({ store }: Context, id: string): string =>
  store.get<{ slug: string }>("SELECT o.slug FROM clusters c JOIN orgs o ON o.id = c.org WHERE c.id = ?", id)?.slug ??
  "";

/** The addresses of an organization's clusters, each once. */
export function addressesOf({ store }: Context, org: string): Endpoint[] {
  const sql = "SELECT endpoints FROM clusters c JOIN orgs o ON o.id = c.org WHERE o.slug = ? AND endpoints IS NOT NULL";
  const found = store.all<{ endpoints: string }>(sql, org).flatMap(({ endpoints }) => {
    const { direct, pooler } = (JSON.parse(endpoints) as Endpoints).primary;
    return direct.port === pooler.port ? [direct] : [direct, pooler];
  });
  return found.sort((a, b) => a.port - b.port);
}

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

/** A ready cluster has other addresses than before. */
export function moved(context: Context, id: string, endpoints: Endpoints): void {
  const row = inState(context, id, "ready");
  if (row) changeCluster(context, row, { endpoints: JSON.stringify(endpoints) });
}

/** A cluster could not be set up. */
export function failed(context: Context, id: string, reason: string): void {
  const row = inState(context, id, "creating", "initializing");
  if (!row) return;
  context.log.warn({ cluster: id, reason }, "a Postgres cluster could not be set up");
  changeCluster(context, row, { status: "failed" });
}

/** A cluster is deleted; it stays in lists with `include_deleted`, without its contents. */
export function destroyed(context: Context, id: string): void {
  const row = inState(context, id, "deleting");
  if (!row) return;
  changeCluster(context, row, { status: "deleted", deleted_at: context.clock.now(), endpoints: null });
  context.timers.cancel(id, "cluster.step", "cluster.measure");
  if (context.postgres.discard) context.timers.after(periods.clusterKept, "cluster.discard", id);
  clearCluster(context, id);
}

/** Has the size of a cluster measured, every hour. */
export function measure(context: Context, id: string): void {
  const row = inState(context, id, "ready");
  if (!row) return;
  context.timers.after(periods.measure, "cluster.measure", id);
  context.postgres.measure(clusterOf(row));
}

/** The size of a cluster is known. */
export function measured(context: Context, id: string, bytes: number): void {
  const row = inState(context, id, "ready");
  if (row) changeCluster(context, row, { storage_used_bytes: bytes });
}

// ASSUMED: the latest 100 completed backups of a cluster are kept, and the latest 20 that failed. No request deletes a backup, so
// refusing further ones would end all backups of the cluster.
const keptBackups = { completed: 100, failed: 20 } as const;

/** A backup has ended: completed with a size, or failed without one. The oldest one beyond the limit is deleted. */
export function finishBackup(context: Context, id: string, bytes: number | undefined): void {
  const backup = context.store.get<Pick<BackupRow, "cluster">>("SELECT cluster FROM backups WHERE id = ?", id);
  const row = backup && findCluster(context, backup.cluster);
  if (!row) return;
  context.store.touch(row.id);
  const status = bytes === undefined ? "failed" : "completed";
  context.store.update("backups", "id", id, { status, size_bytes: bytes ?? null, finished_at: context.clock.now() });
  const old = context.store.all<{ id: string }>(
    "SELECT id FROM backups WHERE cluster = ? AND status = ? ORDER BY number DESC LIMIT -1 OFFSET ?",
    row.id,
    status,
    keptBackups[status],
  );
  for (const one of old) {
    context.store.run("DELETE FROM backups WHERE id = ?", one.id);
    context.store.onCommit(() => context.postgres.discard?.(row.id, one.id));
  }
}
