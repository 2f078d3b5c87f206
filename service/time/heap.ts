// A binary heap: the entry that is before all others is at hand.

/** Entries, of which the first by an order is known. */
export class Heap<Entry> {
  readonly #isBefore: (a: Entry, b: Entry) => boolean;
  #entries: Entry[] = [];

  constructor(isBefore: (a: Entry, b: Entry) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** The first entry. */
  get first(): Entry | undefined {
    return this.#entries[0];
  }

  push(entry: Entry): void {
    const entries = this.#entries;
    let at = entries.length;
    for (let up = (at - 1) >> 1; at > 0; up = (at - 1) >> 1) {
      const above = entries[up];
      if (above === undefined || !this.#isBefore(entry, above)) break;
      entries[at] = above;
      at = up;
    }
    entries[at] = entry;
  }

  /** Removes the first entry. */
  shift(): void {
    const entries = this.#entries;
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return;
    let at = 0;
    for (;;) {
      const [left, right] = [entries[2 * at + 1], entries[2 * at + 2]];
      if (left === undefined) break;
      const isRight = right !== undefined && this.#isBefore(right, left);
      const next = isRight ? right : left;
      if (!this.#isBefore(next, last)) break;
      entries[at] = next;
      at = 2 * at + (isRight ? 2 : 1);
    }
    entries[at] = last;
  }

  /** Replaces all entries. */
  reset(entries: Iterable<Entry>): void {
    this.#entries = [];
    for (const entry of entries) this.push(entry);
  }
}
