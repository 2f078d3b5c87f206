// What a server says about its queries and its size.
import type pg from "pg";
import type { RunningQuery, ServerLoad, SlowQuery } from "../postgresEngine.ts";
import { operatorRoles, superuser, visitor } from "./settings.ts";

/** The roles of the service, whose queries are not those of clients. */
const own = [superuser, visitor, ...operatorRoles];

/** Marks what the service itself asks as a user of clients, so that it is not listed as theirs. */
export const ownMark = "/* machines-service */";

/** The queries that run, longest first. */
export async function activeQueries(admin: pg.Client, database: string | undefined): Promise<RunningQuery[]> {
  const { rows } = await admin.query<Omit<RunningQuery, "started_at"> & { readonly started_at: Date }>(
    `SELECT pid, datname AS database, usename AS username, state, query, query_start AS started_at
       FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND usename <> ALL ($1) AND state <> 'idle' AND ($2::text IS NULL OR datname = $2)
      ORDER BY query_start`,
    [own, database ?? null],
  );
  return rows.map((row) => ({ ...row, started_at: row.started_at.toISOString().replace(/\.\d+Z$/, "Z") }));
}

/** What the server does now. */
export async function loadOf(admin: pg.Client): Promise<ServerLoad | undefined> {
  const { rows } = await admin.query<ServerLoad>(
    `SELECT count(*)::int AS connections, current_setting('max_connections')::int AS most,
            (count(*) FILTER (WHERE state <> 'idle'))::int AS active,
            (count(*) FILTER (WHERE state = 'active' AND clock_timestamp() - query_start > interval '1 second'))::int AS slow
       FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename <> ALL ($1)`,
    [own],
  );
  return rows[0];
}

// ASSUMED: the slowest 50 queries are shown, each with its first 10,000 characters. Clients choose their length.
const mostSlow = 50;
const longestQuery = 10_000;
// ASSUMED: what drivers and poolers send for their sessions and transactions is no query of a client.
const ofSessions = String.raw`'^\s*(discard|set|reset|show|begin|start transaction|commit|end|rollback|abort|savepoint|release|deallocate|close|unlisten)\M'`;

/**
 * The slowest queries. The server counts from its beginning, so what it had counted before the time is subtracted.
 * ASSUMED: `range` of slow queries is exact to the hour, in which counts are kept.
 */
export async function slowQueries(admin: pg.Client, withinMs: number): Promise<SlowQuery[]> {
  const { rows } = await admin.query<SlowQuery>(
    `WITH before AS (
       SELECT DISTINCT ON (userid, dbid, queryid, toplevel) * FROM public.statement_history
        WHERE at <= now() - $1 * interval '1 millisecond'
        ORDER BY userid, dbid, queryid, toplevel, at DESC
     ), counted AS (
       SELECT left(s.query, ${longestQuery}) AS query, (s.calls - coalesce(b.calls, 0))::int AS calls, s.total_exec_time - coalesce(b.total_ms, 0) AS total_ms
         FROM public.pg_stat_statements s JOIN pg_roles u ON u.oid = s.userid LEFT JOIN before b USING (userid, dbid, queryid, toplevel)
        WHERE u.rolname <> ALL ($2) AND s.query !~* ${ofSessions} AND strpos(s.query, $3) = 0
     )
     SELECT query, calls, total_ms, total_ms / calls AS mean_ms FROM counted WHERE calls > 0
      ORDER BY mean_ms DESC, query LIMIT ${mostSlow}`,
    [withinMs, own, ownMark],
  );
  return rows;
}

/** Keeps what the server has counted until now, for a month. */
export async function keepCounts(admin: pg.Client): Promise<void> {
  await admin.query("DELETE FROM public.statement_history WHERE at < now() - interval '31 days'");
  await admin.query(`INSERT INTO public.statement_history
    SELECT now(), userid, dbid, queryid, toplevel, calls, total_exec_time FROM public.pg_stat_statements`);
}

/** Bytes of all databases. */
export async function storedBytes(admin: pg.Client): Promise<number> {
  const { rows } = await admin.query<{ bytes: string }>("SELECT sum(pg_database_size(oid)) AS bytes FROM pg_database");
  return Number(rows[0]?.bytes ?? 0);
}
