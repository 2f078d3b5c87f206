// A member's copy of the store: a SQLite file that may be deleted at any time, because the log has everything.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { backup, DatabaseSync, type SQLInputValue } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Copy } from "../replication/catchUp.ts";
import {
  apply,
  compress,
  decode,
  decompress,
  DoesNotApply,
  follow,
  isCopy,
  lead,
  movePosition,
  positionOf,
  prepareCopy,
  triggersOf,
  type Decoded,
  type Position,
} from "../replication/changes.ts";
import type { SchemaOfCopy } from "../replication/leaderLog.ts";
import type { Logged, Snapshot } from "../replication/log.ts";
import type { MadeSnapshot } from "../replication/snapshots.ts";
import { copyStore } from "./copy.ts";
import { companionFiles, open, requireWhole, schemaOf, StoreError } from "./database.ts";
import { sqliteCode } from "../sqliteCode.ts";
import { docsUrl } from "../../api/docsUrl.ts";
import { compareVersions } from "../releases.ts";
import { version } from "../version.ts";
import { writePrivately } from "./privateFile.ts";
import { reading } from "./reading.ts";
import { currentSchema } from "./schema.ts";
import { otherVersionNeeded } from "./writer.ts";

// A transaction that applies entries begins no other one after this time.
const transactionMs = 20;

/** Whether a file is a member's copy. */
export const isCopyFile = (file: string): boolean => reading(file, isCopy);

/** What a copy with a schema has, by default with that of this version. */
export function schemaOfCopies(schema = currentSchema()): SchemaOfCopy {
  const db = open(":memory:", schema);
  const triggers = triggersOf(db);
  db.close();
  return { schema, triggers };
}

/** An entry of the log that only a newer version can apply. */
export class NewerEntry extends StoreError {
  readonly #what: string;

  constructor(seq: number, schema: number) {
    const what = `entry ${seq} of the log was written by a newer machines-service (schema ${schema}), and this is ${version}, which knows schema ${currentSchema()}.`;
    super(`${what} ${otherVersionNeeded(undefined)}.`);
    this.#what = what;
  }

  /** The message, with the versions that the members of the service have. */
  explain(versions: readonly string[]): string {
    const newest = versions
      .filter((one) => compareVersions(one, version) > 0)
      .toSorted(compareVersions)
      .at(-1);
    const back = `A return to ${version} needs a moment from before the upgrade: ${docsUrl("upgrades.md#downgrade")}.`;
    return `${this.#what} ${otherVersionNeeded(newest)}. ${back}`;
  }
}

/** A copy in a file. */
export class MemberCopy implements Copy {
  readonly #file: string;
  #db: DatabaseSync;
  /** Only this object changes it. */
  #position: Position = { epoch: 0, seq: 0 };
  #replaced = 0;

