// A number beside the store that grows with what is written to it. SQLite cannot tell that its log was removed once a part
// of it has been copied into the store: what is left is a store like any other, only older.
import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
import type { Store } from "./database.ts";

/** Path of the mark of a store. */
export const markFile = (file: string): string => `${file}-mark`;

// Counting every commit would write a page more for each.
const between = 1000;
// Always as long as before, so that one write replaces the whole number.
const digits = 16;

/** The number beside a store, or undefined when there is none that can be read. */
export function readMark(file: string): number | undefined {
  try {
    const text = readFileSync(markFile(file), "latin1");
    return /^\d{16}\n$/.test(text) ? Number(text) : undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Counts in the store, and beside it once that is on the disk: the number beside it may be behind, never ahead. At most one
 * commit a second is counted, beginning with the first.
 */
export class Mark {
  readonly #store: Store;
  readonly #opened: number;
  #counted = Number.NEGATIVE_INFINITY;
  #next: number | undefined;

  constructor(store: Store, file: string) {
    this.#store = store;
    // Through no link that somebody put there.
    this.#opened = openSync(markFile(file), constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  }

  /** Part of a transaction that is about to be committed. */
  count(now: number): void {
    if (now - this.#counted < between) return;
    const row = this.#store.change<{ count: number }>("UPDATE written SET count = count + 1 RETURNING count");
    this.#next = row?.count;
    this.#counted = now;
    this.#store.onUndo(() => this.#discard());
  }

  /** That transaction is on the disk. */
  write(): void {
    if (this.#next === undefined) return;
    const text = `${String(this.#next).padStart(digits, "0")}\n`;
    this.#next = undefined;
    try {
      writeSync(this.#opened, text, 0);
    } catch {
      // What was to be kept is kept; the next commit tries again.
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
