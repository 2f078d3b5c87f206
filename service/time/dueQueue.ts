// A priority queue by due time. It holds the timers in memory; the store has them only for the next start.

/** An entry with a due time; of two with the same time the smaller id comes first. */
export interface Due {
  readonly due: number;
  readonly id: number;
}

const isBefore = (a: Due, b: Due): boolean => a.due < b.due || (a.due === b.due && a.id < b.id);

/** A binary heap. */
export class DueQueue<Entry extends Due> {
  #heap: Entry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** The entry that is due first. */
  get first(): Entry | undefined {
    return this.#heap[0];
  }

  push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    for (let up = (at - 1) >> 1; at > 0; up = (at - 1) >> 1) {
      const above = heap[up];
      if (above === undefined || !isBefore(entry, above)) break;
      heap[at] = above;
      at = up;
    }
    heap[at] = entry;
  }

  /** Removes the entry that is due first. */
  shift(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      if (left === undefined) break;
      const isRight = right !== undefined && isBefore(right, left);
      const next = isRight ? right : left;
      if (!isBefore(next, last)) break;
      heap[at] = next;
      at = 2 * at + (isRight ? 2 : 1);
    }
    heap[at] = last;
  }

  /** Replaces all entries. */
  reset(entries: Iterable<Entry>): void {
    this.#heap = [];
    for (const entry of entries) this.push(entry);
  }
}
