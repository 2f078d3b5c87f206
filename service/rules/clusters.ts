// What the rules of Postgres clusters share: looking one up, answering it, making one
// (docs/interface.md#managed-postgres).
import { clusterName } from "../../api/names.ts";
import { rfc3339 } from "../lifecycle/clock.ts";
import { findCluster } from "../lifecycle/clusters.ts";
import { refuse } from "../refusal.ts";
import type { ClusterRow, OrgRow } from "../store/rows.ts";
import type { World } from "../world.ts";
import type { Asking } from "./find.ts";

/** What a plan comes with. ASSUMED: the replicas of a plan: none for `basic`, one for the others. */
const plans: Readonly<Record<string, { cpu_kind: string; cpus: number; memory_mb: number; replicas: number }>> = {
  basic: { cpu_kind: "shared", cpus: 2, memory_mb: 1024, replicas: 0 },
  starter: { cpu_kind: "shared", cpus: 2, memory_mb: 2048, replicas: 1 },
  launch: { cpu_kind: "performance", cpus: 2, memory_mb: 8192, replicas: 1 },
  scale: { cpu_kind: "performance", cpus: 4, memory_mb: 32_768, replicas: 1 },
  Performance: { cpu_kind: "performance", cpus: 8, memory_mb: 65_536, replicas: 1 },
};

const gib = 2 ** 30;

function clusterRowOf({ world, caller, params }: Asking): ClusterRow {
  const row = findCluster(world, String(params["postgres_cluster_id"]));
  if (!row || row.org !== caller.org || caller.app !== null) throw refuse(404, "Cluster not found");
  return row;
}

/**
 * The cluster of the path; one that is gone is 410, whatever is asked (docs/interface.md#cluster-states,
 * docs/interface.md#refusals).
 */
export function liveClusterOf(asking: Asking): ClusterRow {
  const row = clusterRowOf(asking);
  if (row.status === "deleted") throw refuse(410, "This cluster has been deleted");
  if (row.status === "deleting") throw refuse(410, "This cluster is being deleted");
  return row;
}

/** Apps a cluster is attached to. */
export const attachedApps = (world: World, id: string): { name: string }[] =>
  world.store.all<{ name: string }>(
    "SELECT a.name FROM attachments t JOIN apps a ON a.id = t.app WHERE t.cluster = ? AND a.deleting < 2 ORDER BY t.attached_at, a.name",
    id,
  );

/** A cluster as it is answered. */
export function clusterAnswer(world: World, row: ClusterRow, org: OrgRow) {
  const { id, name, region, plan, status, disk_size_gb, pg_major_version, endpoints, storage_used_bytes } = row;
  return {
    ...{ id, name, region, plan, status },
    organization: { name: org.name, slug: org.slug },
    ...plans[plan],
    ...{ disk_size_gb, pg_major_version },
    postgis_enabled: row.postgis_enabled === 1,
    endpoints: endpoints === null ? {} : (JSON.parse(endpoints) as object),
    attached_apps: attachedApps(world, id),
    created_at: rfc3339(row.created_at),
    storage_provisioned_bytes: disk_size_gb * gib,
    storage_used_bytes,
  };
}

/** What a new cluster is to be. */
export interface Wanted {
  readonly name: string | undefined;
  readonly region: string;
  readonly plan: string;
  readonly disk_size_gb: number;
  readonly pg_major_version: string;
  readonly pool_mode: string;
  readonly postgis_enabled: number;
}

/** Whether a live cluster of the organization has that name. */
const isTaken = (world: World, org: number, name: string): boolean =>
  world.store.get(
    "SELECT 1 FROM clusters WHERE org = ? AND name = ? AND status NOT IN ('deleting', 'deleted')",
    org,
    name,
  ) !== undefined;

function nameFor(world: World, org: number, asked: string | undefined): string {
  if (asked === undefined) {
    let made = world.ids.machineName();
    while (isTaken(world, org, made)) made = world.ids.machineName();
    return made;
  }
  if (!clusterName.safeParse(asked).success)
    throw refuse(
      422,
      `invalid name, got ${JSON.stringify(asked.slice(0, 80))}, must be 1 to 63 of a-z, 0-9 and -, and begin and end with a letter or digit`,
    );
  if (isTaken(world, org, asked)) throw refuse(422, "name has already been taken");
  return asked;
}

/** Makes the row of a cluster, empty. Whoever calls asks the engine. */
export function newCluster(world: World, org: number, { name: asked, ...wanted }: Wanted): ClusterRow {
  const name = nameFor(world, org, asked);
  const problem = world.postgres.problem(name);
  if (problem !== undefined) throw refuse(400, problem);
  const row: ClusterRow = {
    id: world.ids.cluster(),
    number: (world.store.get<{ n: number | null }>("SELECT max(number) AS n FROM clusters")?.n ?? 0) + 1,
    org,
    name,
    ...wanted,
    status: "creating",
    endpoints: null,
    storage_used_bytes: null,
    created_at: world.clock.now(),
    deleted_at: null,
  };
  world.store.insert("clusters", row);
  return row;
}
