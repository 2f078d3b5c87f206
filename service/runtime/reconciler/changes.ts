// Lets code wait for the next change of a Machine.

/** Those who wait for changes. */
export class Changes {
  readonly #waiting = new Map<string, Set<() => void>>();
  isClosed = false;

  /** Something about the Machine has changed. */
  happened(id: string): void {
    for (const resolve of this.#waiting.get(id) ?? []) resolve();
  }

  /** Resolves at the next change, after some milliseconds, or when the signal is aborted. */
  next(id: string, ms?: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(id) ?? new Set();
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        waiting.delete(end);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(end, ms);
      signal?.addEventListener("abort", end);
      this.#waiting.set(id, waiting.add(end));
    });
  }

  /** Ends all waits. */
  close(): void {
    this.isClosed = true;
    for (const id of [...this.#waiting.keys()]) this.happened(id);
  }
}
