// Exports and imports all data as one file, and resets a store.
import { chmodSync, constants, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { requireStore } from "./openForCommand.ts";
import { copyStore, removeDrafts } from "./copy.ts";
import {
  companionFiles,
  copyOfStore,
  damaged,
  requireKnownSchema,
  requireLatest,
  requireWhole,
  Store,
  StoreError,
  storeFile,
} from "./database.ts";
import { lockData, type Held } from "./lock.ts";
import { isCopyFile } from "./memberCopy.ts";
import { readMark } from "./markFile.ts";
import { keepPrivate, leaveToOwner, readIfThere, syncFile, syncFolder, writePrivately } from "./privateFile.ts";
import { requireRestored } from "./restoring.ts";
import { tokenFile } from "./tokenFile.ts";
import { addToken } from "./tokens.ts";
import { sqliteCode } from "../sqliteCode.ts";
import { keyFile } from "./vault.ts";
import { newerExport } from "./writer.ts";

// An export also holds the key to its secrets and the first token.
const parts = { key: keyFile, token: tokenFile };

/** An error of the disk as a sentence; other errors are returned as they are. */
function fileProblem(error: unknown, file: string, what: string): unknown {
  if (!(error instanceof Error) || (sqliteCode(error) === undefined && !("syscall" in error))) return error;
  if ("path" in error && error.path === file && "code" in error && error.code === "ENOENT")
    return new StoreError(`there is no file ${file}`);
  return new StoreError(`${file} cannot be ${what}: ${sqliteCode(error) === 13 ? "the disk is full" : error.message}`);
}

/** Exports the store of a data folder with its key and token; only the user can read the file. The service may run. */
export function exportStore(folder: string, file: string): void {
  const store = requireStore(folder);
  if (existsSync(file)) throw new StoreError(`${file} exists already; choose another name`);
  let db: DatabaseSync | undefined;
  requireOwnData(folder, store);
  try {
    const mark = readMark(store);
    db = new DatabaseSync(store, { readOnly: true });
    requireLatest(db, store, mark);
    copyStore(db, file, (copy) => {
      copy.exec("CREATE TABLE export (name TEXT PRIMARY KEY, value TEXT)");
      const add = copy.prepare("INSERT INTO export VALUES (?, ?)");
      for (const [name, pathOf] of Object.entries(parts)) add.run(name, readIfThere(pathOf(folder)) ?? null);
    });
  } catch (error) {
    const code = sqliteCode(error);
    throw code === 11 || code === 26 ? damaged(store) : fileProblem(error, file, "written");
  } finally {
    db?.close();
  }
}

/** Splits an export: removes the key and the token, so that a plain store remains. */
function unpack(draft: string, file: string): Readonly<Record<keyof typeof parts, string | null>> {
  const noExport = new StoreError(`${file} is not an export of machines-service`);
  const db = new DatabaseSync(draft);
  try {
    db.exec("PRAGMA journal_mode = MEMORY; PRAGMA secure_delete = ON");
    const found = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'export'").get();
    if (!found) throw noExport;
    requireKnownSchema(db, file, newerExport);
    requireWhole({ db }, file);
    const valueOf = (name: string): string | null => {
      const value = db.prepare("SELECT value FROM export WHERE name = ?").get(name)?.["value"];
      return typeof value === "string" ? value : null;
    };
    const unpacked = { key: valueOf("key"), token: valueOf("token") };
    db.exec("DROP TABLE export");
    return unpacked;
  } catch (error) {
    throw sqliteCode(error) === 26 ? noExport : error;
  } finally {
    db.close();
  }
}

/**
 * Imports an export into an empty data folder, of which a caller may hold the lock already. Throws a StoreError when it would overwrite
 * anything.
 */
export function importStore(folder: string, file: string, held?: Held): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const lock = held ?? lockData(folder);
  const store = storeFile(folder);
  const draft = `${store}.${process.pid}`;
  try {
    if (!held) requireRestored(folder);
    if (existsSync(store))
      throw new StoreError(`${store} exists already; choose another --data folder, or move it away first`);
    removeDrafts(store, /^\.\d+(-journal)?$/); // of killed imports
    copyFileSync(file, draft, constants.COPYFILE_EXCL);
    keepPrivate(draft);
    const { key, token } = unpack(draft, file);
    const there = readIfThere(keyFile(folder));
    if (there !== undefined && there !== key)
      throw new StoreError(`${keyFile(folder)} belongs to other data; move it away first`);
    leaveToOwner(draft);
    syncFile(draft);
    if (key !== null) writePrivately(keyFile(folder), `${key}\n`);
    if (token !== null) writePrivately(tokenFile(folder), `${token}\n`);
    // The log of another store must not be applied to this one.
    for (const companion of companionFiles(store)) rmSync(companion, { force: true });
    renameSync(draft, store);
    syncFolder(store);
  } catch (error) {
    throw fileProblem(error, file, "imported");
  } finally {
    rmSync(draft, { force: true });
    if (!held) lock.release();
  }
}

/** Refuses a member's copy, which is changed and exported with the store that the members share. */
function requireOwnData(folder: string, file: string): void {
  let isMembers = false;
  try {
    isMembers = isCopyFile(file);
  } catch {
    // A damaged file is none.
  }
  if (isMembers) throw copyOfStore(folder);
}

/** Replaces the store of a data folder with an empty one. The token in its file stays valid. */
export async function resetStore(folder: string, now: number): Promise<void> {
  const file = requireStore(folder);
  const lock = lockData(folder);
  try {
    requireOwnData(folder, file);
    for (const one of [file, ...companionFiles(file)]) rmSync(one, { force: true });
    const token = readIfThere(tokenFile(folder));
    const store = new Store(file);
    if (token !== undefined && token !== "")
      await store.write(() => addToken(store, token, { slug: "personal", name: "first", expiresAt: null }, now));
    store.close();
  } finally {
    lock.release();
  }
}
