// Databases and extensions in a server.
import pg from "pg";
import {
  ChangeRefused,
  type ClusterContents,
  type ExtensionOffer,
  type InstalledExtension,
} from "../postgresEngine.ts";
import { databasesOf, inDatabase, type Access } from "./access.ts";
import { codeOf } from "../errorCode.ts";
import { reasonOf } from "../../reasonOf.ts";
import { owner } from "./sessions.ts";
import { systemRoles, usersOf } from "./users.ts";

const { escapeIdentifier: name } = pg;

/** Extensions that every database has. */
const systemExtensions: readonly string[] = ["plpgsql", "pg_stat_statements"];

/** Creates a database unless it exists. */
export async function ensureDatabase(admin: pg.Client, database: string): Promise<void> {
  const sql = "SELECT 1 FROM pg_catalog.pg_database WHERE datname = $1";
  if ((await admin.query(sql, [database])).rowCount === 1) return;
  await admin.query(`CREATE DATABASE ${name(database)} OWNER ${owner}`);
}

/** Removes a database; its connections end. */
export async function dropDatabase(admin: pg.Client, database: string): Promise<void> {
  await admin.query(`DROP DATABASE IF EXISTS ${name(database)} WITH (FORCE)`);
}

const insufficientPrivilege = "42501";

/** Installs an extension unless it is installed. Its script runs among objects of clients, so it has to be one that PostgreSQL trusts. */
export async function installExtension(access: Access, { database, name: extension, schema }: InstalledExtension) {
  await inDatabase(access, database, "administrator", async (client) => {
    // In one transaction: an extension that is refused leaves no schema.
    const schemaName = name(schema);
    await client
      .query(
        `CREATE SCHEMA IF NOT EXISTS ${schemaName}; CREATE EXTENSION IF NOT EXISTS ${name(extension)} SCHEMA ${schemaName}`,
      )
      .catch(explaining(/to create extension/, notTrusted(extension)));
  });
}

const notTrusted = (extension: string): string =>
  `the extension ${JSON.stringify(extension)} is not trusted by PostgreSQL: only a superuser could install it, and no superuser enters the databases of a cluster`;

const notOurs = (extension: string): string =>
  `the extension ${JSON.stringify(extension)} does not belong to the administrators, but to the user who created it, or to the superuser if an earlier version of the service installed it; it is removed with its database`;

/** Refuses a change for which a right is missing, in words that say why. */
const explaining =
  (pattern: RegExp, message: string) =>
  (error: unknown): never => {
    throw codeOf(error) === insufficientPrivilege && pattern.test(reasonOf(error)) ? new ChangeRefused(message) : error;
  };

/** Removes an extension; with `force`, also what needs it. */
export async function removeExtension(
  access: Access,
  { database, name: extension }: InstalledExtension,
  force: boolean,
): Promise<void> {
  await inDatabase(access, database, "administrator", (client) =>
    client
      .query(`DROP EXTENSION IF EXISTS ${name(extension)}${force ? " CASCADE" : ""}`)
      .catch(explaining(/owner of extension/, notOurs(extension))),
  );
}

/** Databases of a server, and the form in which it stores the passwords of its users. */
export interface Logins {
  readonly databases: readonly string[];
  readonly users: readonly { readonly name: string; readonly verifier: string }[];
}

/** What a pooler needs to know of a server. */
export async function loginsOf(admin: pg.Client): Promise<Logins> {
  const { rows } = await admin.query<{ name: string; verifier: string }>(
    `SELECT rolname AS name, rolpassword AS verifier FROM pg_catalog.pg_authid
      WHERE rolcanlogin AND rolname <> ALL ($1) AND rolpassword LIKE 'SCRAM-SHA-256$%'`,
    [systemRoles],
  );
  return { databases: await databasesOf(admin), users: rows };
}

/**
 * What a server contains. ASSUMED: a database to which nobody can connect has the extensions that the service knows.
 */
export async function contentsOf(access: Access, known: Pick<ClusterContents, "extensions">): Promise<ClusterContents> {
  const { admin } = access;
  const databases = await databasesOf(admin);
  const { rows } = await admin.query<{ datname: string }>(
    // The limit is -2 once the removal of a database was interrupted.
    "SELECT datname FROM pg_catalog.pg_database WHERE NOT datallowconn OR datconnlimit IN (0, -2)",
  );
  const closed = new Set(rows.map(({ datname }) => datname));
  const extensions: InstalledExtension[] = [];
  for (const database of databases)
    extensions.push(
      ...(closed.has(database)
        ? known.extensions.filter((extension) => extension.database === database)
        : await extensionsOf(access, database)),
    );
  return { databases, extensions, users: await usersOf(admin) };
}

const extensionsOf = (access: Access, database: string): Promise<InstalledExtension[]> =>
  inDatabase(access, database, "visitor", async (client) => {
    const { rows } = await client.query<Omit<InstalledExtension, "database">>(
      `SELECT e.extname AS name, n.nspname AS schema, e.extversion AS version
         FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname <> ALL ($1) ORDER BY 1`,
      [systemExtensions],
    );
    return rows.map((row) => ({ database, ...row }));
  });

/** The extensions that a server has. */
export async function offersOf(admin: pg.Client): Promise<ExtensionOffer[]> {
  const { rows } = await admin.query<Omit<ExtensionOffer, "system">>(
    `SELECT e.name, e.default_version AS version, coalesce(e.comment, '') AS description,
            v.superuser AND NOT v.trusted AND e.name <> ALL ($1) AS refused
       FROM pg_catalog.pg_available_extensions e
       JOIN pg_catalog.pg_available_extension_versions v ON v.name = e.name AND v.version = e.default_version
      ORDER BY e.name`,
    [systemExtensions],
  );
  return rows.map((row) => ({ ...row, system: systemExtensions.includes(row.name) }));
}
