// Caches of recently read rows. Most requests read the same App and Machine, which would be a third of their work. The size of a
// cache is counted in characters, because clients send values of any size.
import type { Store } from "./database.ts";

type Undoing = Pick<Store, "onUndo">;

/** Values by key, each until it changes. A full cache is cleared. */
export class BoundedCache<Value> {
  readonly #values = new Map<string, Value>();
  readonly #weigh: (value: Value) => number;
  readonly #most: number;
  readonly #store: Undoing;
  #weight = 0;

  /** `weigh` estimates the characters of a value, `most` limits their sum. */
  constructor(store: Undoing, weigh: (value: Value) => number, most: number) {
    this.#store = store;
    this.#weigh = weigh;
    this.#most = most;
  }

  /** The value of a key: the cached one, or the one that `find` returns. Missing values are not cached. */
  get(key: string, find: () => Value | undefined): Value | undefined {
    const cached = this.#values.get(key);
    if (cached !== undefined) return cached;
    const value = find();
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** Sets the value of a key. */
  set(key: string, value: Value): void {
    this.forget(key);
    const weight = this.#weigh(value);
    if (weight > this.#most / 32) return; // it would displace everything else
    if (this.#weight + weight > this.#most) this.clear();
    this.#values.set(key, value);
    this.#weight += weight;
    // A value that was read while a transaction is open may come from changes that are rolled back later.
    this.#store.onUndo(() => this.forget(key));
  }

  /** Removes the value of a key, because it changes. */
  forget(key: string): void {
    const value = this.#values.get(key);
    if (value === undefined) return;
    this.#values.delete(key);
    this.#weight -= this.#weigh(value);
  }

  clear(): void {
    this.#values.clear();
    this.#weight = 0;
  }
}

const mostKeys = 20_000;

/** Rows by key, each until the row with its id changes. */
export class RowCache<Row extends { readonly id: string }> {
  readonly #rows: BoundedCache<Row>;
  readonly #keys = new Map<string, string>();

  constructor(store: Undoing, weigh: (row: Row) => number, most: number) {
    this.#rows = new BoundedCache(store, weigh, most);
  }

  /** The row of a key: the cached one, or the one that `find` returns. */
  get(key: string, find: () => Row | undefined): Row | undefined {
    return this.#rows.get(key, () => {
      const row = find();
      if (!row) return undefined;
      if (this.#keys.size >= mostKeys) this.clear();
      this.#keys.set(row.id, key);
      return row;
    });
  }

  /** Removes the row with that id, because it changes. */
  forget(id: string): void {
    const key = this.#keys.get(id);
    if (key === undefined) return;
    this.#rows.forget(key);
    this.#keys.delete(id);
  }

  clear(): void {
    this.#rows.clear();
    this.#keys.clear();
  }
}
