// Time that passes only when nothing else can happen: the service and its clients share one clock, which advances to the
// next due event once all wait for it. Hours of waiting take only as long as the work in them.
import type { Clock } from "../../service/index.ts";

interface Due {
  readonly at: number;
  readonly run: () => void;
}

/** Event loop turns without activity after which everything is assumed to wait for the clock. */
const quietTurns = 4;

/** What happens, and whether something is under way that does not depend on the clock. */
export class Activity {
  #moves = 0;
  #busy = 0;

  /** Changes whenever something happens; undefined while something is under way. */
  readonly moves = (): number | undefined => (this.#busy === 0 ? this.#moves : undefined);

  /** Records that something happened. */
  moved(): void {
    this.#moves++;
  }

  /** Time stands still during this work, such as a disk operation. */
  async busy<T>(work: Promise<T>): Promise<T> {
    this.#busy++;
    try {
      return await work;
    } finally {
      this.#busy--;
      this.#moves++;
    }
  }
}

/** A clock that is advanced while waiting for work. */
export class SimulatedTime implements Clock {
  #now: number;
  readonly #due = new Set<Due>();
  /** Called before every step of time, when everything waits: what it sees lasts for some time. */
  beforeStep: () => void = () => undefined;

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  /** No one sets it. */
  onJump(): () => void {
    return () => {};
  }

  follow(): void {}

  after(ms: number, run: () => void): () => void {
    // Clocks have millisecond resolution.
    const due = { at: this.#now + Math.max(0, Math.ceil(ms)), run };
    this.#due.add(due);
    return () => void this.#due.delete(due);
  }

  /** Advances to the next due event and runs it; false if there is none. */
  #next(): boolean {
    let next: Due | undefined;
    for (const due of this.#due) if (next === undefined || due.at < next.at) next = due;
    if (!next) return false;
    this.#due.delete(next);
    this.#now = Math.max(this.#now, next.at);
    next.run();
    return true;
  }

  /**
   * Waits for some work, and lets time pass whenever the work cannot continue otherwise. `moves` changes whenever something
   * happens, and is undefined while something is under way that does not depend on the clock.
   * @throws when the work waits for something that never happens, or for longer than `atMost` milliseconds
   */
  async pass<T>(work: Promise<T>, moves: () => number | undefined, atMost: number): Promise<T> {
    const state = { isDone: false };
    const end = () => (state.isDone = true);
    work.then(end, end);
    const until = this.#now + atMost;
    for (let quiet = 0, last = moves(); !state.isDone;) {
      await new Promise((turn) => setImmediate(turn));
      const now = moves();
      quiet = now !== undefined && now === last ? quiet + 1 : 0;
      last = now;
      if (state.isDone || quiet < quietTurns) continue;
      quiet = 0;
      this.beforeStep();
      if (!this.#next()) throw new Error("the work waits for something that will never come");
      if (this.#now > until) throw new Error(`the work is not done after ${atMost / 1000} simulated seconds`);
    }
    return work;
  }
}
