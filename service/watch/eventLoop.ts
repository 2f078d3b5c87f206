// How late the event loop is: everything runs on it, so what keeps it busy keeps all clients waiting.
import type { Sample } from "./exposition.ts";
import { Histogram } from "./exposition.ts";

/** Milliseconds between two measurements. */
const everyMs = 100;
// Upper bounds in seconds.
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Calls back again and again after that many milliseconds; the returned function ends that. */
export type Every = (ms: number, run: () => void) => () => void;

const every: Every = (ms, run) => {
  const timer = setInterval(run, ms).unref();
  return () => clearInterval(timer);
};

/** Measures how much later than planned a timer runs. */
export class EventLoopLag {
  readonly #late = new Histogram(bounds);
  readonly #end: () => void;

  /** `now` is a clock in milliseconds that is never set. */
  constructor(now: () => number = () => performance.now(), repeat: Every = every) {
    let due = now() + everyMs;
    this.#end = repeat(everyMs, () => {
      const at = now();
      this.#late.observe(Math.max(0, at - due) / 1000);
      due = at + everyMs;
    });
  }

  get samples(): Sample[] {
    return this.#late.samples({});
  }

  close(): void {
    this.#end();
  }
}
