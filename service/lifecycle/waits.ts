// Requests that are held until something happens. They are woken by the commit that made it happen, never by a clock
// that looks at the store.
import type { Clock } from "./clock.ts";
import { Refusal } from "../refusal.ts";

interface Waiter {
  /** Looks again; true when the waiter is done. */
  look(): boolean;
  end(reason: Refusal): void;
}

/** What a held request waits for. */
export interface Hold<T> {
  /** Identifier whose change is worth another look. */
  readonly subject: string;
  /** The answer, or undefined to go on waiting; a refusal is thrown. */
  readonly look: () => T | undefined;
  readonly timeoutMs: number;
  readonly late: () => Refusal;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

// ASSUMED: requests are held on half of the connections there may be; one more is 503 with `Retry-After`.
const tooMany = (most: number): Refusal =>
  new Refusal(503, { error: `too many requests are held, at most ${most} may be` }, { "retry-after": "5" });

/** Every request that is being held. */
export class Waits {
  readonly #clock: Clock;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #most: number;
  #size = 0;
  #closed: Refusal | undefined;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Number of requests held now. */
  get size(): number {
    return this.#size;
  }

  hold<T>({ subject, look, timeoutMs, late, signal }: Hold<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      const settle = (done: () => void): void => {
        cancelTimeout();
        signal.removeEventListener("abort", leave);
        const waiters = this.#waiters.get(subject);
        if (waiters?.delete(waiter)) this.#size--;
        if (waiters?.size === 0) this.#waiters.delete(subject);
        done();
      };
      const waiter: Waiter = {
        look() {
          try {
            const answer = look();
            if (answer === undefined) return false;
            settle(() => resolve(answer));
          } catch (error) {
            settle(() => reject(error));
          }
          return true;
        },
        end: (reason) => settle(() => reject(reason)),
      };
      const leave = (): void => waiter.end(new Refusal(499, { error: "the client has gone" }));
      const cancelTimeout = this.#clock.after(timeoutMs, () => settle(() => reject(late())));
      signal.addEventListener("abort", leave);
      const waiters = this.#waiters.get(subject);
      if (waiters) waiters.add(waiter);
      else this.#waiters.set(subject, new Set([waiter]));
      this.#size++;
      if (!waiter.look() && this.#size > this.#most) waiter.end(tooMany(this.#most));
    });
  }

  /** Lets everybody look who waits for one of these. */
  wake(subjects: Iterable<string>): void {
    if (this.#waiters.size === 0) return;
    for (const subject of subjects) {
      for (const waiter of [...(this.#waiters.get(subject) ?? [])]) waiter.look();
    }
  }

  /** Ends every held request. ASSUMED: requests that are held get 503 and `Connection: close` when the service closes. */
  close(): void {
    this.#closed = new Refusal(
      503,
      { error: "the service is shutting down" },
      { connection: "close", "retry-after": "1" },
    );
    for (const waiters of [...this.#waiters.values()]) for (const waiter of [...waiters]) waiter.end(this.#closed);
  }
}
