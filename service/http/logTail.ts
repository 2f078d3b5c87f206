// The last lines of a log while it is read. An engine keeps far more of all Machines than the service has memory for.
import type { LogLine } from "../runtime/runtime.ts";

// ASSUMED: an answer with logs leaves out the oldest lines beyond 4 million characters, which a thousand lines of 4 KB have.
/** Characters of lines that one reader holds in memory. */
export const mostText = 2 ** 22;

/** The last lines: at most as many as are requested, and at most that much text. The last one is always among them. */
export class LogTail<L extends LogLine> {
  readonly #count: number;
  readonly #order: (lines: readonly L[]) => readonly L[];
  #lines: L[] = [];
  #text = 0;

  /** `order` puts the lines in the order by which they are the last ones; without it, they are in this order already. */
  constructor(count: number, order: (lines: readonly L[]) => readonly L[] = (lines) => lines) {
    this.#count = count;
    this.#order = order;
  }

  /** Number of lines in memory. */
  get size(): number {
    return this.#lines.length;
  }

  /** Adds a line. Twice as much as is answered is in memory at most, because sorting for each line takes too long. */
  add(line: L): void {
    this.#lines.push(line);
    this.#text += line.text.length;
    if (this.#lines.length > 2 * this.#count || this.#text > 2 * mostText) this.#trim();
  }

  /** The last lines of those so far. */
  lines(): readonly L[] {
    this.#trim();
    return this.#lines;
  }

  #trim(): void {
    const all = this.#order(this.#lines);
    const kept: L[] = [];
    this.#text = 0;
    for (const line of all.toReversed()) {
      const isTooMuch = kept.length > 0 && this.#text + line.text.length > mostText;
      if (kept.length >= this.#count || isTooMuch) break;
      this.#text += line.text.length;
      kept.push(line);
    }
    this.#lines = kept.reverse();
  }
}
