// Statements that a person asks a database in the console. Each has a connection of its own, as a user of the cluster, and bounds of
// time and size. Without `isWrite` its transaction only reads, and nothing of it is kept.
import pg from "pg";
import { StatementFailed, type Relation, type Statement, type StatementAnswer } from "../postgresEngine.ts";
import { asSuperuser, type Connect } from "./access.ts";
import { reasonOf } from "../../reasonOf.ts";
import { ownMark } from "./queries.ts";
import type { Session } from "./sessions.ts";
import { StatementQuery } from "./statementQuery.ts";

// ASSUMED: a statement of the console runs at most 10 seconds, and waits for locks at most 5.
const statementMs = 10_000;
const lockMs = 5000;

/** The settings of a connection go before those that its user or the owner of the database chose. */
const settingsOf = (isWrite: boolean): Session["settings"] => ({
  statement_timeout: String(statementMs),
  lock_timeout: String(lockMs),
  // The server ends what the service does not read any more.
  idle_in_transaction_session_timeout: String(2 * statementMs),
  // Windows cannot tell, and refuses the setting there.
  ...(process.platform === "win32" ? {} : { client_connection_check_interval: "1000" }),
  default_transaction_read_only: isWrite ? "off" : "on",
  // The text for the audit is taken apart by the same rule.
  standard_conforming_strings: "on",
  client_encoding: "UTF8",
});

/** Does work over a connection of its own as a user, which the signal ends. */
export async function asUser<T>(
  connect: Connect,
  open: (session: Session) => Promise<pg.Client>,
  { user, isWrite, signal }: Omit<Statement, "text">,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = await open({ user, settings: settingsOf(isWrite) }).catch((error: unknown) => {
    throw new StatementFailed(reasonOf(error));
  });
  const { processID } = client as unknown as { readonly processID: number };
  // A server continues with a statement although its client has gone.
  const end = (): void =>
    void asSuperuser(connect, (admin) =>
      admin.query("SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid = $1 AND usename = $2", [
        processID,
        user,
      ]),
    ).catch(() => client.connection.stream.destroy());
  signal.addEventListener("abort", end);
  try {
    if (signal.aborted) throw new StatementFailed("it was cancelled");
    return await work(client);
  } catch (error) {
    const failed = error instanceof StatementFailed ? error : failure(error);
    throw signal.aborted ? new StatementFailed("it was cancelled", failed.details) : failed;
  } finally {
    signal.removeEventListener("abort", end);
    await client.end().catch(() => {});
  }
}

function failure(error: unknown, isUnderstood = false): StatementFailed {
  if (!(error instanceof pg.DatabaseError)) return new StatementFailed(reasonOf(error), { isUnderstood });
  const { code, position, detail, hint } = error;
  return new StatementFailed(error.message, {
    ...(code === undefined ? {} : { code }),
    ...(position === undefined ? {} : { position: Number(position) }),
    ...(detail === undefined ? {} : { detail }),
    ...(hint === undefined ? {} : { hint }),
    isUnderstood,
  });
}

/** What ends sessions of others is no change of data, so a transaction that only reads would allow it. */
const endsSessions = /pg_(?:terminate|cancel)_backend/i;

/** Runs a statement. */
export async function run(client: pg.Client, { text, isWrite }: Statement): Promise<StatementAnswer> {
  if (!isWrite && endsSessions.test(text))
    throw new StatementFailed("it ends what others do; choose to write for that");
  // Once a transaction has read something, the server does not let it begin to write.
  await client.query(isWrite ? "BEGIN" : `BEGIN READ ONLY; SELECT ${ownMark} pg_catalog.txid_current_if_assigned()`);
  const query = new StatementQuery(text, isWrite);
  const answer = await client.query(query).result.catch((error: unknown) => {
    throw error instanceof StatementFailed ? error : failure(error, query.isUnderstood);
  });
  const types = await typesOf(client, query.fields);
  await client.query(isWrite ? "COMMIT" : "ROLLBACK").catch((error: unknown) => {
    throw failure(error, true);
  });
  return { ...answer, columns: query.fields.map(({ name }, i) => ({ name, type: types[i] ?? "" })) };
}

/** The names of types, as SQL has them. */
async function typesOf(client: pg.Client, fields: readonly pg.FieldDef[]): Promise<readonly string[]> {
  if (fields.length === 0) return [];
  const { rows } = await client.query<{ name: string }>(
    `SELECT ${ownMark} pg_catalog.format_type(f.type, f.modifier) AS name
       FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int4[])) WITH ORDINALITY AS f (type, modifier, n)
      ORDER BY f.n`,
    [fields.map(({ dataTypeID }) => dataTypeID), fields.map(({ dataTypeModifier }) => dataTypeModifier)],
  );
  return rows.map(({ name }) => name);
}

/** The tables and views that the user of a connection may read. */
export async function relationsOf(client: pg.Client, most: number): Promise<readonly Relation[]> {
  await client.query("BEGIN READ ONLY; SET LOCAL search_path = pg_catalog, pg_temp");
  const { rows } = await client.query<Omit<Relation, "bytes"> & { readonly bytes: string }>(
    `SELECT ${ownMark} n.nspname AS schema, c.relname AS name,
            CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END AS kind,
            CASE WHEN c.relkind IN ('v', 'f') OR c.reltuples < 0 THEN NULL ELSE c.reltuples::float8 END AS rows,
            CASE WHEN c.relkind IN ('v', 'f') THEN 0 ELSE coalesce(pg_total_relation_size(c.oid), 0) END AS bytes,
            (SELECT coalesce(json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'isRequired', a.attnotnull)
                                      ORDER BY a.attnum), '[]')
               FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
            (SELECT coalesce(json_agg(json_build_object('name', i.relname, 'definition', pg_get_indexdef(x.indexrelid)) ORDER BY i.relname), '[]')
               FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid) AS indexes,
            (SELECT coalesce(json_agg(a.attname ORDER BY k.n), '[]')
               FROM pg_index x, unnest(x.indkey) WITH ORDINALITY AS k (attnum, n), pg_attribute a
              WHERE x.indrelid = c.oid AND x.indisprimary AND a.attrelid = c.oid AND a.attnum = k.attnum) AS key
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
        AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
      ORDER BY n.nspname, c.relname LIMIT $1`,
    [most],
  );
  return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }));
}
