// Answers and other results that are made once and then remembered.

/** Remembers results by key. */
export class Memo {
  readonly #known = new Map<string, unknown>();

  /** The result for a key, made on first use. A promise that fails is forgotten, so that the next use tries again. */
  get<T>(key: string, make: () => T): T {
    if (this.#known.has(key)) return this.#known.get(key) as T;
    const made = make();
    this.#known.set(key, made);
    if (made instanceof Promise)
      made.catch(() => {
        if (this.#known.get(key) === made) this.#known.delete(key);
      });
    return made;
  }
}
