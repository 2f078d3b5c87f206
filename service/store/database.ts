// The store: one SQLite file, and transactions that several requests share.
import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { isCopy } from "../replication/changes.ts";
import type { GroupLog } from "../replication/groupLog.ts";
import { copyStore, removeDrafts } from "./copy.ts";
import { markFile, readMark } from "./markFile.ts";
import { keepPrivate } from "./privateFile.ts";
import { reading } from "./reading.ts";
import { currentSchema, firstSchema, stepsFrom } from "./schema.ts";
import { sqliteCode } from "../sqliteCode.ts";
import { newerStore, recordWriter } from "./writer.ts";
import { withResolvers } from "../withResolvers.ts";

/** Path of the store in a data folder. */
export const storeFile = (folder: string): string => join(folder, "service.db");

/** The companion files of a store. */
export const companionFiles = (file: string): string[] => [`${file}-wal`, `${file}-shm`, markFile(file)];

/** A data folder that cannot be used; the message says why and what to do. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

/** The refusal to change a member's copy apart from the others. */
export const copyOfStore = (folder: string): StoreError =>
  new StoreError(
    `${folder} is a copy of a store that several members share. Start the service with --store, or choose another --data folder.`,
  );

/** The store of a folder whose data were moved to a store that several members share. */
export const movedStore = (folder: string): string => `${storeFile(folder)}.moved`;

/** Throws a StoreError if the data of a folder were moved: an empty service would take what runs for them as its own. */
export function requireHere(folder: string): void {
  const moved = movedStore(folder);
  if (!existsSync(moved) || existsSync(storeFile(folder))) return;
  throw new StoreError(
    `the data of ${folder} were moved to a store that several members share. Start it with --store; to continue with the data from before, rename ${basename(moved)} to ${basename(storeFile(folder))}.`,
  );
}

interface Group {
  readonly committed: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly touched: Set<string>;
  /** Undo changes in memory; run in reverse order. */
  readonly undo: (() => void)[];
  /** Run once the changes are durable. */
  readonly done: (() => void)[];
  /** Number of its changes. */
  changes: number;
}

// Syncing the disk takes as long as dozens of changes. A transaction therefore accepts further changes for this long; it does
// not wait when there are none.
const gatherMs = 10;

interface Shape {
  readonly names: readonly string[];
  readonly statement: StatementSync;
}

/** Hooks around a commit. */
export interface CommitHooks {
  /** Runs inside the transaction: the timers that are due. */
  beforeCommit(): void;
  /** Runs after the changes are durable, with the identifiers of the changed objects. */
  afterCommit(touched: ReadonlySet<string>): void;
}

/** The savepoint of a part of a transaction: none yet, its own, or the one of the part around it. */
type Savepoint = "none" | "own" | "shared";

/**
 * A write is durable before it is answered. Syncing the disk for each request would be slow, so all writes of a few turns of the
 * event loop share a transaction: each has a separate savepoint, and they are committed together.
 */
export class Store {
  readonly db: DatabaseSync;
  hooks: CommitHooks = { beforeCommit() {}, afterCommit() {} };
  readonly #statements = new Map<string, StatementSync>();
  readonly #shapes = new Map<string, Shape[]>();
  #group: Group | undefined;
  readonly #log: GroupLog | undefined;
  /** The last committed group that the log has not acknowledged. */
  #unlogged: Group | undefined;
  /** The running parts of the transaction, each inside the previous one. */
  readonly #parts: Savepoint[] = [];

  /** With a log, changes are durable once it has them. */
  constructor(file: string, log?: (db: DatabaseSync) => GroupLog) {
    this.db = open(file);
    this.#log = log?.(this.db);
  }

