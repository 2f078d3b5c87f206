// The users of a server, and their roles.
import pg from "pg";
import { asSuperuser, inDatabase, type Access, type Connect } from "./access.ts";
import { reasonOf } from "../../reasonOf.ts";
import { isLost } from "./postgresError.ts";
import { verifierFor } from "./scram.ts";
import { groupOf, owner } from "./sessions.ts";
import { operatorRoles, superuser, systemDatabases, visitor } from "./settings.ts";

const { escapeIdentifier: name, escapeLiteral: literal } = pg;

/** Roles that do not belong to clients. */
export const systemRoles: readonly string[] = [superuser, visitor, ...operatorRoles];

/**
 * ASSUMED: a `reader` reads what the administrators create, a `writer` also changes rows there, and a `schema_admin` owns all
 * databases, so that it also creates, changes and removes what is in them. PostgreSQL's own roles for all data would also show the
 * verifiers of all passwords.
 */
const groups = ["reader", "writer", "schema_admin"];
const [reader, writer] = [groupOf("reader"), groupOf("writer")];

/** Rights of readers and writers in what the owner has, by its kind. */
const rights = [
  { kind: "SCHEMA", of: "USAGE", to: `${reader}, ${writer}` },
  { kind: "TABLE", of: "SELECT", to: reader },
  { kind: "TABLE", of: "SELECT, INSERT, UPDATE, DELETE", to: writer },
  { kind: "SEQUENCE", of: "SELECT", to: reader },
  { kind: "SEQUENCE", of: "SELECT, UPDATE, USAGE", to: writer },
] as const;

/** What `prepare` has done, as a comment on the role of the service. With another text it is done again. */
const preparation = "prepared 2";

/** The comment while readers and writers have no rights yet in some databases, by their `oid`. */
const pending = "rights pending in ";

const exists = async (admin: pg.Client, sql: string, ...values: readonly string[]): Promise<boolean> =>
  (await admin.query(sql, [...values])).rowCount === 1;

const hasRole = (admin: pg.Client, role: string): Promise<boolean> =>
  exists(admin, "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1", role);

/** Reports what could not be done, and is tried again at the next start. */
export type Report = (what: { readonly reason: string; readonly database?: string }, message: string) => void;

/**
 * Prepares a server: the groups, the service's roles, the extensions of every database, and the tables of the service. Without a
 * password, the service enters the databases of clients by a certificate.
 */
export async function prepare(access: Access, report: Report, password?: string): Promise<void> {
  const { admin, connect } = access;
  const { rows } = await admin.query<{ comment: string | null }>(
    "SELECT shobj_description(oid, 'pg_authid') AS comment FROM pg_catalog.pg_roles WHERE rolname = $1",
    [visitor],
  );
  const done = rows[0]?.comment ?? "";
  if (done !== preparation) {
    await createRoles(admin, password === undefined ? undefined : await verifierFor(password, undefined));
    // At the same time, because a client waits for the cluster.
    await Promise.all([prepareTemplate(connect), prepareOwn(admin)]);
    await replaceOldRights(access, done, report);
  }
  await sweep(access, report);
}

async function createRoles(admin: pg.Client, verifier: string | undefined): Promise<void> {
  for (const role of [...groups.map(groupOf), visitor])
    if (!(await hasRole(admin, role))) await admin.query(`CREATE ROLE ${role}`);
  // The role may not keep its statements out of the statistics itself, and they would be counted as those of the administrators.
  await admin.query(`GRANT pg_monitor TO ${owner};
    ALTER ROLE ${visitor} LOGIN PASSWORD ${verifier === undefined ? "NULL" : literal(verifier)};
    ALTER ROLE ${visitor} SET pg_stat_statements.track = 'none';
    GRANT pg_use_reserved_connections TO ${visitor};
    GRANT ${owner} TO ${visitor} WITH INHERIT FALSE, SET TRUE`);
}

const extend = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public";

/** New databases are copies of a template. */
async function prepareTemplate(connect: Connect): Promise<void> {
  const defaults = rights.map(
    ({ kind, of, to }) => `ALTER DEFAULT PRIVILEGES FOR ROLE ${owner} GRANT ${of} ON ${kind}S TO ${to}`,
  );
  const statements = [extend, ...defaults, `GRANT USAGE ON SCHEMA public TO ${reader}, ${writer}`];
  await asSuperuser(connect, (client) => client.query(statements.join("; ")), "template1");
}

