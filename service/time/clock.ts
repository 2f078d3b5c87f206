// The only clock of the service. All delays use it, so that a test can stop it.

/** A clock with timers. */
export interface Clock {
  /** Milliseconds since 1970. Never runs backwards. */
  now(): number;
  /** Calls back once after that many milliseconds; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** True while `advance` moves the clock: due timers must be handled before it moves on. */
  readonly isMoved?: boolean;
}

// Timers of the event loop ignore the sleep of a laptop, so the clock is also checked this often (F30).
const longestSleep = 30_000;

/** The clock of the computer. It follows jumps forwards. After a jump backwards it continues at normal speed (F30). */
export function systemClock(wall: () => number = Date.now, monotonic: () => number = () => performance.now()): Clock {
  let now = wall();
  let seen = monotonic();
  return {
    now() {
      const tick = monotonic();
      now = Math.max(wall(), now + (tick - seen));
      seen = tick;
      return Math.floor(now);
    },
    after(ms, run) {
      const due = this.now() + Math.max(0, ms);
      let timer: NodeJS.Timeout;
      const sleep = (): void => {
        timer = setTimeout(
          () => (this.now() >= due ? run() : sleep()),
          Math.min(longestSleep, Math.max(0, due - this.now())),
        );
        timer.unref();
      };
      sleep();
      return () => clearTimeout(timer);
    },
  };
}

/** A clock that stands still until `advance` moves it. */
export class ManualClock implements Clock {
  readonly isMoved = true;
  #now: number;
  #timers: { at: number; run: () => void }[] = [];

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves the clock forwards and runs the timers that are due, in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = end;
  }
}

interface Timer {
  readonly due: number;
  readonly run: () => void;
  cancel: () => void;
}

/** A clock that follows another one and can be moved forwards, as by the sleep of a computer (F30). */
export class MovableClock implements Clock {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();
  #ahead = 0;
  #advancing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isMoved(): boolean {
    return this.#advancing || this.#clock.isMoved === true;
  }

  now(): number {
    return this.#clock.now() + this.#ahead;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { due: this.now() + Math.max(0, ms), run, cancel: () => {} };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
  }

  /** Moves that many milliseconds forwards and runs the timers that are due, in order. */
  advance(ms: number): void {
    const end = this.now() + ms;
    this.#advancing = true;
    try {
      for (;;) {
        const next = [...this.#timers].filter(({ due }) => due <= end).sort((a, b) => a.due - b.due)[0];
        if (!next) break;
        next.cancel();
        this.#timers.delete(next);
        this.#moveTo(next.due);
        next.run();
      }
    } finally {
      this.#advancing = false;
    }
    this.#moveTo(end);
    for (const timer of this.#timers) {
      timer.cancel();
      this.#arm(timer);
    }
  }

  #moveTo(time: number): void {
    this.#ahead += Math.max(0, time - this.now());
  }

  #arm(timer: Timer): void {
    timer.cancel = this.#clock.after(timer.due - this.now(), () => {
      this.#timers.delete(timer);
      timer.run();
    });
  }
}

/** The last millisecond that has a date. */
export const latestTime = 8.64e15;

/** RFC 3339 with seconds, as the service writes every time (docs/interface.md#values-on-the-wire). */
export const rfc3339 = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
