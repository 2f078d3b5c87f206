// Time and chance, handed in so that a test can hold them still.

/** What the client needs of time and chance. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after the time, or rejects with the signal's reason. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls again and again, that many milliseconds apart, until what it answers is called. */
  every(milliseconds: number, run: () => void): () => void;
  /** A number from 0 up to, not including, 1. */
  random(): number;
}

/** Pauses between two looks at something that takes its time: short first, `factor` times as long each time, up to a bound. */
export function growingPause(first: number, most: number, factor = 2): () => number {
  let next = first;
  return () => {
    const pause = next;
    next = Math.min(most, next * factor);
    return pause;
  };
}

/** Says what is being waited for every ten seconds, however often the waiter comes by; `after` is when the first is due. */
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

/** The machine's own clock. */
export const systemClock: Clock = {
  now: Date.now,
  random: Math.random,
  every(milliseconds, run) {
    const timer = setInterval(run, milliseconds);
    return () => clearInterval(timer);
  },
  sleep: (milliseconds, signal) =>
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
    }),
};

/** Until when an operation may go on, and what cancels it. */
export interface Deadline {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** What was allowed, for messages: "10m". */
  readonly allowed: string;
  readonly signal?: AbortSignal | undefined;
  /** What to do when the time was not enough, as a sentence; the advice for an up when left out. */
  readonly advice?: string | undefined;
}