async function prepareOwn(admin: pg.Client): Promise<void> {
  await admin.query(`${extend};
    REVOKE CONNECT ON DATABASE template1, ${superuser} FROM PUBLIC;
    CREATE TABLE IF NOT EXISTS public.statement_history (
      at timestamptz NOT NULL, userid oid NOT NULL, dbid oid NOT NULL, queryid bigint, toplevel boolean NOT NULL,
      calls bigint NOT NULL, total_ms double precision NOT NULL)`);
}

/**
 * Earlier versions gave the groups PostgreSQL's roles for all data. Their members get the same rights in what is there already. And
 * the statistics had the service's own statements, in which the verifiers of passwords are. A database whose owner has closed it,
 * for example, gets the rights at a later start.
 */
async function replaceOldRights(access: Access, done: string, report: Report): Promise<void> {
  const { admin } = access;
  const before = `SELECT 1 FROM pg_catalog.pg_auth_members
    WHERE roleid = 'pg_read_all_data'::regrole AND member = '${reader}'::regrole`;
  const isOld = await exists(admin, before);
  const left: number[] = [];
  for (const { oid, database } of await withoutRights(admin, isOld, done)) {
    const message = "readers and writers did not get their rights in a database";
    const grant = () => inDatabase(access, database, "administrator", grantRights);
    if (!(await orReport(report, { database }, message, grant))) left.push(oid);
  }
  if (isOld) for (const user of await usersOf(admin)) await admin.query(membership(user.name, user.role).join("; "));
  const withdraw = [
    `REVOKE pg_read_all_data, pg_write_all_data FROM ${groups.map(groupOf).join(", ")}`,
    `SELECT public.pg_stat_statements_reset('${superuser}'::regrole::oid)`,
  ];
  const comment = left.length === 0 ? preparation : `${pending}${left.join(" ")}`;
  // In one transaction: without the old rights, only the comment tells where the new ones are missing.
  await admin.query([...(isOld ? withdraw : []), `COMMENT ON ROLE ${visitor} IS ${literal(comment)}`].join("; "));
}

/** The databases that an earlier version left without the rights. In others, the administrators may have taken rights away since. */
async function withoutRights(
  admin: pg.Client,
  isOld: boolean,
  done: string,
): Promise<{ oid: number; database: string }[]> {
  const oids = done.startsWith(pending) ? done.slice(pending.length).split(" ") : [];
  const { rows } = await admin.query<{ oid: number; database: string }>(
    `SELECT oid, datname AS database FROM pg_catalog.pg_database
      WHERE datname <> ALL ($1) AND ($2 OR oid = ANY ($3::oid[])) ORDER BY oid`,
    [systemDatabases, isOld, oids],
  );
  return rows;
}

/** Gives readers and writers their rights in what the owner has in a database. */
async function grantRights(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ kind: string; names: string }>(
    `WITH owned AS (
       SELECT 'SCHEMA' AS kind, format('%I', nspname) AS name, nspowner AS owner FROM pg_catalog.pg_namespace
        WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
       UNION ALL
       SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, format('%I.%I', nspname, relname), relowner
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE relkind IN ('r', 'v', 'm', 'f', 'p', 'S') AND nspname !~ '^pg_' AND nspname <> 'information_schema'
     )
     SELECT kind, string_agg(name, ', ') AS names FROM owned WHERE pg_has_role(owner, 'USAGE') GROUP BY kind`,
  );
  const defaults = rights.map(({ kind, of, to }) => `ALTER DEFAULT PRIVILEGES GRANT ${of} ON ${kind}S TO ${to}`);
  const now = rows.flatMap(({ kind, names }) =>
    rights.filter((right) => right.kind === kind).map(({ of, to }) => `GRANT ${of} ON ${kind} ${names} TO ${to}`),
  );
  await client.query([...defaults, ...now].join("; "));
}

/** Does work whose failure is only reported, unless the server has ended; true if it succeeded. */
async function orReport(
  report: Report,
  about: { readonly database?: string },
  message: string,
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (isLost(error)) throw error;
    report({ ...about, reason: reasonOf(error) }, message);
    return false;
  }
}

/** Ends the connections of a user, and waits for their end. */
export async function endSessions(admin: pg.Client, user: string): Promise<void> {
  const sql = "SELECT pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity WHERE usename = $1";
  await admin.query(sql, [user]);
}

/** Creates a user, or changes its password and role. */
export async function ensureUser(admin: pg.Client, user: string, role: string, password: string): Promise<void> {
  const { rows } = await admin.query<{ verifier: string | null }>(
    "SELECT rolpassword AS verifier FROM pg_catalog.pg_authid WHERE rolname = $1",
    [user],
  );
  const verb = rows[0] ? "ALTER" : "CREATE";
  // A pooler that has let a client in can use the verifier as long as it stays the same.
  const verifier = await verifierFor(password, rows[0]?.verifier);
  const before = await roleOf(admin, user);
  // In one transaction: a user that the server refuses leaves no role.
  await admin.query(
    [
      `${verb} ROLE ${name(user)} LOGIN PASSWORD ${literal(verifier)}`,
      ...(before === role ? [] : membership(user, role)),
    ].join("; "),
  );
  // A session keeps the rights that it began with.
  if (before !== undefined && before !== role) await endSessions(admin, user);
}

