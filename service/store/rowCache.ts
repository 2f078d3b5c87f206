// What was read lately. Nearly every request asks for the same App and Machine, and reading them again would be a third of
// its work. How much is kept is counted in characters: what clients send is as large as they like.
import type { Store } from "./database.ts";

type Undoing = Pick<Store, "onUndo">;

/** Values by a key, each until something about it changes; when there are too many, all of them go. */
export class BoundedCache<Value> {
  readonly #values = new Map<string, Value>();
  readonly #weigh: (value: Value) => number;
  readonly #most: number;
  readonly #store: Undoing;
  #weight = 0;

  /** `weigh` says about how many characters a value has, `most` how many all of them may have. */
  constructor(store: Undoing, weigh: (value: Value) => number, most: number) {
    this.#store = store;
    this.#weigh = weigh;
    this.#most = most;
  }

  /** The value of a key: the one that is kept, or the one that is found now. That there is none is not kept. */
  get(key: string, find: () => Value | undefined): Value | undefined {
    const cached = this.#values.get(key);
    if (cached !== undefined) return cached;
    const value = find();
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** What the value of a key is now. */
  set(key: string, value: Value): void {
    this.forget(key);
    const weight = this.#weigh(value);
    if (weight > this.#most / 32) return; // it would drive out everything else
    if (this.#weight + weight > this.#most) this.clear();
    this.#values.set(key, value);
    this.#weight += weight;
    // A value that was found while a transaction is open may come from what is undone later.
    this.#store.onUndo(() => this.forget(key));
  }

  /** Something about that key changes. */
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

/** Rows by a key, each until something about the row of that id changes. */
export class RowCache<Row extends { readonly id: string }> {
  readonly #rows: BoundedCache<Row>;
  readonly #keys = new Map<string, string>();

  constructor(store: Undoing, weigh: (row: Row) => number, most: number) {
    this.#rows = new BoundedCache(store, weigh, most);
  }

  /** The row of a key: the one that is kept, or the one that is found now. */
  get(key: string, find: () => Row | undefined): Row | undefined {
    return this.#rows.get(key, () => {
      const row = find();
      if (!row) return undefined;
      if (this.#keys.size >= mostKeys) this.clear();
      this.#keys.set(row.id, key);
      return row;
    });
  }

  /** Something about the row with that id changes. */
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
