// A cache for what clients name: they can send any number of names, so it keeps those that were used last.

/** The values that were used last, by key. */
export class Recent<Value> {
  readonly #most: number;
  readonly #values = new Map<string, Value>();

  /** Keeps at most this many. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Number of kept values. */
  get size(): number {
    return this.#values.size;
  }

  get(key: string): Value | undefined {
    const value = this.#values.get(key);
    // The order of a Map is that of insertion.
    if (value !== undefined && this.#values.delete(key)) this.#values.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.#most) return;
    const [oldest] = this.#values.keys();
    if (oldest !== undefined) this.#values.delete(oldest);
  }

  delete(key: string): void {
    this.#values.delete(key);
  }

  keys(): Iterable<string> {
    return this.#values.keys();
  }

  clear(): void {
    this.#values.clear();
  }
}
