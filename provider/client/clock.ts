// Time and randomness, injected so that a test controls them.

/** Time and randomness for the client. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after the time, or rejects with the signal's reason. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls `work` at this interval until the returned function is called. */
  every(milliseconds: number, run: () => void): () => void;
  /** A number from 0 up to, not including, 1. */
  random(): number;
}

/**
 * Reports every ten seconds what is being waited for, however often it is called; `after` is the time of the first
 * report.
 */
export function everyTenSeconds(
  clock: Clock,
  say: (message: string) => void,
  after = 10_000,
): (message: string) => void {
  let due = clock.now() + after;
  return (message) => {
    if (clock.now() < due) return;
    due = clock.now() + 10_000;
    say(message);
  };
}

/**
 * The system time in milliseconds since 1970. It follows jumps forwards, because a computer that slept has lost that time.
 * It ignores jumps backwards, which would make leases and deadlines last longer (F30).
 */
export function steadyTime(
  wall: () => number = () => Date.now(),
  monotonic: () => number = () => performance.now(),
): () => number {
  let now = wall();
  let seen = monotonic();
  return () => {
    const tick = monotonic();
    now = Math.max(wall(), now + (tick - seen));
    seen = tick;
    return Math.floor(now);
  };
}

/** Milliseconds; a timer neither notices a computer's sleep nor accepts more than 24 days. */
const longestTimer = 30_000;

/** The system clock. */
export const systemClock: Clock = {
  now: steadyTime(),
  random: Math.random,
  every(milliseconds, run) {
    const timer = setInterval(run, milliseconds);
    return () => clearInterval(timer);
  },
  async sleep(milliseconds, signal) {
    const until = this.now() + milliseconds;
    do await pause(Math.min(longestTimer, until - this.now()), signal);
    while (this.now() < until);
  },
};

const pause = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });

/** The deadline of an operation, and its cancellation. */
export interface Deadline {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The time allowed, for messages: "10m". */
  readonly allowed: string;
  readonly signal?: AbortSignal | undefined;
  /** The maximum number of requests; unlimited by default. */
  readonly requests?: number;
  /** The advice after a timeout, as a sentence; by default the advice for an up. */
  readonly advice?: string | undefined;
}
