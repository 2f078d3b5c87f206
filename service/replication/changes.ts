// The changes of one transaction as bytes that another copy of the store applies: what SQLite's sessions record, and the
// counters that they leave out. A copy that follows has no triggers and no foreign keys: what they change was recorded too.
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { constants, type DatabaseSync, type Session, type StatementSync } from "node:sqlite";
import { sqliteCode } from "../sqliteCode.ts";

/** SQLite's code for a row that breaks a constraint. */
const constraintFailed = 19;

/** Compresses on another thread. */
export const compress = promisify(zstdCompress);
export const decompress = promisify(zstdDecompress);

/** How far a copy is: the last entry that it contains, and the leadership that appended it. */
export interface Position {
  readonly epoch: number;
  readonly seq: number;
}

/** Changes that do not fit the copy: it is damaged, or misses an entry. */
export class DoesNotApply extends Error {
  override readonly name = "DoesNotApply";
}

// It has no primary key, so that no session records it: it belongs to one copy.
const positionTable = "CREATE TABLE IF NOT EXISTS copy_position (epoch INTEGER NOT NULL, seq INTEGER NOT NULL)";

/** Prepares a store to be a copy: it gets a position, which is 0 if it had none. */
export function prepareCopy(db: DatabaseSync): void {
  db.exec(positionTable);
  if (!db.prepare("SELECT 1 FROM copy_position").get()) db.exec("INSERT INTO copy_position VALUES (0, 0)");
}

/** Whether a store is a copy. */
export const isCopy = (db: DatabaseSync): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'copy_position'").get() !== undefined;

/** How far the copy is. */
export function positionOf(db: DatabaseSync): Position {
  const row = db.prepare("SELECT epoch, seq FROM copy_position").get();
  return { epoch: Number(row?.["epoch"]), seq: Number(row?.["seq"]) };
}

/** Records how far the copy is. */
export function movePosition(db: DatabaseSync, { epoch, seq }: Position): void {
  db.prepare(setPosition).run(epoch, seq);
}

/** Counters of AUTOINCREMENT columns. A row that was inserted and deleted in one transaction raises them, and is in no session. */
type Counters = Readonly<Record<string, number>>;

const readCounters = "SELECT name, seq FROM sqlite_sequence";
const setPosition = "UPDATE copy_position SET epoch = ?, seq = ?";

const asCounters = (rows: readonly Record<string, unknown>[]): Counters =>
  Object.fromEntries(rows.map(({ name, seq }) => [String(name), Number(seq)]));

/** What a transaction changed, before it is encoded. */
export interface Recorded {
  readonly changeset: Uint8Array;
  /** The counters that changed. */
  readonly counters: Counters;
}

