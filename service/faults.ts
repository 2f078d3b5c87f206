// Faults on purpose, for tests in the same process. Nothing that comes over the network reaches this (F01–F05, F24).

/** One fault: which request it meets, and what becomes of that. */
export interface Fault {
  /** `machines.create` and the like. */
  readonly operation: string;
  /** Before anything was done, or after the change was committed. */
  readonly when: "before" | "after";
  /** Which of the operation's requests, counted from 1 since the fault was added. */
  readonly nth?: number;
  /** How many requests from there on; 1 when left out. */
  readonly times?: number;
  /** Status to answer, or `"reset"` to cut the connection. Left out, the request goes on. */
  readonly status?: number | "reset";
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or text that is sent as it is. */
  readonly body?: unknown;
  /** Changes the true answer instead of replacing it: an empty list, a stale version. */
  readonly rewrite?: (body: unknown) => unknown;
  /** Real milliseconds the request is held back first. */
  readonly delayMs?: number;
}

/** The faults that are still to come. */
export class Faults {
  #plans: { fault: Fault; seen: number }[] = [];

  /** True when there is nothing to do; asked with every request. */
  get none(): boolean {
    return this.#plans.length === 0;
  }

  add(...faults: Fault[]): void {
    this.#plans.push(...faults.map((fault) => ({ fault, seen: 0 })));
  }

  clear(): void {
    this.#plans = [];
  }

  /** The fault this request meets, if any; counts the request. */
  take(operation: string, when: Fault["when"]): Fault | undefined {
    let hit: Fault | undefined;
    for (const plan of this.#plans.filter(({ fault }) => fault.operation === operation && fault.when === when)) {
      const { nth = 1, times = 1 } = plan.fault;
      plan.seen++;
      if (!hit && plan.seen >= nth && plan.seen < nth + times) hit = plan.fault;
      if (plan.seen >= nth + times - 1) this.#plans = this.#plans.filter((other) => other !== plan);
    }
    return hit;
  }
}
