// A member's copy of the store: a SQLite file that may be deleted at any time, because the log has everything.
import { readFileSync, rmSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import type { Copy } from "../replication/catchUp.ts";
import {
  apply,
  compress,
  decode,
  decompress,
  follow,
  positionOf,
  prepareCopy,
  type Position,
} from "../replication/changes.ts";
import type { Logged, Snapshot } from "../replication/log.ts";
import { copyStore } from "./copy.ts";
import { companionFiles, open } from "./database.ts";
import { writePrivately } from "./privateFile.ts";

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
