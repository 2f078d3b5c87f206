// Backups of a Postgres cluster, and clusters created from one (docs/interface.md#backups).
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../time/clock.ts";
import { passwordName } from "../lifecycle/clusterContents.ts";
import { clusterOf } from "../lifecycle/clusters.ts";
import { refuse } from "../refusal.ts";
import type { ClusterSource } from "../runtime/postgresEngine.ts";
import type { BackupRow, ClusterRow, DatabaseUserRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { callerOrg } from "./find.ts";
import { clusterAnswer, liveClusterOf, newCluster } from "./clusters.ts";
import { Reply, type Rules } from "./rule.ts";

type BackupRules = Pick<Rules<typeof contract.postgres>, "listBackups" | "createBackup" | "restore" | "fork">;

/** The contents of a cluster at one time; passwords stay encrypted for their cluster. */
interface Contents {
  readonly databases: readonly { readonly name: string; readonly created_at: number }[];
  readonly extensions: readonly {
    readonly database: string;
    readonly name: string;
    readonly schema: string;
    readonly version: string;
  }[];
  readonly users: readonly {
    readonly name: string;
    readonly role: string;
    readonly password: string;
    readonly created_at: number;
  }[];
}

function snapshotOf({ store }: Context, cluster: string): Contents {
  const users = store.all<DatabaseUserRow>("SELECT * FROM database_users WHERE cluster = ?", cluster);
  return {
    databases: store.all("SELECT name, created_at FROM databases WHERE cluster = ?", cluster),
    extensions: store.all("SELECT database, name, schema, version FROM extensions WHERE cluster = ?", cluster),
    users: users.map(({ name, role, password, created_at }) => ({
      ...{ name, role, created_at },
      password: Buffer.from(password).toString("base64"),
    })),
  };
}

/** Fills a new cluster; its users keep their passwords, as in a copy of the data. */
function fill(context: Context, row: ClusterRow, from: string, { databases, extensions, users }: Contents): void {
  for (const database of databases) context.store.insert("databases", { cluster: row.id, ...database });
  for (const extension of extensions) context.store.insert("extensions", { cluster: row.id, ...extension });
  for (const { name, role, password, created_at } of users) {
    const clear = context.vault.open(passwordName(from, name), Buffer.from(password, "base64"));
    const sealed = context.vault.seal(passwordName(row.id, name), clear);
    context.store.insert("database_users", { cluster: row.id, name, role, password: sealed, created_at });
  }
}

/**
 * The default name of a fork (docs/interface.md#backups). ASSUMED: a fork has the name of its cluster, shortened if
 * needed, and `-fork`.
 */
const forkOf = (name: string): string => `${name.slice(0, 58).replace(/-+$/, "")}-fork`;

/** A cluster with the properties of another and a new name. */
function like(context: Context, source: ClusterRow, name: string | undefined, begin: ClusterSource): ClusterRow {
  const { org, region, plan, disk_size_gb, pg_major_version, pool_mode, postgis_enabled } = source;
  const sizes = { region, plan, disk_size_gb, pg_major_version, pool_mode, postgis_enabled };
  return newCluster(context, org, { name, source: begin, ...sizes });
}

const shown = ({ id, type, status, size_bytes, started_at, finished_at }: ListedBackup) => ({
  ...{ id, type, status, size_bytes },
  started_at: rfc3339(started_at),
  finished_at: finished_at === null ? null : rfc3339(finished_at),
});

type ListedBackup = Omit<BackupRow, "contents">;

const backupsOf = (context: Context, cluster: string): ListedBackup[] =>
  context.store.all<ListedBackup>(
    `SELECT id, number, cluster, type, status, size_bytes, started_at, finished_at FROM backups
     WHERE cluster = ? ORDER BY number DESC`,
    cluster,
  );

/** ASSUMED: what an engine cannot do with backups is 422. */
function requireBackups({ postgres }: Context): void {
  if (postgres.noBackups !== undefined) throw refuse(422, postgres.noBackups);
}

/** The rules of backups, restore and fork. */
export const backups: BackupRules = {
  listBackups(input) {
    return { data: backupsOf(input.context, liveClusterOf(input).id).map(shown) };
  },

  createBackup(input) {
    const { context, body } = input;
    const cluster = liveClusterOf(input);
    if (body.type === undefined) throw refuse(422, "invalid type, got nothing, allowed are full, incr, diff");
    if (cluster.status !== "ready") throw refuse(503, `The cluster is not ready, its status is ${cluster.status}`);
    requireBackups(context);
    if (backupsOf(context, cluster.id).some(({ status }) => status === "running"))
      throw refuse(409, "A backup is already running");
    const row: BackupRow = {
      id: context.ids.backup(),
      number: (context.store.get<{ n: number | null }>("SELECT max(number) AS n FROM backups")?.n ?? 0) + 1,
      cluster: cluster.id,
      type: body.type,
      status: "running",
      size_bytes: null,
      contents: JSON.stringify(snapshotOf(context, cluster.id)),
      started_at: context.clock.now(),
      finished_at: null,
    };
    context.store.insert("backups", row);
    context.store.touch(cluster.id);
    context.postgres.backUp(clusterOf(cluster), row.id);
    return new Reply({ data: shown(row) });
  },

  restore(input) {
    const { context, body } = input;
    const source = liveClusterOf(input);
    const { backup_id, pitr_time } = body;
    requireBackups(context);
    if ((backup_id === undefined) === (pitr_time === undefined))
      throw refuse(422, "exactly one of backup_id and pitr_time must be given");
    const { noTimes } = context.postgres;
    if (pitr_time !== undefined && noTimes !== undefined) throw refuse(422, `invalid pitr_time, ${noTimes}`);
    const all = backupsOf(context, source.id).filter(({ status }) => status === "completed");
    // ASSUMED: a point in time of a cluster is restored from the latest backup before it; without one, and for a future time, the
    // request is 422. Answers give whole seconds: without an earlier backup, the second in which a backup ended means that backup.
    const time = pitr_time === undefined ? undefined : Date.parse(pitr_time);
    if (time !== undefined && time > context.clock.now()) throw refuse(422, "invalid pitr_time, it is in the future");
    const endedBefore = (end: number) =>
      all.find(({ finished_at }) => (finished_at ?? Number.POSITIVE_INFINITY) <= end);
    const backup =
      time === undefined
        ? all.find(({ id }) => id === backup_id)
        : (endedBefore(time) ?? (time % 1000 === 0 ? endedBefore(time + 999) : undefined));
    if (!backup && time === undefined) throw refuse(404, "Backup not found");
    if (!backup) throw refuse(422, "invalid pitr_time, there is no backup before it");
    const row = like(context, source, body.name, {
      cluster: source.id,
      backup: backup.id,
      ...(time === undefined ? {} : { time: Math.max(time, backup.finished_at ?? 0) }),
    });
    const sql = "SELECT contents FROM backups WHERE id = ?";
    const { contents = "{}" } = context.store.get<Pick<BackupRow, "contents">>(sql, backup.id) ?? {};
    fill(context, row, source.id, JSON.parse(contents) as Contents);
    context.postgres.create(clusterOf(row));
    return { data: clusterAnswer(context, row, callerOrg(input)) };
  },

  fork(input) {
    const { context, body } = input;
    const source = liveClusterOf(input);
    requireBackups(context);
    if (source.status !== "ready") throw refuse(409, `The cluster is not ready, its status is ${source.status}`);
    const row = like(context, source, body.name ?? forkOf(source.name), { cluster: source.id });
    fill(context, row, source.id, snapshotOf(context, source.id));
    context.postgres.create(clusterOf(row));
    return { data: clusterAnswer(context, row, callerOrg(input)) };
  },
};
