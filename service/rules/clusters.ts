// Shared parts of the rules of Postgres clusters: finding, showing and creating one
// (docs/interface.md#managed-postgres).
import { clusterName } from "../../api/names.ts";
import { rfc3339 } from "../time/clock.ts";
import { clusterOf, findCluster, plans } from "../lifecycle/clusters.ts";
import { refuse } from "../refusal.ts";
import type { ClusterSource } from "../runtime/postgresEngine.ts";
import type { ClusterRow, OrgRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import type { Asking } from "./find.ts";
import { requireQuota } from "./quotas.ts";
import { isForAll } from "../store/tokens.ts";

const gib = 2 ** 30;

function clusterRowOf({ context, caller, params }: Asking): ClusterRow {
  const row = findCluster(context, String(params["postgres_cluster_id"]));
  if (!row || row.org !== caller.org || !isForAll(caller)) throw refuse(404, "Cluster not found");
  return row;
}

/**
 * The cluster of the path; a deleted one is 410 for every operation (docs/interface.md#cluster-states,
 * docs/interface.md#refusals).
 */
export function liveClusterOf(asking: Asking): ClusterRow {
  const row = clusterRowOf(asking);
  if (row.status === "deleted") throw refuse(410, "This cluster has been deleted");
  if (row.status === "deleting") throw refuse(410, "This cluster is being deleted");
  return row;
}

/** The Apps to which a cluster is attached. */
export const attachedApps = (context: Context, id: string): { name: string }[] =>
  context.store.all<{ name: string }>(
    "SELECT a.name FROM attachments t JOIN apps a ON a.id = t.app WHERE t.cluster = ? AND a.deleting < 2 ORDER BY t.attached_at, a.name",
    id,
  );

/** A cluster as answers have it. */
export function clusterAnswer(context: Context, row: ClusterRow, org: OrgRow) {
  const { id, name, region, plan, status, disk_size_gb, pg_major_version, endpoints, storage_used_bytes } = row;
  return {
    ...{ id, name, region, plan, status },
    organization: { name: org.name, slug: org.slug },
    ...plans[plan],
    ...(context.postgres.replicas === undefined ? {} : { replicas: context.postgres.replicas }),
    ...{ disk_size_gb, pg_major_version },
    postgis_enabled: row.postgis_enabled === 1,
    endpoints: endpoints === null ? {} : (JSON.parse(endpoints) as object),
    ...primaryAnswer(context, row),
    attached_apps: attachedApps(context, id),
    created_at: rfc3339(row.created_at),
    storage_provisioned_bytes: disk_size_gb * gib,
    storage_used_bytes,
  };
}

/**
 * ASSUMED: a cluster stays `ready` while its primary fails and is replaced, because a client need not do anything. `primary_available` and
 * `primary_since`, which the platform does not have, show it.
 */
function primaryAnswer({ postgres }: Context, row: ClusterRow): object {
  const primary = row.status === "ready" ? postgres.primary?.(clusterOf(row)) : undefined;
  if (!primary) return {};
  const { isAvailable, since } = primary;
  return { primary_available: isAvailable, ...(since === undefined ? {} : { primary_since: rfc3339(since) }) };
}

/** The properties of a new cluster. */
export interface Wanted {
  readonly name: string | undefined;
  readonly source?: ClusterSource;
  readonly region: string;
  readonly plan: string;
  readonly disk_size_gb: number;
  readonly pg_major_version: string;
  readonly pool_mode: string;
  readonly postgis_enabled: number;
}

/** Whether a live cluster of the organization has that name. */
const isTaken = (context: Context, org: number, name: string): boolean =>
  context.store.get(
    "SELECT 1 FROM clusters WHERE org = ? AND name = ? AND status NOT IN ('deleting', 'deleted')",
    org,
    name,
  ) !== undefined;

function nameFor(context: Context, org: number, asked: string | undefined): string {
  if (asked === undefined) {
    let generated = context.ids.machineName();
    while (isTaken(context, org, generated)) generated = context.ids.machineName();
    return generated;
  }
  if (!clusterName.safeParse(asked).success)
    throw refuse(
      422,
      `invalid name, got ${JSON.stringify(asked.slice(0, 80))}, must be 1 to 63 of a-z, 0-9 and -, and begin and end with a letter or digit`,
    );
  if (isTaken(context, org, asked)) throw refuse(422, "name has already been taken");
  return asked;
}

/** Adds the row of a cluster without contents. The caller calls the engine. */
export function newCluster(context: Context, org: number, { name: asked, source, ...wanted }: Wanted): ClusterRow {
  const name = nameFor(context, org, asked);
  const problem = context.postgres.problem({
    name,
    version: wanted.pg_major_version,
    hasPostgis: wanted.postgis_enabled === 1,
  });
  if (problem) throw refuse(problem.status, problem.message);
  requireQuota(context, org, undefined, { clusters: 1 });
  const row: ClusterRow = {
    id: context.ids.cluster(),
    number: (context.store.get<{ n: number | null }>("SELECT max(number) AS n FROM clusters")?.n ?? 0) + 1,
    org,
    name,
    ...wanted,
    status: "creating",
    endpoints: null,
    storage_used_bytes: null,
    created_at: context.clock.now(),
    deleted_at: null,
    source: source === undefined ? null : JSON.stringify(source),
  };
  context.store.insert("clusters", row);
  context.store.touch(row.id);
  return row;
}