  /** The prepared statement for an SQL text; each is compiled once. */
  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, (statement = this.db.prepare(sql)));
    return statement;
  }

  /** The first row, if any. */
  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.prepare(sql).get(...values) as Row | undefined;
  }

  /** All rows. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.prepare(sql).all(...values) as Row[];
  }

  /** The rows one by one. */
  each<Row>(sql: string, ...values: SQLInputValue[]): Iterable<Row> {
    return this.prepare(sql).iterate(...values) as Iterable<unknown> as Iterable<Row>;
  }

  /** Runs a statement; only inside {@link write}. */
  run(sql: string, ...values: SQLInputValue[]): void {
    this.#protect();
    this.prepare(sql).run(...values);
  }

  /** Runs a statement that changes one row and returns it; only inside {@link write}. */
  change<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.#protect();
    return this.get<Row>(sql, ...values);
  }

  /** Adds a row. */
  insert(table: string, row: object): void {
    const sqlFor = (names: readonly string[]): string =>
      `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
    this.#protect();
    this.#shaped(table, row, sqlFor).run(...(Object.values(row) as SQLInputValue[]));
  }

  /** Changes the named columns of the row with that key. */
  update(table: string, key: string, id: string, changes: object): void {
    const sqlFor = (names: readonly string[]): string =>
      `UPDATE ${table} SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE ${key} = ?`;
    this.#protect();
    this.#shaped(`${table} ${key}`, changes, sqlFor).run(...(Object.values(changes) as SQLInputValue[]), id);
  }

  /** The statement for an object with these members, cached because building its text takes as long as running it. */
  #shaped(purpose: string, row: object, sqlFor: (names: readonly string[]) => string): StatementSync {
    const names = Object.keys(row);
    let shapes = this.#shapes.get(purpose);
    if (!shapes) this.#shapes.set(purpose, (shapes = []));
    for (const shape of shapes)
      if (shape.names.length === names.length && shape.names.every((name, i) => name === names[i]))
        return shape.statement;
    const statement = this.prepare(sqlFor(names));
    shapes.push({ names, statement });
    return statement;
  }

  /** Records that the current transaction changes this Machine, volume or App. */
  touch(id: string): void {
    this.#group?.touched.add(id);
  }

  /** Runs a change now. The result resolves when the change is durable; an error rolls back only this change. */
  write<T>(change: () => T): Promise<T> {
    const group = this.#open();
    group.changes++;
    const result = this.attempt(change);
    return group.committed.then(() => result);
  }

  /**
   * Runs a change in a transaction of its own, before the service begins: no hook runs. Without a log it is durable when this returns.
   */
  writeAtOnce(change: () => void): void {
    this.#exec("BEGIN IMMEDIATE");
    try {
      this.#log?.begin();
      change();
      this.#log?.end();
      this.#exec("COMMIT");
    } catch (error) {
      this.#log?.discard();
      if (this.db.isTransaction) this.#exec("ROLLBACK");
      throw error;
    }
    void this.#log?.committed();
  }

  /** Registers how to undo a change in memory if the current part of the transaction is rolled back. */
  onUndo(undo: () => void): void {
    this.#group?.undo.push(undo);
  }

  /** Registers what to do once the changes are durable; nothing, if the current part of the transaction is rolled back. */
  onCommit(run: () => void): void {
    const group = this.#group;
    if (!group) return;
    group.done.push(run);
    group.undo.push(() => void group.done.pop());
  }

  /** True while a part of a transaction runs; an error then rolls that part back. */
  get isInPart(): boolean {
    return this.#parts.length > 0;
  }

  /** Runs a part of a transaction that is rolled back by itself when it fails. */
  attempt<T>(change: () => T): T {
    const mark = this.#group?.undo.length ?? 0;
    const depth = this.#parts.push("none") - 1;
    try {
      const result = change();
      if (this.#parts[depth] === "own") this.#exec("RELEASE part");
      return result;
    } catch (error) {
      if (this.db.isTransaction) {
        this.#undo(mark);
        if (this.#parts[depth] !== "none") this.#exec("ROLLBACK TO part");
        if (this.#parts[depth] === "own") this.#exec("RELEASE part");
      } else {
        // A full disk rolls back the whole transaction, including the other requests in it.
        this.#undo(0);
        this.#log?.discard();
        this.#group?.reject(error);
        this.#group = undefined;
      }
      throw error;
    } finally {
      this.#parts.length = depth;
    }
  }

  /**
   * Takes the savepoint of the running part before its first write, because taking and releasing one costs as much as many
   * statements. Outer parts that have written nothing yet share it, because it restores the same state for them.
   */
  #protect(): void {
    if (this.#log && !this.db.isTransaction) throw new Error("a change outside of a transaction would be in no log");
    let at = this.#parts.length;
    if (at === 0 || this.#parts[at - 1] !== "none") return;
    this.#exec("SAVEPOINT part");
    while (at > 0 && this.#parts[at - 1] === "none") this.#parts[--at] = "shared";
    this.#parts[at] = "own";
  }

  #exec(sql: string): void {
    this.prepare(sql).run();
  }

  /** Undoes the changes in memory that were registered after the first `mark` ones. */
  #undo(mark: number): void {
    for (const undo of this.#group?.undo.splice(mark).toReversed() ?? []) undo();
  }

  /** Resolves when all visible changes are durable; undefined when they are. */
  get unsettled(): Promise<void> | undefined {
    return (this.#group ?? this.#unlogged)?.committed ?? this.unsure;
  }

  /** Whether its changes are durable in a log. */
  get isLogged(): boolean {
    return this.#log !== undefined;
  }

  /** Resolves when what was read is certain to be up to date; undefined if it is. Without a log it always is. */
  get unsure(): Promise<void> | undefined {
    return this.#log?.unsure;
  }

  /** Commits the open transaction, including the timers that are due. */
  flush(): void {
    const group = this.#group;
    if (!group) return;
    try {
      this.hooks.beforeCommit();
      this.#log?.end();
      this.#exec("COMMIT");
    } catch (error) {
      this.#undo(0);
      this.#log?.discard();
      this.#group = undefined;
      if (this.db.isTransaction) this.#exec("ROLLBACK");
      group.reject(error);
      return;
    }
    this.#group = undefined;
    const logged = this.#log?.committed();
    if (logged === undefined) return this.#settle(group);
    this.#unlogged = group;
    void this.#settleAfter(logged, group);
  }

  async #settleAfter(logged: Promise<void>, group: Group): Promise<void> {
    try {
      await logged;
    } catch (error) {
      return group.reject(error);
    } finally {
      if (this.#unlogged === group) this.#unlogged = undefined;
    }
    this.#settle(group);
  }

  /** Acknowledges a group, because its changes are durable. */
  #settle(group: Group): void {
    group.resolve();
    for (const run of group.done) run();
    this.hooks.afterCommit(group.touched);
  }

  close(): void {
    this.flush();
    this.#statements.clear();
    this.#shapes.clear();
    this.db.close();
  }

  #open(): Group {
    if (this.#group) return this.#group;
    this.#exec("BEGIN IMMEDIATE");
    this.#log?.begin();
    const { promise, resolve, reject } = withResolvers();
    promise.catch(() => {}); // no request may be waiting for it
    const group: Group = { committed: promise, resolve, reject, touched: new Set(), undo: [], done: [], changes: 0 };
    this.#group = group;
    const until = performance.now() + gatherMs;
    let seen = 1;
    const close = (): void => {
      if (this.#group !== group) return;
      if (group.changes <= seen || performance.now() >= until) return this.flush();
      seen = group.changes;
      setImmediate(close);
    };
    setImmediate(close);
    return group;
  }
}

/** Opens the file and migrates its tables, by default to the current schema. The service and its commands use this. */
export function open(file: string, schema = currentSchema()): DatabaseSync {
  let db: DatabaseSync | undefined;
  const begun = existsSync(file);
  try {
    // Read before the store, because a running service may write to it in between.
    const mark = file === ":memory:" ? undefined : readMark(file);
    if (!begun && mark !== undefined) throw missing(file);
    if (file !== ":memory:") makePrivate(file);
    db = new DatabaseSync(file);
    db.exec(`PRAGMA busy_timeout = ${lockPatience}`);
    useLog(db);
    // A checkpoint every 16 MB: with SQLite's default of 4 MB a busy service would copy pages all the time.
    db.exec("PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = 4000");
    // Otherwise a migration that replaces a table would delete the rows that refer to it.
    db.exec("PRAGMA foreign_keys = OFF");
    if (begun) requireContents(db, file);
    requireLatest(db, file, mark);
    migrate(db, file, schema);
    db.exec("PRAGMA foreign_keys = ON");
    return db;
  } catch (error) {
    db?.close();
    const code = sqliteCode(error);
    if (code === 11 || code === 26) throw damaged(file);
    if (code === 13) throw new StoreError(`${file} cannot be migrated: the disk is full. Nothing was changed.`);
    if (code === 8 || code === 14 || isFileError(error))
      throw new StoreError(`${file} cannot be written. Check that its folder exists and is yours.`);
    throw error;
  }
}

/** Milliseconds that a process waits for another one that opens the same store. */
const lockPatience = 5000;

/** Switches to a write-ahead log. SQLite does not wait by itself for the lock that this needs. */
function useLog(db: DatabaseSync): void {
  for (const end = performance.now() + lockPatience; ; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10))
    try {
      return db.exec("PRAGMA journal_mode = WAL");
    } catch (error) {
      if (sqliteCode(error) !== 5 || performance.now() > end) throw error;
    }
}

const isFileError = (error: unknown): boolean => error instanceof Error && "syscall" in error;

/** Makes the store readable for its user only; SQLite creates its companion files with the same permissions. */
function makePrivate(file: string): void {
  // One that exists may be open in this process: see keepPrivate.
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  for (const one of [file, ...companionFiles(file)]) keepPrivate(one);
}

/** The error for a damaged store; it explains how to replace the store. */
export function damaged(file: string): StoreError {
  const name = basename(file);
  const backups = readdirSync(dirname(file)).filter((other) => /\.backup-\d+$/.test(other) && other.startsWith(name));
  const lying = backups.length === 0 ? "" : ` (next to it: ${backups.join(", ")})`;
  return new StoreError(
    `${file} is damaged. Put a backup in its place${lying}: first move away ${name} and all files whose name begins with ${name}-. Then machines-service import restores an export, and machines-service start begins with an empty store.`,
  );
}

/** Throws a StoreError when a part of the store is damaged that opening it did not read. */
export function requireWhole({ db }: Pick<Store, "db">, file: string): void {
  let found: unknown;
  try {
    found = db.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  } catch (error) {
    if (sqliteCode(error) !== 11) throw error;
  }
  if (found !== "ok") throw damaged(file);
}

/** Version of a store's schema. */
export const schemaOf = (db: DatabaseSync): number => Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);

/**
 * Throws a StoreError when a store lost all its data: only its log held the data, and the log is gone. Starting with an empty
 * store would hide the loss.
 */
function requireContents(db: DatabaseSync, file: string): void {
  if (schemaOf(db) > 0) return;
  const companions = ["key", "token"].filter((name) => existsSync(join(dirname(file), name)));
  if (companions.length === 0) return;
  throw new StoreError(
    `${file} is empty, and the ${companions.join(" and the ")} next to it exist: ${basename(file)}-wal, which held the data, is lost or truncated. Restore it or a backup; to begin with an empty store, move away ${basename(file)} and all files whose name begins with ${basename(file)}-.`,
  );
}

/** The error for a missing store with a mark. */
function missing(file: string): StoreError {
  const [name, mark] = [basename(file), basename(markFile(file))];
  return new StoreError(
    `${file} is missing, but ${mark} next to it shows that it existed. Restore it or a backup; to begin with an empty store, or to continue with a backup, move away ${mark} and ${name}-wal.`,
  );
}

/**
 * Throws a StoreError when a store is older than its mark: an older copy replaced it, or its log was removed after a
 * checkpoint.
 */
export function requireLatest(db: DatabaseSync, file: string, mark: number | undefined): void {
  if (mark === undefined) return;
  const isCounted = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'written'").get();
  const count = isCounted ? Number(db.prepare("SELECT count FROM written").get()?.["count"]) : 0;
  if (count >= mark) return;
  const [name, markName] = [basename(file), basename(markFile(file))];
  throw new StoreError(
    `${file} is older than its last change: ${name}-wal is lost or truncated, or an older copy replaced the store. Restore the missing file; to continue with the older data, move away ${markName}.`,
  );
}

/** Throws a StoreError when a newer service wrote the file, or one from before the first schema that is upgraded. */
export function requireKnownSchema(db: DatabaseSync, file: string, newer = newerStore): void {
  const [schema, current] = [schemaOf(db), currentSchema()];
  if (schema > current) throw new StoreError(newer(db, file, schema));
  if (schema > 0 && schema < firstSchema)
    throw new StoreError(
      `${file} was written by a machines-service from before the first release (schema ${schema}): open it once with one that knows schema ${firstSchema}, which upgrades it, or use another data folder.`,
    );
}

function migrate(db: DatabaseSync, file: string, schema: number): void {
  requireKnownSchema(db, file);
  if (schemaOf(db) >= schema) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have migrated it while this one waited for the lock.
    const done = schemaOf(db);
    if (done > 0 && done < schema && !isCopy(db)) backUp(file, done);
    for (const step of stepsFrom(done, schema)) db.exec(step);
    db.exec(`PRAGMA user_version = ${schema}`);
    // A new store may become the copy of a member: the copies stay equal, because their leader records it.
    if (done > 0 && !isCopy(db)) recordWriter(db);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Backs up the store before its migration: a second connection reads the committed state. */
function backUp(file: string, schema: number): void {
  // This process holds the lock of the store, so existing drafts belong to killed processes.
  removeDrafts(file, /^\.backup-\d+\.\d+(-journal)?$/);
  reading(file, (before) => copyStore(before, `${file}.backup-${schema}`));
}
