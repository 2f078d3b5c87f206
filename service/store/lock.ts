// Allows one service per data folder. The lock is SQLite's lock on a file next to the data. The operating system releases it
// when the process ends in any way, so locks are never stale and process ids need no check.
import { chmodSync, existsSync, lstatSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "./database.ts";
import { sqliteCode } from "../sqliteCode.ts";
import { createPrivately, writePrivately } from "./privateFile.ts";

/** The console of a running service. */
export interface RunningConsole {
  readonly mode: "read" | "write";
  /** Identifies this run of the service, for which a code is made. */
  readonly run: string;
}

/** The running service of a data folder, as in `service.json`. */
export interface Running {
  readonly url: string;
  readonly pid: number;
  readonly data: string;
  /** Its version; undefined of services before 0.2. */
  readonly version?: string;
  /** The unit of systemd that it is; undefined if systemd did not start it. */
  readonly unit?: string;
  /** Milliseconds that its clients get when it ends. */
  readonly drainMs?: number;
  /** What runs its Machines; undefined of services before there was a choice. */
  readonly runtime?: string;
  /** Name of the engine of Postgres clusters. */
  readonly postgres?: string;
  /** The ports of its proxy, if it has one. */
  readonly proxy?: { readonly http: number; readonly https: number };
  /** URL at which other computers reach it, if it has a hostname. */
  readonly publicUrl?: string;
  /** URL of each App for other computers, with `<app>` for its name, if there is a domain of Apps. */
  readonly appsUrl?: string;
  /** URL of its admin listener, if it has one. */
  readonly admin?: string;
  /** What is needed to open its console; undefined without one. */
  readonly console?: RunningConsole;
  /** Its certificate in PEM; only with HTTPS. */
  readonly certificate?: string;
}

/** A held lock. */
export interface Held {
  release(): void;
}

const runningFile = (folder: string): string => join(folder, "service.json");

/** Takes a lock, or undefined when another process has it. */
export function tryLock(file: string, waitMs = 0): Held | undefined {
  forUsOnly(file);
  return attempt(file, `PRAGMA busy_timeout = ${waitMs}; BEGIN EXCLUSIVE`);
}

/** Another user who may read the file could hold the lock. It is not opened here: closing it would release a lock of this process. */
function forUsOnly(file: string): void {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (!stat) create(file);
  else if (stat.isFile() && (stat.mode & 0o077) !== 0 && stat.uid === process.getuid?.()) chmodSync(file, 0o600);
}

function create(file: string): void {
  try {
    createPrivately(file, "");
  } catch (error) {
    // Another process has created it meanwhile.
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
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
    throw new StoreError(`${file} cannot be used as a lock: ${why}. Move it away; a new one is created.`);
  }
}

const lockFile = (folder: string): string => join(folder, "service.lock");

/** Whether a service holds the data folder now. The check takes no lock that would block other checks. */
export function isLocked(folder: string): boolean {
  if (!existsSync(lockFile(folder))) return false;
  const held = attempt(lockFile(folder), "BEGIN; SELECT * FROM sqlite_schema");
  held?.release();
  return held === undefined;
}

/** Locks a data folder for this process. */
export function lockData(folder: string): Held {
  // Another process may be checking the lock at this moment.
  const held = tryLock(lockFile(folder), 200);
  if (held) {
    clearRunning(folder); // the entry of a killed service
    return held;
  }
  const running = readRunning(folder);
  if (running)
    throw new StoreError(
      `another machines-service (pid ${running.pid}, ${running.url}) serves ${folder}. Stop it first, or use another data folder.`,
    );
  throw new StoreError(
    `another machines-service serves ${folder}, or restores into it. Wait for its end, or use another data folder.`,
  );
}

/** Records the address of the service of a data folder. */
export function writeRunning(folder: string, running: Running): void {
  writePrivately(runningFile(folder), `${JSON.stringify(running)}\n`);
}

/** Removes that record. */
export const clearRunning = (folder: string): void => rmSync(runningFile(folder), { force: true });

/** The record of the last service; valid only while the folder is locked. */
export function readRunning(folder: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(runningFile(folder), "utf8")) as Running;
  } catch {
    return undefined;
  }
}