/** The statements that make a user a member of the group of its role, and of no other one. */
function membership(user: string, role: string): string[] {
  const [one, group] = [name(user), groupOf(role)];
  const isOwner = group === owner;
  const others = groups.map(groupOf).filter((other) => other !== group);
  return [
    `REVOKE ${others.join(", ")} FROM ${one}`,
    // What others create belongs to the administrators too.
    isOwner ? `REVOKE ${one} FROM ${owner}` : `GRANT ${one} TO ${owner}`,
    `GRANT ${group} TO ${one}`,
    // What an administrator creates belongs to all of them, and stays when the user is deleted.
    `ALTER ROLE ${one} ${isOwner ? `SET role TO ${literal(owner)}` : "RESET role"}`,
  ];
}

async function roleOf(admin: pg.Client, user: string): Promise<string | undefined> {
  const { rows } = await admin.query<{ rolname: string }>(
    `SELECT g.rolname FROM pg_catalog.pg_auth_members m
       JOIN pg_catalog.pg_roles g ON g.oid = m.roleid JOIN pg_catalog.pg_roles u ON u.oid = m.member
      WHERE u.rolname = $1 AND g.rolname = ANY ($2)`,
    [user, groups.map(groupOf)],
  );
  return rows[0]?.rolname.slice(1);
}

/** The users of a server. */
export async function usersOf(admin: pg.Client): Promise<{ name: string; role: string }[]> {
  const { rows } = await admin.query<{ rolname: string }>(
    "SELECT rolname FROM pg_catalog.pg_roles WHERE rolcanlogin AND rolname <> ALL ($1) ORDER BY oid",
    [systemRoles],
  );
  const users: { name: string; role: string }[] = [];
  // ASSUMED: a role that a client created in SQL, without one of the three roles, is a reader of a copy.
  for (const { rolname } of rows) users.push({ name: rolname, role: (await roleOf(admin, rolname)) ?? "reader" });
  return users;
}

/** Roles of deleted users, with a name that no user can have. */
const removed = "_removed_";

/**
 * Removes a user. What it owns belongs to the administrators from then on. No database of clients is needed for that, because its
 * owner may have closed it: the user is gone at once, and what is left of its role is removed as soon as possible.
 */
export async function dropUser(access: Access, user: string, report: Report): Promise<void> {
  const { admin } = access;
  const { rows } = await admin.query<{ oid: number }>("SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $1", [user]);
  if (rows[0]) {
    const [one, later] = [name(user), `${removed}${rows[0].oid}`];
    await admin.query(
      [
        `ALTER ROLE ${one} NOLOGIN PASSWORD NULL`,
        `ALTER ROLE ${one} RESET ALL`,
        `REVOKE ${groups.map(groupOf).join(", ")} FROM ${one}`,
        `GRANT ${one} TO ${owner}`,
        `ALTER ROLE ${one} RENAME TO ${later}`,
      ].join("; "),
    );
    await endSessions(admin, later);
  }
  await sweep(access, report);
}

/** Removes what is left of deleted users. */
async function sweep(access: Access, report: Report): Promise<void> {
  const { rows } = await access.admin.query<{ role: string; databases: string[] }>(
    `SELECT r.rolname AS role, array(
         SELECT DISTINCT datname::text FROM pg_catalog.pg_shdepend s JOIN pg_catalog.pg_database d ON d.oid = s.dbid
          WHERE s.refclassid = 'pg_catalog.pg_authid'::regclass AND s.refobjid = r.oid) AS databases
       FROM pg_catalog.pg_roles r WHERE starts_with(r.rolname, $1)`,
    [removed],
  );
  for (const { role, databases } of rows)
    await orReport(report, {}, "the role of a deleted user could not be removed yet", () =>
      removeRole(access, role, databases),
    );
}

async function removeRole(access: Access, role: string, databases: readonly string[]): Promise<void> {
  const release = (client: pg.Client) =>
    client.query(`REASSIGN OWNED BY ${name(role)} TO ${owner}; DROP OWNED BY ${name(role)}`);
  for (const database of databases) await inDatabase(access, database, "administrator", release);
  // Rights in databases themselves.
  await release(access.admin);
  await access.admin.query(`DROP ROLE ${name(role)}`);
}
