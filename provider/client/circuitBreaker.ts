// Keeps retries from multiplying the load of a service that is down: only one request is repeated at a time, for all of them.
import type { Clock, Deadline } from "./clock.ts";
import type { Handler } from "./handler.ts";
import type { Outcome } from "./transport.ts";

/** Consecutive failures, of any requests, after which the service counts as down. */
const outAfter = 10;
/** Milliseconds without any retry after one request has used up its attempts. An answer ends this pause. */
const restFor = 30_000;

/** Milliseconds that must remain of a request to be the one that is repeated for all. */
const leastToTry = 30_000;
/** The longest timer, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

/** A request that was sent and may be sent again. */
export type Attempting = object;

/** State of the service, shared by all requests of one client. */
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

  /** Records a usable answer of the service. */
  answered(): void {
    this.#inARow = 0;
    this.#restUntil = 0;
    this.#end(true);
  }

  /** Records a missing answer, or one of a failed server. */
  failed(): void {
    this.#inARow++;
  }

  /** Resolves when the request may be sent again. It resolves to false after others have tried long enough. */
  async mayRepeat(by: Attempting, milliseconds: number, { at, signal }: Deadline): Promise<boolean> {
    if (this.#inARow >= outAfter && this.#probe?.by !== by) {
      const remaining = at - this.#clock.now();
      if (this.#clock.now() < this.#restUntil) return false;
      if (this.#probe) {
        if (!(await this.#within(remaining, this.#probe.over, signal))) return false;
        // The waiting requests are spread out, so that they do not return at the same moment.
        await this.#clock.sleep(Math.round(this.#clock.random() * milliseconds), signal);
        return true;
      }
      // A request with little time left must not be the one that all others depend on.
      if (remaining < leastToTry) return false;
      let end: (answered: boolean) => void = () => undefined;
      const over = new Promise<boolean>((resolve) => (end = resolve));
      this.#probe = { by, over, end };
    }
    await this.#clock.sleep(milliseconds, signal);
    return true;
  }

  /** Records the end of a request. */
  ended(by: Attempting): void {
    if (this.#probe?.by !== by) return;
    this.#restUntil = this.#clock.now() + restFor;
    this.#end(false);
  }

  /** The result of the work, or false if the time is over first. */
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

/** Records after each request whether the service answered. */
export const noteOutcomes =
  (circuitBreaker: CircuitBreaker, next: Handler<Outcome>): Handler<Outcome> =>
  async (request) => {
    const outcome = await next(request);
    if (outcome.kind === "answer" && (outcome.status < 500 || outcome.status === 501)) circuitBreaker.answered();
    // Long polls also end without an answer if nothing is wrong.
    else if (!request.operation.held && !(outcome.kind !== "answer" && outcome.lasting)) circuitBreaker.failed();
    return outcome;
  };
