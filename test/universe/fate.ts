// What the networks do to each message: which are lost, doubled and late is decided by a seed and by the disturbances of the story.
import { randomOf } from "../support/random.ts";

/** Messages that a network loses or doubles. */
export const strikes = [
  ...["requests lost", "answers lost", "requests doubled"],
  ...["log requests lost", "log answers lost", "log requests doubled"],
] as const;
export type Strike = (typeof strikes)[number] | "requests late" | "log late";

/** How likely each is during a disturbance. */
const likely = 0.3;

/** Decides on every message. */
export class Fate {
  readonly #random: () => number;
  /** Which disturbances there are now, and how many of each. */
  readonly #now = new Map<Strike, number>();

  constructor(luck: number) {
    this.#random = randomOf(luck);
  }

  get random(): number {
    return this.#random();
  }

  begin(strike: Strike): void {
    this.#now.set(strike, (this.#now.get(strike) ?? 0) + 1);
  }

  end(strike: Strike): void {
    this.#now.set(strike, Math.max(0, (this.#now.get(strike) ?? 0) - 1));
  }

  /** Nothing goes wrong any more. */
  calm(): void {
    this.#now.clear();
  }

  strikes(strike: Strike): boolean {
    return (this.#now.get(strike) ?? 0) > 0 && this.random < likely;
  }

  /** Milliseconds of one way. */
  delay(): number {
    return this.strikes("requests late") ? this.random * 10_000 : 1 + this.random * 10;
  }

  /** Milliseconds of one way to the log: sometimes longer than a lease. */
  logDelay(): number {
    return this.strikes("log late") ? this.random * 10_000 : 1 + this.random * 5;
  }
}
