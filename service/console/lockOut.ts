// Slows down the search for a code or a token.

const windowMs = 60_000;
const mostFailures = 20;
const mostAddresses = 1000;

/** Counts failed attempts by the address of the client. */
export class LockOut {
  /** Times of the latest failures, oldest first, by address. */
  readonly #failures = new Map<string, readonly number[]>();

  /**
   * Milliseconds until an address may try again; 0 if it may try now. ASSUMED: after 20 failed attempts to sign in to the console
   * within a minute, the client's address gets 429.
   */
  waitFor(address: string, now: number): number {
    const recent = this.#recent(address, now);
    const [oldest = now] = recent;
    return recent.length < mostFailures ? 0 : oldest + windowMs - now;
  }

  /** Counts a failure. */
  failed(address: string, now: number): void {
    const recent = [...this.#recent(address, now), now];
    this.#failures.delete(address);
    this.#failures.set(address, recent);
    // Many addresses must not fill the memory; the one that failed longest ago is forgotten.
    const [longestAgo] = this.#failures.keys();
    if (this.#failures.size > mostAddresses && longestAgo !== undefined) this.#failures.delete(longestAgo);
  }

  #recent(address: string, now: number): readonly number[] {
    return (this.#failures.get(address) ?? []).filter((at) => now - at < windowMs);
  }
}
