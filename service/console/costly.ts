// Answers about all Machines of an organization: counting 100,000 rows takes a while, and other requests must not wait for each
// viewer's count.
import type { Fresh } from "./types.ts";

/** An answer may use this share of the time: one that took 50 ms is counted again after 1 s. */
const share = 0.05;
// ASSUMED: answers that took less are always counted again.
const cheapMs = 5;
const kept = 100;

interface Kept {
  readonly value: object;
  readonly at: number;
  readonly took: number;
}

/** Remembers expensive answers for a time in proportion to their cost. */
export class Costly {
  readonly #kept = new Map<string, Kept>();
  readonly #now: () => number;

  /** `now` gives milliseconds of processor time or of a steady clock. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The answer, and in how many milliseconds there will be a fresh one if this one is remembered. */
  answer<T extends object>(name: string, count: () => T): T & Fresh {
    const now = this.#now();
    const known = this.#kept.get(name);
    const rest = known === undefined ? 0 : known.at + known.took / share - now;
    if (known !== undefined && known.took > cheapMs && rest > 0)
      return { ...(known.value as T), freshIn: Math.ceil(rest) };
    const value = count();
    const at = this.#now();
    this.#kept.delete(name);
    this.#kept.set(name, { value, at, took: at - now });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > kept && oldest !== undefined) this.#kept.delete(oldest);
    return value;
  }
}
