// The archive of the changes of a cluster, which a restore to a time reads.
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { markNow } from "../postgres/copies.ts";

const pauseMs = 200;
const longestMs = 60_000;

/**
 * Resolves when the archive of a server has all changes until a time, and a later one, at which the restore ends.
 * @throws Error with a sentence if that takes too long, or the server's clock is not that far.
 */
export async function archiveUntil(client: pg.Client, time: number, signal: AbortSignal): Promise<void> {
  const ask = async <T>(sql: string, values: unknown[]): Promise<T | undefined> =>
    (await client.query<{ answer: T }>(sql, values)).rows[0]?.answer;
  const isPast = "SELECT pg_catalog.clock_timestamp() > pg_catalog.to_timestamp($1::float8 / 1000) AS answer";
  if (!(await ask<boolean>(isPast, [time]))) throw new Error("the clock of the source has not reached the time yet");
  await markNow(client);
  const file = await ask<string>("SELECT pg_catalog.pg_walfile_name(pg_catalog.pg_switch_wal()) AS answer", []);
  const isWaiting =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_ls_archive_statusdir() WHERE name = $1 || '.ready') AS answer";
  for (const until = Date.now() + longestMs; await ask<boolean>(isWaiting, [file]);) {
    if (Date.now() > until) throw new Error(`the source does not archive its changes (${file})`);
    await sleep(pauseMs, undefined, { signal });
  }
}
