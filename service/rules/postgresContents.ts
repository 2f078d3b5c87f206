// The contents of a Postgres cluster: databases, extensions, users (docs/interface.md#databases,
// docs/interface.md#extensions, docs/interface.md#users-and-credentials).
import type { contract } from "../../api/index.ts";
import { parseDuration } from "../../api/schema.ts";
import { insertDatabase, insertExtension, insertUser, passwordName, passwordOf } from "../lifecycle/clusterContents.ts";
import { clusterOf } from "../lifecycle/clusters.ts";
import { refuse } from "../refusal.ts";
import {
  ChangeRefused,
  type ClusterChange,
  type ExtensionOffer,
  type InstalledExtension,
} from "../runtime/postgresEngine.ts";
import type { ClusterRow, DatabaseUserRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import type { Asking } from "./find.ts";
import { liveClusterOf } from "./clusters.ts";
import { count } from "./counts.ts";
import { Deferred, type Rules } from "./rule.ts";
import { requireRole } from "./roles.ts";

type Group = typeof contract.postgres;
type ContentRules = Pick<
  Rules<Group>,
  | "listDatabases"
  | "createDatabase"
  | "deleteDatabase"
  | "listExtensions"
  | "installExtension"
  | "removeExtension"
  | "listUsers"
  | "createUser"
  | "updateUser"
  | "deleteUser"
  | "credentials"
  | "rotatePassword"
  | "activeQueries"
  | "slowQueries"
>;

/** The user that every cluster has from the start (docs/interface.md#users-and-credentials). */
export const firstUser = "fly-user";

// ASSUMED: the databases `postgres`, `template0`, `template1` and the users `postgres`, `repmgr`, `replication`, `pgbouncer` are reserved.
const reservedDatabases: readonly string[] = ["postgres", "template0", "template1"];
const reservedUsers: readonly string[] = ["postgres", "repmgr", "replication", "pgbouncer"];

// ASSUMED: a cluster has at most 100 databases and 100 users: lists show all of them, and every backup contains them.
const mostDatabases = 100;
const mostUsers = 100;

/** The cluster of the path, which must be ready. ASSUMED: requests for the contents of a cluster that is not ready are 503. */
function readyClusterOf(asking: Asking): ClusterRow {
  const row = liveClusterOf(asking);
  if (row.status !== "ready") throw refuse(503, `The cluster is not ready, its status is ${row.status}`);
  return row;
}

// ASSUMED: a request for a change of a cluster waits half a minute for its server, then it is 503, and the change is applied later.
const serverMs = 30_000;

/** Has the engine apply a change. The answer waits until its server has it, or refuses it with that status. */
function apply<T>(
  context: Context,
  row: ClusterRow,
  change: ClusterChange,
  answer: T,
  refusedWith = 422,
): T | Deferred<T> {
  // The row of the cluster stays the same, but an open page shows its contents.
  context.store.touch(row.id);
  const applied = context.postgres.change(clusterOf(row), change);
  if (!applied) return answer;
  const answered = inTime(context, applied).then(
    () => answer,
    (error: unknown) => {
      throw error instanceof ChangeRefused ? refuse(refusedWith, error.message) : error;
    },
  );
  // It is awaited only when the change is durable.
  answered.catch(() => {});
  return new Deferred(() => answered);
}

function inTime({ clock }: Context, applied: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = (): void =>
      reject(refuse(503, "The server of the cluster does not answer; the change is applied when it does"));
    const cancel = clock.after(serverMs, late);
    applied.finally(cancel).then(resolve, reject);
  });
}

/** The extensions of a ready cluster. */
function offersOf(context: Context, cluster: ClusterRow): readonly ExtensionOffer[] {
  const offers = context.postgres.extensions(clusterOf(cluster));
  if (!offers) throw refuse(503, "The server of the cluster does not answer");
  return offers;
}

const hasDatabase = (context: Context, cluster: string, name: string): boolean =>
  context.store.get("SELECT 1 FROM databases WHERE cluster = ? AND name = ?", cluster, name) !== undefined;

function databaseOf(asking: Asking): { readonly cluster: ClusterRow; readonly database: string } {
  const cluster = readyClusterOf(asking);
  const database = String(asking.params["database"]);
  if (!hasDatabase(asking.context, cluster.id, database)) throw refuse(404, "Database not found");
  return { cluster, database };
}

