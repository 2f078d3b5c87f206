// A priority queue by due time. It holds the timers in memory; the store has them only for the next start.
import { Heap } from "./heap.ts";

/** An entry with a due time; of two with the same time the smaller id comes first. */
export interface Due {
  readonly due: number;
  readonly id: number;
}

const isBefore = (a: Due, b: Due): boolean => a.due < b.due || (a.due === b.due && a.id < b.id);

/** Entries, of which the one that is due first is known. */
export class DueQueue<Entry extends Due> extends Heap<Entry> {
  constructor() {
    super(isBefore);
  }
}