/** Records the transactions of the leader's copy. */
export class Recorder {
  readonly #db: DatabaseSync;
  readonly #readCounters: StatementSync;
  readonly #move: StatementSync;
  #session: Session | undefined;
  #before: Counters = {};

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#readCounters = db.prepare(readCounters);
    this.#move = db.prepare(setPosition);
  }

  /** Begins with a transaction. */
  begin(): void {
    this.discard();
    this.#before = asCounters(this.#readCounters.all());
    this.#session = this.#db.createSession();
  }

  /** Ends at the end of the transaction, still inside it, and moves the position of the copy. Undefined if nothing has changed. */
  end({ epoch, seq }: Position): Recorded | undefined {
    const changeset = this.#session?.changeset() ?? new Uint8Array();
    this.discard();
    const after = Object.entries(asCounters(this.#readCounters.all()));
    const counters = Object.fromEntries(after.filter(([name, value]) => this.#before[name] !== value));
    if (changeset.length === 0 && Object.keys(counters).length === 0) return undefined;
    this.#move.run(epoch, seq);
    return { changeset, counters };
  }

  /** Forgets what was recorded, because the transaction is rolled back. */
  discard(): void {
    this.#session?.close();
    this.#session = undefined;
  }
}

const lengthBytes = 4;

/** The bytes of an entry without changes. */
export const emptyEntry = (): Promise<Uint8Array> => encode({ changeset: new Uint8Array(), counters: {} });

/** The recorded changes as the bytes of an entry. */
export function encode({ changeset, counters }: Recorded): Promise<Uint8Array> {
  const head = Buffer.from(JSON.stringify({ counters }));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(head.length);
  return compress(Buffer.concat([length, head, changeset]));
}

/** The changes in the bytes of an entry. */
export async function decode(bytes: Uint8Array): Promise<Recorded> {
  const plain = await decompress(bytes);
  const headEnd = lengthBytes + plain.readUInt32LE();
  const { counters } = JSON.parse(plain.toString("utf8", lengthBytes, headEnd)) as { counters: Counters };
  return { counters, changeset: plain.subarray(headEnd) };
}

/** The triggers of a store, as statements that create them. */
export const triggersOf = (db: DatabaseSync): readonly string[] =>
  db
    .prepare("SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name")
    .all()
    .map(({ sql }) => String(sql));

/** Makes a copy follow: what triggers and foreign keys would change comes from the leader. */
export function follow(db: DatabaseSync): void {
  // After a loss of power the copy is whole, and may miss its last entries: the log has them.
  db.exec("PRAGMA synchronous = NORMAL");
  db.exec("PRAGMA foreign_keys = OFF");
  for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all())
    db.exec(`DROP TRIGGER ${String(name)}`);
}

/** Makes a copy lead, with the triggers of its schema (from {@link triggersOf} a new store). */
export function lead(db: DatabaseSync, triggers: readonly string[]): void {
  follow(db);
  for (const sql of triggers) db.exec(sql);
  db.exec("PRAGMA foreign_keys = ON");
}

/** An entry, decoded. */
export interface Decoded {
  readonly position: Position;
  readonly recorded: Recorded;
}

/**
 * Applies entries to a copy that follows, with their position, in one transaction: SQLite writes a page once that all of them change.
 * Returns how many it has applied when `isEnough` says so; at least one.
 * @throws DoesNotApply if the copy is not what the leader changed; nothing is changed then.
 */
export function apply(db: DatabaseSync, entries: readonly Decoded[], isEnough: () => boolean = () => false): number {
  let [applied, { seq }] = [0, positionOf(db)];
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const { position, recorded } of entries) {
      if (position.seq !== seq + 1) throw new DoesNotApply(`entry ${position.seq} does not follow entry ${seq}`);
      if (!makeChanges(db, recorded)) throw new DoesNotApply(`entry ${position.seq} does not fit this copy`);
      movePosition(db, position);
      [applied, seq] = [applied + 1, position.seq];
      if (isEnough()) break;
    }
    db.exec("COMMIT");
    return applied;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/**
 * Makes recorded changes, inside a transaction. False if they do not fit; nothing is changed then. With `overwrites` they also fit a row
 * that has other values by now.
 */
export function makeChanges(db: DatabaseSync, { changeset, counters }: Recorded, overwrites = false): boolean {
  const onConflict = (kind: number): number =>
    overwrites && kind === constants.SQLITE_CHANGESET_DATA
      ? constants.SQLITE_CHANGESET_REPLACE
      : constants.SQLITE_CHANGESET_ABORT;
  try {
    if (changeset.length > 0 && !db.applyChangeset(changeset, { onConflict })) return false;
  } catch (error) {
    // A row of something that is gone.
    if (sqliteCode(error) === constraintFailed) return false;
    throw error;
  }
  for (const [name, value] of Object.entries(counters)) setCounter(db, name, value);
  return true;
}

/** The table of counters has no key that a conflict could be resolved by. */
function setCounter(db: DatabaseSync, name: string, value: number): void {
  const { changes } = db.prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = ?").run(value, name);
  if (changes === 0) db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(name, value);
}
