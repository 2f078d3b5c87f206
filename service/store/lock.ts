// One service per data folder. The lock is SQLite's own on a file beside the data: the operating system gives it back
// when its process ends, however it ends, so there is no stale lock to judge and no reused pid to be taken in by.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sqliteCode, StoreError } from "./database.ts";
import { writePrivately } from "./privateFile.ts";

/** Who serves a data folder, as `service.json` in it says. */
export interface Running {
  readonly url: string;
  readonly pid: number;
  readonly data: string;
  /** Where its admin listener is, if it has one. */
  readonly admin?: string;
  /** The certificate it shows, in PEM; only with HTTPS. */
  readonly certificate?: string;
}

/** A lock that is held. */
export interface Held {
  release(): void;
}

const runningFile = (folder: string): string => join(folder, "service.json");

/** Takes a lock, or undefined when another process has it. */
export function tryLock(file: string, waitMs = 0): Held | undefined {
  return attempt(file, `PRAGMA busy_timeout = ${waitMs}; BEGIN EXCLUSIVE`);
}

function attempt(file: string, sql: string): Held | undefined {
  let db: DatabaseSync | undefined;
  try {
    const opened = (db = new DatabaseSync(file));
    opened.exec(sql);
    return { release: () => opened.close() };
  } catch (error) {
    db?.close();
    const code = sqliteCode(error);
    if (code === 5) return undefined;
    if (code === undefined) throw error;
    const why = code === 11 || code === 26 ? "it holds something else" : `SQLite says ${code}`;
    throw new StoreError(`${file} cannot be used as a lock: ${why}. Move it away; it is made anew.`);
  }
}

const lockFile = (folder: string): string => join(folder, "service.lock");

/** Whether a service holds the data folder now. Looking takes no lock that would keep another from looking. */
export function isLocked(folder: string): boolean {
  if (!existsSync(lockFile(folder))) return false;
  const held = attempt(lockFile(folder), "BEGIN; SELECT * FROM sqlite_schema");
  held?.release();
  return held === undefined;
}

/** Makes this process the one that serves a data folder. */
export function lockData(folder: string): Held {
  // Somebody may just be looking whether it is locked; that is over in a moment.
  const held = tryLock(lockFile(folder), 200);
  if (held) {
    clearRunning(folder); // what a service that was killed left behind
    return held;
  }
  const running = readRunning(folder);
  const who = running ? ` (pid ${running.pid}, ${running.url})` : "";
  throw new StoreError(`another machines-service${who} serves ${folder}. Stop it first, or use another data folder.`);
}

/** Says where the service of a data folder listens. */
export function writeRunning(folder: string, running: Running): void {
  writePrivately(runningFile(folder), `${JSON.stringify(running)}\n`);
}

/** Takes that back. */
export const clearRunning = (folder: string): void => rmSync(runningFile(folder), { force: true });

/** What the last service said; true only while the folder is locked. */
export function readRunning(folder: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(runningFile(folder), "utf8")) as Running;
  } catch {
    return undefined;
  }
}
