// Databases, roles and extensions in a server.
import pg from "pg";
import type { ClusterContents, ExtensionOffer, InstalledExtension } from "../postgresEngine.ts";
import { verifierFor } from "./scram.ts";
import { superuser } from "./settings.ts";

const { escapeIdentifier: name, escapeLiteral: literal } = pg;

/** Databases that do not belong to clients. */
const systemDatabases: readonly string[] = [superuser, "template0", "template1"];

/** Extensions that every database has. */
const systemExtensions: readonly string[] = ["plpgsql", "pg_stat_statements"];

/**
 * A role of the interface is a group, with a name that no user can have. ASSUMED: a `reader` reads all tables, a `writer` also
 * changes their rows, and a `schema_admin` owns all databases, so that it also creates, changes and removes what is in them.
 */
const groups = {
  reader: ["pg_read_all_data"],
  writer: ["pg_read_all_data", "pg_write_all_data"],
  schema_admin: ["pg_read_all_data", "pg_write_all_data", "pg_monitor"],
} as const;

const groupOf = (role: string): string => `_${role}`;
const owner = groupOf("schema_admin");

/** Opens a connection to a database of the server. */
export type Connect = (database: string) => Promise<pg.Client>;

/** Does work over a connection of its own to one database. */
export async function inDatabase<T>(
  connect: Connect,
  database: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = await connect(database);
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

const exists = async (admin: pg.Client, sql: string, value: string): Promise<boolean> =>
  (await admin.query(sql, [value])).rowCount === 1;

const hasRole = (admin: pg.Client, role: string): Promise<boolean> =>
  exists(admin, "SELECT 1 FROM pg_roles WHERE rolname = $1", role);

/** Prepares a new server: the groups, the extensions of every database, and the tables of the service. */
export async function prepare(admin: pg.Client, connect: Connect): Promise<void> {
  const templates = ["template1", superuser];
  const extend = (client: pg.Client) => client.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
  // At the same time, because a client waits for the cluster.
  await Promise.all([createGroups(admin), ...templates.map((database) => inDatabase(connect, database, extend))]);
  await admin.query(`REVOKE CONNECT ON DATABASE ${templates.join(", ")} FROM PUBLIC;
    CREATE TABLE IF NOT EXISTS statement_history (
      at timestamptz NOT NULL, userid oid NOT NULL, dbid oid NOT NULL, queryid bigint, toplevel boolean NOT NULL,
      calls bigint NOT NULL, total_ms double precision NOT NULL)`);
}

async function createGroups(admin: pg.Client): Promise<void> {
  for (const [role, rights] of Object.entries(groups)) {
    if (!(await hasRole(admin, groupOf(role)))) await admin.query(`CREATE ROLE ${name(groupOf(role))}`);
    await admin.query(`GRANT ${rights.join(", ")} TO ${name(groupOf(role))}`);
  }
}

/** Creates a database unless it exists. */
export async function ensureDatabase(admin: pg.Client, database: string): Promise<void> {
  if (await exists(admin, "SELECT 1 FROM pg_database WHERE datname = $1", database)) return;
  await admin.query(`CREATE DATABASE ${name(database)} OWNER ${name(owner)}`);
}

/** Removes a database; its connections end. */
export async function dropDatabase(admin: pg.Client, database: string): Promise<void> {
  await admin.query(`DROP DATABASE IF EXISTS ${name(database)} WITH (FORCE)`);
}

/** Ends the connections of a user. */
export async function endSessions(admin: pg.Client, user: string): Promise<void> {
  await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [user]);
}

/** Creates a user, or changes its password and role. */
export async function ensureUser(admin: pg.Client, user: string, role: string, password: string): Promise<void> {
  const { rows } = await admin.query<{ verifier: string | null }>(
    "SELECT rolpassword AS verifier FROM pg_authid WHERE rolname = $1",
    [user],
  );
  const verb = rows[0] ? "ALTER" : "CREATE";
  // A pooler that has let a client in can use the verifier as long as it stays the same.
  const verifier = await verifierFor(password, rows[0]?.verifier);
  await admin.query(`${verb} ROLE ${name(user)} LOGIN PASSWORD ${literal(verifier)}`);
  const before = await roleOf(admin, user);
  if (before === role) return;
  for (const group of Object.keys(groups))
    if (group !== role) await admin.query(`REVOKE ${name(groupOf(group))} FROM ${name(user)}`);
  await admin.query(`GRANT ${name(groupOf(role))} TO ${name(user)}`);
  // What an administrator creates belongs to all of them, and stays when the user is deleted.
  const asOwner = role === "schema_admin" ? `SET role TO ${literal(owner)}` : "RESET role";
  await admin.query(`ALTER ROLE ${name(user)} ${asOwner}`);
  // A session keeps the rights that it began with.
  if (before !== undefined) await endSessions(admin, user);
}

