// Managed Postgres clusters (docs/interface.md#managed-postgres): the clusters themselves. See
// postgresContents.ts for their contents and postgresBackups.ts for their backups.
import type { contract } from "../../api/index.ts";
import { postgresPlan } from "../../api/postgres.ts";
import { meantAmong } from "../../api/validated.ts";
import { rfc3339 } from "../time/clock.ts";
import { insertUser } from "../lifecycle/clusterContents.ts";
import { changeCluster, clusterOf } from "../lifecycle/clusters.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, ClusterRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { attachedApps, clusterAnswer, liveClusterOf, newCluster } from "./clusters.ts";
import { orgOf, callerOrg, type Asking } from "./find.ts";
import { backups } from "./postgresBackups.ts";
import { contents, firstUser } from "./postgresContents.ts";
import { Reply, type Input, type Rules } from "./rule.ts";

type Group = typeof contract.postgres;

const firstDatabase = "fly-db";

function summary(context: Context, { id, name, region, plan, status, created_at, deleted_at }: ClusterRow) {
  return {
    ...{ id, name, region, plan, status },
    created_at: rfc3339(created_at),
    ...(deleted_at === null ? {} : { deleted_at: rfc3339(deleted_at) }),
    attached_apps: status === "deleted" ? [] : attachedApps(context, id),
  };
}

function create(input: Input<Group["create"]>) {
  const { context, body } = input;
  // ASSUMED: the message for a cluster without an organization is our choice; only its status 400 is known (docs/interface.md#managed-postgres).
  if (body.org_slug === undefined || body.org_slug === "") throw refuse(400, "org_slug is required");
  const org = orgOf(input, body.org_slug);
  if (body.region === undefined)
    throw refuse(422, "invalid region, got nothing, must be a region that offers Postgres");
  if (context.regions.get(body.region)?.mpg_available !== true)
    throw refuse(422, `invalid region, got ${JSON.stringify(body.region.slice(0, 40))}, it does not offer Postgres`);
  const plan = postgresPlan.options.find((one) => one.toLowerCase() === body.plan?.toLowerCase());
  if (plan === undefined)
    throw refuse(
      422,
      `invalid plan, got ${JSON.stringify(body.plan?.slice(0, 40)) ?? "nothing"}, allowed are ${postgresPlan.options.join(", ")}${meantAmong(body.plan, postgresPlan.options)}`,
    );
  const row = newCluster(context, org.id, {
    name: body.name,
    region: body.region,
    plan,
    disk_size_gb: body.disk_size_gb ?? 10,
    pg_major_version: body.pg_major_version ?? context.postgres.version,
    pool_mode: body.pool_mode ?? "session",
    postgis_enabled: body.postgis_enabled ? 1 : 0,
  });
  context.store.insert("databases", { cluster: row.id, name: firstDatabase, created_at: row.created_at });
  insertUser(context, row, firstUser, "schema_admin");
  context.postgres.create(clusterOf(row));
  return { data: clusterAnswer(context, row, org) };
}

function remove(input: Input<Group["delete"]>): void {
  const { context } = input;
  const row = changeCluster(context, liveClusterOf(input), { status: "deleting" });
  context.postgres.destroy(clusterOf(row));
}

/** An App by name, of the caller's organization. */
function attachable({ context, caller }: Asking, name: string): AppRow {
  const app = context.store.get<AppRow>("SELECT * FROM apps WHERE name = ? AND deleting = 0", name);
  if (!app || app.org !== caller.org) throw refuse(404, "App not found");
  return app;
}

/** The rules of the cluster operations. */
export const postgres: Rules<Group> = {
  list(input) {
    const { context, query } = input;
    const org = orgOf(input, query.org_slug);
    const all = context.store.all<ClusterRow>("SELECT * FROM clusters WHERE org = ? ORDER BY number", org.id);
    const shown = all.filter(({ status }) => query.include_deleted === true || status !== "deleted");
    return { data: shown.map((row) => summary(context, row)) };
  },

  create,
  get: (input) => ({ data: clusterAnswer(input.context, liveClusterOf(input), callerOrg(input)) }),
  delete: remove,

  attach(input) {
    const { context, body } = input;
    const cluster = liveClusterOf(input);
    if (body.app_name === undefined) throw refuse(422, "invalid app_name, got nothing, must be the name of an app");
    const app = attachable(input, body.app_name);
    const find = () =>
      context.store.get<{ attached_at: number }>(
        "SELECT attached_at FROM attachments WHERE cluster = ? AND app = ?",
        cluster.id,
        app.id,
      );
    const answer = (attached_at: number) => ({
      data: { app_name: app.name, postgres_cluster_id: cluster.id, attached_at: rfc3339(attached_at) },
    });
    const before = find();
    if (before) return new Reply(answer(before.attached_at), { status: 200 });
    context.store.insert("attachments", { cluster: cluster.id, app: app.id, attached_at: context.clock.now() });
    context.store.touch(cluster.id);
    return answer(context.clock.now());
  },

  detach(input) {
    const { context, params } = input;
    const cluster = liveClusterOf(input);
    const app = attachable(input, params.app_name);
    const where = "FROM attachments WHERE cluster = ? AND app = ?";
    if (!context.store.get(`SELECT 1 ${where}`, cluster.id, app.id)) throw refuse(404, "Attachment not found");
    context.store.run(`DELETE ${where}`, cluster.id, app.id);
    context.store.touch(cluster.id);
  },

  ...contents,
  ...backups,
};
