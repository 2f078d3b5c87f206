// Ports of this computer that the proxy listens at for Apps. Each takes a descriptor, and a range in a configuration has up to 65,535
// ports, at each of the App's addresses (F76).
import type { Log } from "../runtime/runtime.ts";

/** Milliseconds between two warnings that there are too many. */
const warnMs = 60_000;

/** The proxy listens at as many ports as it may. */
export class NoPortLeft extends Error {}

/** Counts the ports of organizations. */
export class PortBudget {
  readonly #most: number;
  readonly #log: Pick<Log, "warn">;
  readonly #used = new Map<number, number>();
  #all = 0;
  #warnedAt = -Infinity;

  constructor(most: number, log: Pick<Log, "warn">) {
    this.#most = most;
    this.#log = log;
  }

  /**
   * Counts a port of an organization; returns how to give it back. ASSUMED: one organization has at most half of the ports.
   * @throws NoPortLeft
   */
  take(org: number): () => void {
    const used = this.#used.get(org) ?? 0;
    if (this.#all >= this.#most || used >= this.#most / 2) {
      this.#warn(org, used);
      throw new NoPortLeft("the proxy listens at as many ports as it may");
    }
    this.#all++;
    this.#used.set(org, used + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#all--;
      const left = (this.#used.get(org) ?? 1) - 1;
      if (left > 0) this.#used.set(org, left);
      else this.#used.delete(org);
    };
  }

  #warn(org: number, used: number): void {
    const now = performance.now();
    if (now - this.#warnedAt < warnMs) return;
    this.#warnedAt = now;
    this.#log.warn(
      { org, used, all: this.#all, most: this.#most },
      "the proxy listens at as many ports as it may, so some ports of Apps cannot be reached",
    );
  }
}