  /** Opens the file, or creates an empty store. A damaged file is replaced. */
  constructor(file: string) {
    this.#file = file;
    try {
      this.#db = this.#open();
      requireWhole({ db: this.#db }, file);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#remove();
      this.#db = this.#open();
      this.#replaced++;
    }
  }

  /** A copy keeps its schema until an entry has a later one; a new one gets that of this version. */
  #open(schema = existsSync(this.#file) ? 0 : currentSchema()): DatabaseSync {
    const db = open(this.#file, schema);
    if (schemaOf(db) === 0) {
      db.close();
      this.#remove();
      return this.#open();
    }
    prepareCopy(db);
    follow(db);
    this.#position = positionOf(db);
    return db;
  }

  #remove(): void {
    for (const one of [this.#file, ...companionFiles(this.#file)]) rmSync(one, { force: true });
  }

  get position(): Position {
    return this.#position;
  }

  /** How often it was replaced, because it did not fit the log. */
  get replaced(): number {
    return this.#replaced;
  }

  /** Whether it has the tables of this version; until the leader has that version, too, it has those of the version before. */
  get isCurrent(): boolean {
    return schemaOf(this.#db) === currentSchema();
  }

  /** All rows. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#db.prepare(sql).all(...values) as Row[];
  }

  /** The first row, if any. */
  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#db.prepare(sql).get(...values) as Row | undefined;
  }

  async apply(entries: readonly Logged[]): Promise<void> {
    const decoded = await Promise.all(
      entries.map(async ({ epoch, seq, bytes }) => ({ position: { epoch, seq }, recorded: await decode(bytes) })),
    );
    for (let from = 0; from < entries.length;) {
      const { schema, seq } = entries[from] as Logged;
      this.#suit(schema, seq);
      const until = entries.findIndex((entry, i) => i > from && entry.schema !== schema);
      from += this.#applySome(decoded.slice(from, until < 0 ? undefined : until), seq);
      // The requests that this member forwards wait only for one transaction.
      if (from < entries.length) await setImmediate();
    }
  }

  /** Applies as many entries as one transaction may have. */
  #applySome(entries: readonly Decoded[], seq: number): number {
    const until = performance.now() + transactionMs;
    try {
      const applied = apply(this.#db, entries, () => performance.now() >= until);
      this.#position = positionOf(this.#db);
      return applied;
    } catch (error) {
      const isDamaged = [11, 26].includes(sqliteCode(error) ?? 0);
      throw isDamaged ? new DoesNotApply(`the copy is damaged before entry ${seq}`, { cause: error }) : error;
    }
  }

  /** Gives the copy the schema of the next entry: the leader's copy was migrated just before it. */
  #suit(schema: number, seq: number): void {
    const own = schemaOf(this.#db);
    if (schema === own) return;
    if (schema > currentSchema()) throw new NewerEntry(seq, schema);
    if (schema > own) return this.#migrate(schema);
    if (this.position.seq > 0) throw new DoesNotApply(`entry ${seq} has an older schema than this copy`);
    this.#db.close();
    this.#remove();
    this.#db = this.#open(schema);
  }

  /** The steps to a later schema may need its triggers. */
  #migrate(schema: number): void {
    lead(this.#db, schemaOfCopies(schemaOf(this.#db)).triggers);
    this.#db.close();
    this.#db = this.#open(schema);
  }

  async replace(snapshot: Snapshot | undefined): Promise<void> {
    const contents = snapshot && (await decompress(snapshot.bytes));
    if (this.position.seq > 0) this.#replaced++;
    this.#db.close();
    this.#remove();
    if (contents) writePrivately(this.#file, contents);
    this.#db = this.#open();
  }

  /** Closes the file as it is. */
  release(): void {
    this.#db.close();
  }

  /** Closes the file, with the schema of this version: the store of the leader opens it. */
  close(): void {
    if (schemaOf(this.#db) < currentSchema()) this.#migrate(currentSchema());
    this.release();
  }

  /**
   * Closes it likewise, while another connection stays open: the last one to close writes SQLite's log into the file, and may wait for
   * the disk for seconds. Returns how to end that connection, once the store is open.
   */
  passOn(): () => void {
    const held = new DatabaseSync(this.#file, { readOnly: true });
    held.prepare("SELECT 1 FROM copy_position").get();
    this.close();
    return () => held.close();
  }
}

/** Makes a copy that no member uses a plain store again, with the current schema. */
export function becomeStore(file: string): void {
  const db = open(file);
  lead(db, schemaOfCopies().triggers);
  db.exec("DROP TABLE copy_position; PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE");
  db.close();
}

/** A plain store as the snapshot that a log begins with. */
export async function snapshotOfStore(file: string, position: Position): Promise<Snapshot> {
  const draft = `${file}.copy`;
  rmSync(draft, { force: true });
  const store = new DatabaseSync(file, { readOnly: true });
  try {
    copyStore(store, draft, (copy) => {
      prepareCopy(copy);
      follow(copy);
      movePosition(copy, position);
    });
    return await snapshotOf(draft);
  } finally {
    store.close();
    rmSync(draft, { force: true });
  }
}

/** What a copy contains now, as a snapshot. The copy may be in use. */
export async function snapshotOf(file: string): Promise<MadeSnapshot> {
  const draft = `${file}.snapshot`;
  rmSync(draft, { force: true });
  // A connection of its own, and all pages at once: so the changes of others are in it completely or not at all.
  const source = new DatabaseSync(file, { readOnly: true });
  try {
    await backup(source, draft, { rate: 2 ** 30 });
    const made = new DatabaseSync(draft);
    // One file, also for those who only read it.
    made.exec("PRAGMA journal_mode = DELETE");
    const position = positionOf(made);
    made.close();
    return { ...position, bytes: await compress(readFileSync(draft)) };
  } finally {
    source.close();
    rmSync(draft, { force: true });
  }
}
