// Copies of the data of a server that runs: backups, forks, and clusters restored from a backup or to a time.
import { existsSync } from "node:fs";
import { constants, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { copyWritten } from "./files.ts";
import { PostgresError } from "./postgresError.ts";
import { isBefore, writeRecovery } from "./recovery.ts";
import type { Paths } from "./paths.ts";
import type { Recovery } from "./settings.ts";
import { finish } from "./server.ts";

/** Folders whose contents a server writes again. */
const emptied: ReadonlySet<string> = new Set([
  ...["pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"],
]);
const leftOut: ReadonlySet<string> = new Set([
  ...["postmaster.pid", "postmaster.opts", "backup_label", "tablespace_map", "recovery.signal", "pg_internal.init"],
]);

const isLeftOut = (name: string): boolean => leftOut.has(name) || name.startsWith("pgsql_tmp");

/** What a copy has of the data of a server. */
const choose = (name: string) => (isLeftOut(name) ? "omit" : emptied.has(name) ? "empty" : "copy");

/**
 * Writes a consistent copy of a server's data into a folder, which exists only once the copy is complete. It needs the changes that
 * the server has kept since its begin. The connection must be used for nothing else.
 */
export async function copyServer(
  client: pg.Client,
  { data, wal }: Pick<Paths, "data" | "wal">,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  const draft = `${target}.draft`;
  await rm(draft, { recursive: true, force: true });
  await client.query("SELECT pg_backup_start('machines-service', fast => true)");
  await copyWritten(data, draft, choose);
  await mkdir(join(draft, "pg_wal", "archive_status"), { mode: 0o700 });
  const { rows } = await client.query<{ label: string; file: string }>(
    "SELECT labelfile AS label, pg_walfile_name(lsn) AS file FROM pg_backup_stop(wait_for_archive => false)",
  );
  // Without these changes the copy is of no use. The server itself would look for them only once a second.
  await untilKept(wal, rows[0]?.file, signal);
  await writeFile(join(draft, "backup_label"), rows[0]?.label ?? "", { mode: 0o600 });
  await rm(target, { recursive: true, force: true });
  await finish(draft, target);
}

/** Turns a copy of a server's data into the draft of another cluster, which recovers until the end of the copy, until a time, or completely. */
export async function draftFrom(
  copy: string,
  to: Paths,
  walFolder: string,
  until: Pick<Recovery, "time" | "toEnd">,
): Promise<void> {
  if (!existsSync(copy)) throw new PostgresError("the backup does not exist any more");
  if (copy !== to.draft) {
    await rm(to.draft, { recursive: true, force: true });
    await cp(copy, to.draft, { recursive: true, mode: constants.COPYFILE_FICLONE });
  }
  const signal = join(to.draft, "recovery.signal");
  await rm(signal, { force: true });
  await writeFile(signal, "", { mode: 0o600, flag: "wx" });
  await writeRecovery(to, { walFolder, ...until });
}

/** Keeps all changes of a server until now. */
export async function keepChanges(admin: pg.Client, paths: Pick<Paths, "wal">, signal: AbortSignal): Promise<void> {
  await markNow(admin);
  await completeLog(admin, paths, signal);
}

/** A restore to a time ends at the first transaction after it, so there has to be one. */
export const markNow = (admin: pg.Client): Promise<unknown> => admin.query("SELECT pg_current_xact_id()");

/** Waits until the log has all changes until now. Each time takes a whole file. */
export async function completeLog(admin: pg.Client, { wal }: Pick<Paths, "wal">, signal: AbortSignal): Promise<void> {
  const { rows } = await admin.query<{ file: string }>("SELECT pg_walfile_name(pg_switch_wal()) AS file");
  await untilKept(wal, rows[0]?.file, signal);
}

async function untilKept(wal: string, file: string | undefined, signal: AbortSignal): Promise<void> {
  while (!existsSync(join(wal, file ?? ""))) await sleep(20, undefined, { signal });
}

/** The file of changes that a backup begins with. */
async function firstFileOf(backup: string): Promise<string | undefined> {
  const label = await readFile(join(backup, "backup_label"), "utf8").catch(() => "");
  return /\(file ([0-9A-F]{24})\)/.exec(label)?.[1];
}

/**
 * Writes a copy of a server's data, with the changes that it needs, into folders `base` and `wal`. Returns the first file of these
 * changes. The connection must be used for nothing else.
 */
export async function copyWithChanges(
  client: pg.Client,
  paths: Paths,
  target: string,
  signal: AbortSignal,
): Promise<string> {
  const base = join(target, "base");
  await copyServer(client, paths, base, signal);
  const first = await firstFileOf(base);
  if (first === undefined) throw new PostgresError("the copy does not say which changes it needs");
  await copyWritten(paths.wal, join(target, "wal"), (name) => (isBefore(name, first) ? "omit" : "copy"));
  return first;
}

/**
 * Removes the kept changes that no backup needs, and of clusters without backups those before the last checkpoint. `since` is the first
 * file that is needed elsewhere.
 */
export async function pruneChanges(
  admin: pg.Client,
  paths: Paths,
  backups: readonly string[],
  since: string | undefined,
): Promise<void> {
  const { rows } = await admin.query<{ file: string }>("SELECT redo_wal_file AS file FROM pg_control_checkpoint()");
  const needed = [since, ...(await Promise.all(backups.map((id) => firstFileOf(join(paths.backups, id)))))];
  // The first eight digits are the timeline.
  const order = (file: string): string => file.slice(8, 24);
  const oldest = [rows[0]?.file, ...needed].flatMap((file) => (file === undefined ? [] : [order(file)])).sort()[0];
  if (oldest === undefined) return;
  for (const name of await readdir(paths.wal))
    if (/^[0-9A-F]{24}/.test(name) && order(name) < oldest) await rm(join(paths.wal, name), { force: true });
}
