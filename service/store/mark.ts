// A counter of commits in a file next to the store. It reveals that the log was removed after a checkpoint, which SQLite cannot
// detect: the remaining store is valid, only older.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import type { Store } from "./database.ts";
import { markFile, markText } from "./markFile.ts";

// Counting every commit would write one more page for each.
const between = 1000;
/**
 * Counts in the store, and in the file once that is durable: the file may lag behind, but is never ahead. At most one
 * commit per second is counted, beginning with the first.
 */
export class Mark {
  readonly #store: Store;
  readonly #opened: number;
  #counted = Number.NEGATIVE_INFINITY;
  #next: number | undefined;

  constructor(store: Store, file: string) {
    this.#store = store;
    // Does not follow a link.
    this.#opened = openSync(markFile(file), constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  }

  /** Counts inside a transaction that is about to be committed. */
  count(now: number): void {
    if (now - this.#counted < between) return;
    const row = this.#store.change<{ count: number }>("UPDATE written SET count = count + 1 RETURNING count");
    this.#next = row?.count;
    this.#counted = now;
    this.#store.onUndo(() => this.#discard());
  }

  /** Writes the file after that transaction is durable. */
  write(): void {
    if (this.#next === undefined) return;
    const text = markText(this.#next);
    this.#next = undefined;
    try {
      writeSync(this.#opened, text, 0);
    } catch {
      // The data is safe; the next commit retries.
      this.#counted = Number.NEGATIVE_INFINITY;
    }
  }

  #discard(): void {
    this.#next = undefined;
    this.#counted = Number.NEGATIVE_INFINITY;
  }

  close(): void {
    closeSync(this.#opened);
  }
}
