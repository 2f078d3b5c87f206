// An outage must not multiply the load: while a service answers nothing, one request at a time is repeated, for all of them.
import type { Clock, Deadline } from "./clock.ts";

/** Failures in a row, whosever they are, after which the service counts as out. */
const outAfter = 10;
/** Milliseconds in which nobody repeats anything after one request tried to the last, unless there is an answer. */
const restFor = 30_000;

/** Milliseconds a request must have left to be the one that is repeated for all. */
const leastToTry = 30_000;
/** Milliseconds; a timer takes no more. */
const longestTimer = 2 ** 31 - 1;

/** A request that was sent and may be sent again. */
export type Attempting = object;

/** What all requests of one client know of the service together. */
export class CircuitBreaker {
  readonly #clock: Clock;
  #inARow = 0;
  #restUntil = 0;
  #probe:
    | { readonly by: Attempting; readonly over: Promise<boolean>; readonly end: (answered: boolean) => void }
    | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The service answered something that makes sense. */
  answered(): void {
    this.#inARow = 0;
    this.#restUntil = 0;
    this.#end(true);
  }

  /** There was no answer, or one of a server that failed. */
  failed(): void {
    this.#inARow++;
  }

  /** Resolves when the request may be sent again; false when it shall not be, because others have tried long enough. */
  async mayRepeat(by: Attempting, milliseconds: number, { at, signal }: Deadline): Promise<boolean> {
    if (this.#inARow >= outAfter && this.#probe?.by !== by) {
      const left = at - this.#clock.now();
      if (this.#clock.now() < this.#restUntil) return false;
      if (this.#probe) {
        if (!(await this.#within(left, this.#probe.over, signal))) return false;
        // Those that waited do not come back in one instant.
        await this.#clock.sleep(Math.round(this.#clock.random() * milliseconds), signal);
        return true;
      }
      // Who has little time must not be the one that all the others rely on.
      if (left < leastToTry) return false;
      let end: (answered: boolean) => void = () => undefined;
      const over = new Promise<boolean>((resolve) => (end = resolve));
      this.#probe = { by, over, end };
    }
    await this.#clock.sleep(milliseconds, signal);
    return true;
  }

  /** A request came to its end. */
  ended(by: Attempting): void {
    if (this.#probe?.by !== by) return;
    this.#restUntil = this.#clock.now() + restFor;
    this.#end(false);
  }

  /** What comes of it, or false when the time is over. */
  async #within(milliseconds: number, work: Promise<boolean>, signal: AbortSignal | undefined): Promise<boolean> {
    let stop: () => void = () => undefined;
    const late = new Promise<boolean>((resolve) => {
      if (Number.isFinite(milliseconds) && milliseconds < longestTimer)
        stop = this.#clock.every(Math.max(1, milliseconds), () => resolve(false));
    });
    try {
      return await unlessAborted(Promise.race([work, late]), signal);
    } finally {
      stop();
    }
  }

  #end(answered: boolean): void {
    this.#probe?.end(answered);
    this.#probe = undefined;
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    void work.then(resolve).finally(() => signal.removeEventListener("abort", stop));
  });
}
