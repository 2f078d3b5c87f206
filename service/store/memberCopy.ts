// A member's copy of the store: a SQLite file that may be deleted at any time, because the log has everything.
import { readFileSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Copy } from "../replication/catchUp.ts";
import {
  apply,
  compress,
  decode,
  decompress,
  follow,
  isCopy,
  positionOf,
  prepareCopy,
  triggersOf,
  type Position,
} from "../replication/changes.ts";
import type { SchemaOfCopy } from "../replication/leaderLog.ts";
import type { Logged, Snapshot } from "../replication/log.ts";
import { copyStore } from "./copy.ts";
import { companionFiles, open, Store } from "./database.ts";
import { writePrivately } from "./privateFile.ts";
import { currentSchema } from "./schema.ts";

/** Whether a file is a member's copy. */
export function isCopyFile(file: string): boolean {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return isCopy(db);
  } finally {
    db.close();
  }
}

/** The schema of this version, which a leader's copy has. */
export function currentCopySchema(): SchemaOfCopy {
  const { db } = new Store(":memory:");
  const triggers = triggersOf(db);
  db.close();
  return { schema: currentSchema(), triggers };
}

/** A copy in a file. */
export class MemberCopy implements Copy {
  readonly #file: string;
  #db: DatabaseSync;

  /** Opens the file, or creates an empty store. */
  constructor(file: string) {
    this.#file = file;
    this.#db = this.#open();
  }

  #open(): DatabaseSync {
    const db = open(this.#file);
    prepareCopy(db);
    follow(db);
    return db;
  }

  get position(): Position {
    return positionOf(this.#db);
  }

  async apply({ epoch, seq, bytes }: Logged): Promise<void> {
    apply(this.#db, { epoch, seq }, await decode(bytes));
  }

  async replace(snapshot: Snapshot | undefined): Promise<void> {
    const contents = snapshot && (await decompress(snapshot.bytes));
    this.#db.close();
    for (const one of [this.#file, ...companionFiles(this.#file)]) rmSync(one, { force: true });
    if (contents) writePrivately(this.#file, contents);
    this.#db = this.#open();
  }

  /** Its contents, as a snapshot. */
  async snapshot(): Promise<Snapshot> {
    const { seq } = this.position;
    const file = `${this.#file}.snapshot`;
    copyStore(this.#db, file);
    const contents = readFileSync(file);
    rmSync(file);
    return { seq, bytes: await compress(contents) };
  }

  /** Closes the file, which the store of the leader opens. */
  close(): void {
    this.#db.close();
  }
}
