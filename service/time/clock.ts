// The only clock of the service. All delays use it, so that a test can stop it. Dates come from the clock of the computer, which can
// be set; durations do not.
import { uptime } from "node:os";

/** A clock with timers. */
export interface Clock {
  /** Whole milliseconds since 1970, for dates. It runs backwards only in `follow`. */
  now(): number;
  /** Whole milliseconds, for durations: no one can set it. It runs while the computer sleeps (F30). */
  elapsed(): number;
  /** Calls back once after that many milliseconds; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Calls back when the clock of the computer was set, by that many milliseconds; the returned function ends that (F93). */
  onJump(jumped: (ms: number) => void): () => void;
  /** Moves `now` by that many milliseconds. Until then, it runs as if the clock had not been set. */
  follow(ms: number): void;
  /** True while `advance` moves the clock: due timers must be handled before it moves on. */
  readonly isMoved?: boolean;
}

/** What a clock of the computer reads, in milliseconds. */
interface ClockSources {
  /** Since 1970; it can be set. */
  readonly wall: () => number;
  /** It cannot be set; whether it runs while the computer sleeps depends on the system. */
  readonly monotonic: () => number;
  /** The same, with the time that the computer slept. It may have whole seconds. */
  readonly uptime: () => number;
}

const sources: ClockSources = { wall: Date.now, monotonic: () => performance.now(), uptime: () => uptime() * 1000 };

// Timers of the event loop ignore the sleep of a laptop, so the clock is also checked this often (F30).
const longestSleep = 30_000;
const watchEvery = 1000;
/** A smaller difference is a correction, which takes effect bit by bit. */
const jumpMs = 1000;
/** Uptimes may have whole seconds. */
const sleepMs = 2000;

/** The clock of the computer. */
class SystemClock implements Clock {
  readonly #sources: ClockSources;
  readonly #begun: number;
  readonly #awake: number;
  #slept = 0;
  /** The date at which `elapsed` was 0. */
  #start: number;
  #last = Number.NEGATIVE_INFINITY;

  constructor(from: Partial<ClockSources> = {}) {
    this.#sources = { ...sources, ...from };
    const { wall, monotonic, uptime: up } = this.#sources;
    this.#begun = monotonic();
    this.#awake = up() - this.#begun;
    this.#start = Math.floor(wall());
  }

  now(): number {
    this.#last = Math.max(this.#last, this.#start + this.elapsed());
    return this.#last;
  }

  elapsed(): number {
    return Math.floor(this.#sources.monotonic() - this.#begun + this.#slept);
  }

  after(ms: number, run: () => void): () => void {
    const due = this.elapsed() + Math.max(0, ms);
    let timer: NodeJS.Timeout;
    const sleep = (): void => {
      const wake = (): void => {
        this.#noticeSleep();
        if (this.elapsed() >= due) run();
        else sleep();
      };
      timer = setTimeout(wake, Math.min(longestSleep, Math.max(0, due - this.elapsed()))).unref();
    };
    sleep();
    return () => clearTimeout(timer);
  }

  onJump(jumped: (ms: number) => void): () => void {
    const watch = (): void => {
      this.#noticeSleep();
      const ms = Math.round(this.#sources.wall() - this.#start - this.elapsed());
      if (Math.abs(ms) > jumpMs) jumped(ms);
      else this.#start += ms;
    };
    const timer = setInterval(watch, watchEvery).unref();
    return () => clearInterval(timer);
  }

  follow(ms: number): void {
    this.#start += ms;
    this.#last = Number.NEGATIVE_INFINITY;
  }

  #noticeSleep(): void {
    const { monotonic, uptime: up } = this.#sources;
    const slept = up() - monotonic() - this.#awake;
    if (slept - this.#slept > sleepMs) this.#slept = slept;
  }
}

/** The clock of the computer. */
export const systemClock = (from?: Partial<ClockSources>): Clock => new SystemClock(from);

/** A clock that stands still until `advance` moves it. */
export class ManualClock implements Clock {
  readonly isMoved = true;
  /** The date at which `elapsed` was 0. */
  #start: number;
  #elapsed = 0;
  #timers: { at: number; run: () => void }[] = [];
  readonly #jumped = new Set<(ms: number) => void>();

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  onJump(jumped: (ms: number) => void): () => void {
    this.#jumped.add(jumped);
    return () => void this.#jumped.delete(jumped);
  }

  follow(ms: number): void {
    this.#start += ms;
  }

  /** Sets the clock forwards or backwards, as its user can; no time passes. */
  set(ms: number): void {
    for (const jumped of this.#jumped) jumped(ms);
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#elapsed + Math.max(0, ms), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves the clock forwards and runs the timers that are due, in order. */
  advance(ms: number): void {
    const end = this.#elapsed + ms;
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#elapsed = Math.max(this.#elapsed, next.at);
      next.run();
    }
    this.#elapsed = end;
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

  elapsed(): number {
    return this.#clock.elapsed() + this.#ahead;
  }

  onJump(jumped: (ms: number) => void): () => void {
    return this.#clock.onJump(jumped);
  }

  follow(ms: number): void {
    this.#clock.follow(ms);
  }

  after(ms: number, run: () => void): () => void {
    const timer = { due: this.elapsed() + Math.max(0, ms), run, cancel: () => {} };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
  }

  /** Moves that many milliseconds forwards and runs the timers that are due, in order. */
  advance(ms: number): void {
    const end = this.elapsed() + ms;
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
    this.#ahead += Math.max(0, time - this.elapsed());
  }

  #arm(timer: Timer): void {
    timer.cancel = this.#clock.after(timer.due - this.elapsed(), () => {
      this.#timers.delete(timer);
      timer.run();
    });
  }
}

/** The last millisecond that has a date. */
export const latestTime = 8.64e15;

/** The latest time that was written: most answers have the same second more than once. */
let written = { second: Number.NaN, text: "" };

/** RFC 3339 with seconds, as the service writes every time (docs/interface.md#values-on-the-wire). */
export function rfc3339(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== written.second) written = { second, text: `${new Date(ms).toISOString().slice(0, 19)}Z` };
  return written.text;
}
