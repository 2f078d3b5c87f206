// The store: one SQLite file, and transactions that several requests share.
import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { copyStore, removeDrafts } from "./copy.ts";
import { markFile, readMark } from "./mark.ts";
import { keepPrivate } from "./privateFile.ts";
import { migrations } from "./schema.ts";

/** Path of the store in a data folder. */
export const storeFile = (folder: string): string => join(folder, "service.db");

/** Files beside a store that are about this store alone. */
export const companionFiles = (file: string): string[] => [`${file}-wal`, `${file}-shm`, markFile(file)];

/** A data folder that cannot be used; the message says why and what to do. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}

interface Group {
  readonly committed: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly touched: Set<string>;
  /** Takes back what was changed in memory, last first. */
  readonly undo: (() => void)[];
  /** Changes in it. */
  changes: number;
}

// A flush of the disk takes as long as dozens of changes. While changes keep coming, a transaction takes more of them for this
// long; one that is alone does not wait.
const gatherMs = 10;

interface Shape {
  readonly names: readonly string[];
  readonly statement: StatementSync;
}

/** What the store calls around a commit. */
export interface CommitHooks {
  /** Part of the transaction: whatever falls due now. */
  beforeCommit(): void;
  /** After it is durable: whom it concerns. */
  afterCommit(touched: ReadonlySet<string>): void;
}

/** Whether a part of a transaction has a savepoint: none yet, one that was taken for it, or that of the part around it. */
type Savepoint = "none" | "own" | "shared";

/**
 * A write is durable before its answer leaves. Syncing the disk once per request would let the disk set the pace, so all
 * writes that arrive in a few turns of the event loop share a transaction: each in a savepoint of its own, committed together.
 */
export class Store {
  readonly db: DatabaseSync;
  hooks: CommitHooks = { beforeCommit() {}, afterCommit() {} };
  readonly #statements = new Map<string, StatementSync>();
  readonly #shapes = new Map<string, Shape[]>();
  #group: Group | undefined;
  /** The parts of the transaction that run now, each inside the one before. */
  readonly #parts: Savepoint[] = [];

  constructor(file: string) {
    this.db = open(file);
  }

  /** The prepared statement for a text of SQL; each is compiled once. */
  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, (statement = this.db.prepare(sql)));
    return statement;
  }

  /** The first row, if any. */
  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.prepare(sql).get(...values) as Row | undefined;
  }

  /** Every row. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.prepare(sql).all(...values) as Row[];
  }

  /** Row by row. */
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

  /** The statement for an object with these members. To put its text together each time would take as long as to run it. */
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

  /** Says that something about this Machine, volume or App changes with the current transaction. */
  touch(id: string): void {
    this.#group?.touched.add(id);
  }

  /** Runs a change now, in a savepoint. The answer comes when it is durable; what it throws undoes it alone. */
  write<T>(change: () => T): Promise<T> {
    const group = this.#open();
    group.changes++;
    const result = this.attempt(change);
    return group.committed.then(() => result);
  }

  /** Takes back a change in memory if the part of the transaction it is made in is undone. */
  onUndo(undo: () => void): void {
    this.#group?.undo.push(undo);
  }

  /** True while a part of a transaction runs, which undoes what it calls when it fails. */
  get isInPart(): boolean {
    return this.#parts.length > 0;
  }

  /** Runs a part of a transaction that can be undone by itself. */
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
        // A full disk undoes the whole transaction, and with it the requests that share it.
        this.#undo(0);
        this.#group?.reject(error);
        this.#group = undefined;
      }
      throw error;
    } finally {
      this.#parts.length = depth;
    }
  }

  /**
   * Takes the savepoint of the part that runs, before its first write: to take and release one costs as much as many statements.
   * Parts around it that have written nothing either share it, because it undoes the same for them.
   */
  #protect(): void {
    let at = this.#parts.length;
    if (at === 0 || this.#parts[at - 1] !== "none") return;
    this.#exec("SAVEPOINT part");
    while (at > 0 && this.#parts[at - 1] === "none") this.#parts[--at] = "shared";
    this.#parts[at] = "own";
  }

  #exec(sql: string): void {
    this.prepare(sql).run();
  }

  /** Takes back what was changed in memory since the group had so many changes. */
  #undo(mark: number): void {
    for (const undo of this.#group?.undo.splice(mark).toReversed() ?? []) undo();
  }

  /** Resolves when everything a reader may have seen is durable; undefined when it is already. */
  get unsettled(): Promise<void> | undefined {
    return this.#group?.committed;
  }

  /** Commits what is open, with whatever falls due. */
  flush(): void {
    const group = this.#group;
    if (!group) return;
    try {
      this.hooks.beforeCommit();
      this.#exec("COMMIT");
    } catch (error) {
      this.#undo(0);
      this.#group = undefined;
      if (this.db.isTransaction) this.#exec("ROLLBACK");
      group.reject(error);
      return;
    }
    this.#group = undefined;
    group.resolve();
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
    const { promise, resolve, reject } = withResolvers();
    promise.catch(() => {}); // a group without requests has nobody to tell
    const group: Group = { committed: promise, resolve, reject, touched: new Set(), undo: [], changes: 0 };
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

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void } {
  let resolve = (): void => {};
  let reject = (_: unknown): void => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Opens the file and brings its tables up to date. Used by the service and, beside it, by commands. */
export function open(file: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  const begun = existsSync(file);
  try {
    // Read before the store is looked at, which a service may be writing to.
    const mark = file === ":memory:" ? undefined : readMark(file);
    if (!begun && mark !== undefined) throw missing(file);
    if (file !== ":memory:") makePrivate(file);
    db = new DatabaseSync(file);
    // The log is copied into the store every 16 MB: at every 4 MB, as SQLite does it, a busy service would copy all the time.
    db.exec(
      "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; PRAGMA wal_autocheckpoint = 4000",
    );
    // A step that puts a new table in the place of an old one would delete whatever refers to it.
    db.exec("PRAGMA foreign_keys = OFF");
    if (begun) requireContents(db, file);
    requireLatest(db, file, mark);
    migrate(db, file);
    db.exec("PRAGMA foreign_keys = ON");
    return db;
  } catch (error) {
    db?.close();
    const code = sqliteCode(error);
    if (code === 11 || code === 26) throw damaged(file);
    if (code === 13)
      throw new StoreError(`${file} cannot be brought up to date: the disk is full. Nothing was changed.`);
    if (code === 8 || code === 14 || isFileError(error))
      throw new StoreError(`${file} cannot be written. Check that its folder exists and is yours.`);
    throw error;
  }
}

const isFileError = (error: unknown): boolean => error instanceof Error && "syscall" in error;

/** Lets nobody else read the store; SQLite makes the files beside it like the store itself. */
function makePrivate(file: string): void {
  closeSync(openSync(file, "a", 0o600));
  for (const one of [file, ...companionFiles(file)]) keepPrivate(one);
}

/** What to say of a store that is damaged: what may be put in its place, and how. */
export function damaged(file: string): StoreError {
  const name = basename(file);
  const backups = readdirSync(dirname(file)).filter((other) => /\.backup-\d+$/.test(other) && other.startsWith(name));
  const lying = backups.length === 0 ? "" : ` (beside it lies ${backups.join(", ")})`;
  return new StoreError(
    `${file} is damaged. Put a backup in its place${lying}: move ${name} and all whose name begins with ${name}- away first. With them out of the way, machines-service import takes an export, and machines-service start begins anew.`,
  );
}

/** Throws a StoreError when a part of the store is damaged that opening it did not come across. */
export function requireWhole({ db }: Pick<Store, "db">, file: string): void {
  let found: unknown;
  try {
    found = db.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  } catch (error) {
    if (sqliteCode(error) !== 11) throw error;
  }
  if (found !== "ok") throw damaged(file);
}

/** Number of the schema a store has. */
export const schemaOf = (db: DatabaseSync): number => Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);

