// A member's copy of the store: a SQLite file that may be deleted at any time, because the log has everything.
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import type { DatabaseSync } from "node:sqlite";
import type { Copy } from "./catchUp.ts";
import { apply, decode, follow, positionOf, prepareCopy, type Position } from "./changes.ts";
import type { Logged, Snapshot } from "./log.ts";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** How the store of a copy is opened, and which files it has. */
export interface StoreFiles {
  readonly file: string;
  /** Files that SQLite keeps beside it. */
  readonly companions: readonly string[];
  open(file: string): DatabaseSync;
}

/** A copy in a file. */
export class StoreCopy implements Copy {
  readonly #files: StoreFiles;
  #db: DatabaseSync;

  /** Opens the file, or creates an empty store. */
  constructor(files: StoreFiles) {
    this.#files = files;
    this.#db = this.#open();
  }

  #open(): DatabaseSync {
    const db = this.#files.open(this.#files.file);
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
    const { file, companions } = this.#files;
    for (const one of [file, ...companions]) rmSync(one, { force: true });
    if (contents) {
      // A process that dies meanwhile leaves no half of a store.
      const draft = `${file}.draft`;
      writeFileSync(draft, contents, { mode: 0o600, flush: true });
      renameSync(draft, file);
    }
    this.#db = this.#open();
  }

  /** What it contains, as a snapshot. */
  async snapshot(): Promise<Snapshot> {
    const draft = `${this.#files.file}.snapshot`;
    rmSync(draft, { force: true });
    const { seq } = this.position;
    this.#db.prepare("VACUUM INTO ?").run(draft);
    const contents = readFileSync(draft);
    rmSync(draft);
    return { seq, bytes: await compress(contents) };
  }

  /** Closes the file, which the store of the leader opens. */
  close(): void {
    this.#db.close();
  }
}