const findUser = (context: Context, cluster: string, name: string): DatabaseUserRow | undefined =>
  context.store.get<DatabaseUserRow>("SELECT * FROM database_users WHERE cluster = ? AND name = ?", cluster, name);

function userOf(asking: Asking): { readonly cluster: ClusterRow; readonly user: DatabaseUserRow } {
  const cluster = readyClusterOf(asking);
  const user = findUser(asking.context, cluster.id, String(asking.params["username"]));
  if (!user) throw refuse(404, "User not found");
  return { cluster, user };
}

const isPlatforms = () => refuse(400, `the user ${JSON.stringify(firstUser)} belongs to the platform`);
const noRole = () => refuse(422, "invalid role, got nothing, allowed are schema_admin, writer, reader");

interface Installed {
  readonly name: string;
  readonly schema: string;
  readonly version: string;
}

/** The rules of these operations. */
export const contents: ContentRules = {
  listDatabases(input) {
    const { id } = readyClusterOf(input);
    const sql = "SELECT name FROM databases WHERE cluster = ? ORDER BY created_at, name";
    return { data: input.context.store.all<{ name: string }>(sql, id) };
  },

  createDatabase(input) {
    const { context, body } = input;
    const cluster = readyClusterOf(input);
    const { name } = body;
    if (name === undefined) throw refuse(422, "invalid name, got nothing, must be the name of a database");
    if (reservedDatabases.includes(name)) throw refuse(400, `the database name ${JSON.stringify(name)} is reserved`);
    if (hasDatabase(context, cluster.id, name)) throw refuse(409, "Database already exists");
    if (count(context, "SELECT count(*) AS n FROM databases WHERE cluster = ?", cluster.id) >= mostDatabases)
      throw refuse(422, `a cluster has at most ${mostDatabases} databases, delete one first`);
    insertDatabase(context, cluster.id, name);
    return apply(context, cluster, { kind: "createDatabase", database: name }, { data: { name } });
  },

  deleteDatabase(input) {
    const { context, params } = input;
    readyClusterOf(input);
    if (reservedDatabases.includes(params.database))
      throw refuse(400, `the database ${JSON.stringify(params.database)} belongs to the platform`);
    const { cluster, database } = databaseOf(input);
    context.store.run("DELETE FROM databases WHERE cluster = ? AND name = ?", cluster.id, database);
    return apply(context, cluster, { kind: "dropDatabase", database }, { data: { name: database } });
  },

  listExtensions(input) {
    const { context } = input;
    const { cluster, database } = databaseOf(input);
    const sql = "SELECT name, schema, version FROM extensions WHERE cluster = ? AND database = ?";
    const installed = new Map(context.store.all<Installed>(sql, cluster.id, database).map((one) => [one.name, one]));
    return {
      data: offersOf(context, cluster)
        .filter(({ name, refused }) => refused !== true || installed.has(name))
        .map(({ name, version, description, system }) => {
          const found = system ? { schema: "pg_catalog", version } : installed.get(name);
          return {
            ...{ name, description, system },
            default_version: version,
            installed: found ? { schema: found.schema, version: found.version } : null,
          };
        }),
    };
  },

  installExtension(input) {
    const { context, body } = input;
    const { cluster, database } = databaseOf(input);
    // Also where no cluster can have it (docs/interface.md#extensions).
    if (body.name === "postgis" && cluster.postgis_enabled === 0)
      throw refuse(409, "PostGIS is not enabled for this cluster");
    const offer = offersOf(context, cluster).find(({ name }) => name === body.name);
    if (!offer) throw refuse(422, `unknown extension ${JSON.stringify(body.name?.slice(0, 80)) ?? "nothing"}`);
    const taken = "SELECT 1 FROM extensions WHERE cluster = ? AND database = ? AND name = ?";
    if (offer.system || context.store.get(taken, cluster.id, database, offer.name))
      throw refuse(409, "Extension is already installed");
    // ASSUMED: a schema other than `public` exists only if the request creates it; else it is 422.
    const schema = body.schema ?? "public";
    if (schema !== "public" && body.create_schema !== true)
      throw refuse(422, `schema ${JSON.stringify(schema)} does not exist`);
    const extension = { database, name: offer.name, schema, version: offer.version };
    insertExtension(context, cluster.id, extension);
    return apply(context, cluster, { kind: "installExtension", extension }, undefined);
  },

  removeExtension(input) {
    const { context, params, query } = input;
    const { cluster, database } = databaseOf(input);
    const offer = offersOf(context, cluster).find(({ name }) => name === params.extension);
    if (offer?.system) throw refuse(400, `the extension ${JSON.stringify(offer.name)} belongs to the platform`);
    const where = "FROM extensions WHERE cluster = ? AND database = ? AND name = ?";
    const extension = context.store.get<InstalledExtension>(
      `SELECT database, name, schema, version ${where}`,
      cluster.id,
      database,
      params.extension,
    );
    if (!extension) throw refuse(404, "Extension not found");
    context.store.run(`DELETE ${where}`, cluster.id, database, params.extension);
    // ASSUMED: an extension that other objects need is 409 without `force`.
    return apply(
      context,
      cluster,
      { kind: "removeExtension", extension: { ...extension }, force: query.force === true },
      undefined,
      409,
    );
  },

  activeQueries(input) {
    const { context, query } = input;
    const cluster = readyClusterOf(input);
    if (query.database !== undefined && !hasDatabase(context, cluster.id, query.database))
      throw refuse(404, "Database not found");
    return new Deferred(async () => ({
      data: [...(await context.postgres.activeQueries(clusterOf(cluster), query.database))],
    }));
  },

  slowQueries(input) {
    const { context, query } = input;
    const cluster = readyClusterOf(input);
    const withinMs = (parseDuration(query.range ?? "24h") ?? 0) / 1e6;
    return new Deferred(async () => ({
      data: [...(await context.postgres.slowQueries(clusterOf(cluster), withinMs))],
    }));
  },

  listUsers(input) {
    const { id } = readyClusterOf(input);
    const sql = "SELECT name AS username, role FROM database_users WHERE cluster = ? ORDER BY created_at, name";
    return { data: input.context.store.all<{ username: string; role: string }>(sql, id) };
  },

  createUser(input) {
    const { context, body } = input;
    const cluster = readyClusterOf(input);
    const { username, role } = body;
    if (username === undefined) throw refuse(422, "invalid username, got nothing, must be the name of a user");
    if (role === undefined) throw noRole();
    if (reservedUsers.includes(username)) throw refuse(400, `the user name ${JSON.stringify(username)} is reserved`);
    if (findUser(context, cluster.id, username)) throw refuse(409, "User already exists");
    if (count(context, "SELECT count(*) AS n FROM database_users WHERE cluster = ?", cluster.id) >= mostUsers)
      throw refuse(422, `a cluster has at most ${mostUsers} users, delete one first`);
    insertUser(context, cluster, username, role);
    return apply(context, cluster, { kind: "createUser", user: username }, { data: { username, role } });
  },

  updateUser(input) {
    const { context, body } = input;
    const { cluster, user } = userOf(input);
    if (body.role === undefined) throw noRole();
    // ASSUMED: the first user of a cluster cannot be deleted or change its role, so that a cluster always has an administrator.
    if (user.name === firstUser) throw isPlatforms();
    const sql = "UPDATE database_users SET role = ? WHERE cluster = ? AND name = ?";
    context.store.run(sql, body.role, cluster.id, user.name);
    return apply(context, cluster, { kind: "changeRole", user: user.name }, undefined);
  },

  deleteUser(input) {
    const { context } = input;
    const { cluster, user } = userOf(input);
    if (user.name === firstUser) throw isPlatforms();
    context.store.run("DELETE FROM database_users WHERE cluster = ? AND name = ?", cluster.id, user.name);
    return apply(context, cluster, { kind: "dropUser", user: user.name }, undefined);
  },

  credentials(input) {
    const { context } = input;
    const { cluster, user } = userOf(input);
    requireRole(input.caller, "deploy");
    const password = passwordOf(context, cluster.id, user.name);
    return { data: { username: user.name, password } };
  },

  rotatePassword(input) {
    const { context, body } = input;
    const { cluster, user } = userOf(input);
    const password = context.ids.password();
    const sealed = context.vault.seal(passwordName(cluster.id, user.name), password);
    const sql = "UPDATE database_users SET password = ? WHERE cluster = ? AND name = ?";
    context.store.run(sql, sealed, cluster.id, user.name);
    const endSessions = body.kill_sessions === true;
    const answer = { data: { username: user.name, password } };
    return apply(context, cluster, { kind: "setPassword", user: user.name, endSessions }, answer);
  },
};