async function roleOf(admin: pg.Client, user: string): Promise<string | undefined> {
  const { rows } = await admin.query<{ rolname: string }>(
    `SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles u ON u.oid = m.member
      WHERE u.rolname = $1 AND g.rolname = ANY ($2)`,
    [user, Object.keys(groups).map(groupOf)],
  );
  return rows[0]?.rolname.slice(1);
}

/** Removes a user. What it owns belongs to the administrators from then on. */
export async function dropUser(admin: pg.Client, connect: Connect, user: string): Promise<void> {
  if (!(await hasRole(admin, user))) return;
  await admin.query(`ALTER ROLE ${name(user)} NOLOGIN`);
  await endSessions(admin, user);
  for (const database of await databasesOf(admin))
    await inDatabase(connect, database, async (client) => {
      await client.query(`REASSIGN OWNED BY ${name(user)} TO ${name(owner)}`);
      await client.query(`DROP OWNED BY ${name(user)}`);
    });
  await admin.query(`DROP ROLE ${name(user)}`);
}

/** Installs an extension unless it is installed. */
export async function installExtension(connect: Connect, { database, name: extension, schema }: InstalledExtension) {
  await inDatabase(connect, database, async (client) => {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${name(schema)} AUTHORIZATION ${name(owner)}`);
    await client.query(`CREATE EXTENSION IF NOT EXISTS ${name(extension)} SCHEMA ${name(schema)}`);
  });
}

/** Removes an extension; with `force`, also what needs it. */
export async function removeExtension(
  connect: Connect,
  { database, name: extension }: InstalledExtension,
  force: boolean,
): Promise<void> {
  await inDatabase(connect, database, (client) =>
    client.query(`DROP EXTENSION IF EXISTS ${name(extension)}${force ? " CASCADE" : ""}`),
  );
}

async function databasesOf(admin: pg.Client): Promise<string[]> {
  const { rows } = await admin.query<{ datname: string }>(
    "SELECT datname FROM pg_database WHERE datname <> ALL ($1) ORDER BY oid",
    [systemDatabases],
  );
  return rows.map(({ datname }) => datname);
}

/** Databases of a server, and the form in which it stores the passwords of its users. */
export interface Logins {
  readonly databases: readonly string[];
  readonly users: readonly { readonly name: string; readonly verifier: string }[];
}

/** What a pooler needs to know of a server. */
export async function loginsOf(admin: pg.Client): Promise<Logins> {
  const { rows } = await admin.query<{ name: string; verifier: string }>(
    `SELECT rolname AS name, rolpassword AS verifier FROM pg_authid
      WHERE rolcanlogin AND rolname <> $1 AND rolpassword LIKE 'SCRAM-SHA-256$%'`,
    [superuser],
  );
  return { databases: await databasesOf(admin), users: rows };
}

/** What a server contains. */
export async function contentsOf(admin: pg.Client, connect: Connect): Promise<ClusterContents> {
  const databases = await databasesOf(admin);
  const extensions: InstalledExtension[] = [];
  for (const database of databases)
    await inDatabase(connect, database, async (client) => {
      const { rows } = await client.query<Omit<InstalledExtension, "database">>(
        `SELECT e.extname AS name, n.nspname AS schema, e.extversion AS version
           FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
          WHERE e.extname <> ALL ($1) ORDER BY 1`,
        [systemExtensions],
      );
      extensions.push(...rows.map((row) => ({ database, ...row })));
    });
  const { rows } = await admin.query<{ rolname: string }>(
    "SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname <> $1 ORDER BY oid",
    [superuser],
  );
  const users: { name: string; role: string }[] = [];
  // ASSUMED: a role that a client created in SQL, without one of the three roles, is a reader of a copy.
  for (const { rolname } of rows) users.push({ name: rolname, role: (await roleOf(admin, rolname)) ?? "reader" });
  return { databases, extensions, users };
}

/** The extensions that a server can install. */
export async function offersOf(admin: pg.Client): Promise<ExtensionOffer[]> {
  const { rows } = await admin.query<Omit<ExtensionOffer, "system">>(
    `SELECT name, default_version AS version, coalesce(comment, '') AS description
       FROM pg_available_extensions ORDER BY name`,
  );
  return rows.map((row) => ({ ...row, system: systemExtensions.includes(row.name) }));
}
