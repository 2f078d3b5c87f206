// Runs work in order where two pieces of work on one thing would disturb each other.

/** Runs work one after the other for each key, and side by side for different keys. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after all earlier work of the key, whether that succeeds or fails. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    this.#last.set(key, mine);
    const forget = (): void => void (this.#last.get(key) === mine && this.#last.delete(key));
    mine.then(forget, forget);
    return mine;
  }

  /** Whether work of the key runs or waits. */
  isBusy(key: string): boolean {
    return this.#last.has(key);
  }
}