/**
 * Throws a StoreError when a store is empty that was not: nothing but its log held what was written, and the log is lost. To
 * begin anew without a word would hide that.
 */
function requireContents(db: DatabaseSync, file: string): void {
  if (schemaOf(db) > 0) return;
  const companions = ["key", "token"].filter((name) => existsSync(join(dirname(file), name)));
  if (companions.length === 0) return;
  throw new StoreError(
    `${file} is empty, and the ${companions.join(" and the ")} beside it are not: ${basename(file)}-wal, which held what was written, is lost or cut. Put it or a backup in its place; to begin anew, move ${basename(file)} and all whose name begins with ${basename(file)}- away.`,
  );
}

/** What to say when a store is gone and its mark is not. */
function missing(file: string): StoreError {
  const [name, mark] = [basename(file), basename(markFile(file))];
  return new StoreError(
    `${file} is missing, and the ${mark} beside it says that there was one. Put it or a backup in its place; to begin anew, or to go on with a backup, move ${mark} and ${name}-wal away.`,
  );
}

/**
 * Throws a StoreError when less is in a store than was written to it: an older copy was put in its place, or its log was
 * removed after a part of it had been copied.
 */
export function requireLatest(db: DatabaseSync, file: string, mark: number | undefined): void {
  if (mark === undefined) return;
  const isCounted = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'written'").get();
  const count = isCounted ? Number(db.prepare("SELECT count FROM written").get()?.["count"]) : 0;
  if (count >= mark) return;
  const [name, companions] = [basename(file), basename(markFile(file))];
  throw new StoreError(
    `${file} is older than what was written to it last: ${name}-wal is lost or cut, or a copy was put in its place. Put back what is missing; to go on with what is there, move ${companions} away.`,
  );
}

/** Throws a StoreError when a file was written by a newer service. */
export function requireKnownSchema(db: DatabaseSync, file: string): void {
  const schema = schemaOf(db);
  if (schema > migrations.length) {
    throw new StoreError(
      `${file} was written by a newer machines-service (schema ${schema}, this one knows ${migrations.length}). Install that version, or use another data folder.`,
    );
  }
}

function migrate(db: DatabaseSync, file: string): void {
  requireKnownSchema(db, file);
  if (schemaOf(db) === migrations.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have done it while this one waited for the lock.
    const done = schemaOf(db);
    if (done > 0 && done < migrations.length) backUp(file, done);
    for (const step of migrations.slice(done)) db.exec(step);
    db.exec(`PRAGMA user_version = ${migrations.length}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Keeps the store as it is: what reads it beside a transaction sees what was committed before. */
function backUp(file: string, schema: number): void {
  // Whoever is at it holds the lock of the store, so that drafts are those of processes that were killed.
  removeDrafts(file, /^\.backup-\d+\.\d+(-journal)?$/);
  const before = new DatabaseSync(file, { readOnly: true });
  try {
    copyStore(before, `${file}.backup-${schema}`);
  } finally {
    before.close();
  }
}

/** SQLite's primary result code of an error (13: the disk is full), or undefined when the error is none of SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}
