// The proxies that are processes of their own, as they report themselves: which Machines have their requests. The service stops no
// Machine that one of them uses, and ends none before all of them know that it gets no more requests.
import type { Clock } from "../time/clock.ts";
import type { Elsewhere } from "./autostop.ts";

/** What a proxy reports. */
export interface Report {
  /** The run of the service that it follows, and the last number of its feed that it has applied. */
  readonly run: string;
  readonly at: number;
  /** Machines that may be stopped when they are idle, and have had a request since its last report. */
  readonly busy: readonly string[];
  /** Machines that get no more requests, and still have some. */
  readonly draining: readonly string[];
  /** Apps for whose Machines requests wait. */
  readonly awaited: readonly string[];
}

// ASSUMED: a proxy that has lost its connection may still send requests. For five seconds no Machine is ended before it knows; for a
// minute the requests that it had are believed to be there.
const drainMs = 5000;
const rememberedMs = 60_000;

/** A proxy. */
interface Replica {
  /** Number of its connections: a new one may come before the old one has ended. */
  connections: number;
  /** Since when it has none. */
  leftAt: number;
  /** The last number that it has applied; -1 before its first report. */
  at: number;
  busy: ReadonlySet<string>;
  draining: ReadonlySet<string>;
  awaited: ReadonlySet<string>;
  /** The number of the last answers that were counted. */
  counted: number;
}

/** A Machine that waits until no proxy sends it requests. */
interface Drain {
  readonly machine: string;
  /** The number of the feed that says so. */
  readonly at: number;
  readonly of: readonly Replica[];
  readonly resolve: () => void;
}

const none: ReadonlySet<string> = new Set();

/** All proxies. */
export class Replicas implements Elsewhere {
  readonly #clock: Pick<Clock, "elapsed" | "after">;
  readonly #hasOtherWays: boolean;
  readonly #loaded: (machine: string) => void;
  readonly #all = new Map<string, Replica>();
  readonly #drains = new Set<Drain>();
  readonly #cancels = new Set<() => void>();

  /**
   * `hasOtherWays` says whether requests also reach Machines by ways that no proxy sees. `loaded` is called when a Machine begins or ends
   * to be busy.
   */
  constructor(clock: Pick<Clock, "elapsed" | "after">, hasOtherWays: boolean, loaded: (machine: string) => void) {
    this.#clock = clock;
    this.#hasOtherWays = hasOtherWays;
    this.#loaded = loaded;
  }

  /** Number of proxies, those included that have just lost their connection. */
  get size(): number {
    return this.#all.size;
  }

  get isKnown(): boolean {
    const connected = [...this.#all.values()].filter(({ connections }) => connections > 0);
    if (connected.some(({ at }) => at < 0)) return false;
    return !this.#hasOtherWays || connected.length > 0;
  }

  isBusy(machine: string): boolean {
    return [...this.#all.values()].some(({ busy }) => busy.has(machine));
  }

  isAwaited(app: string): boolean {
    return [...this.#all.values()].some(({ awaited }) => awaited.has(app));
  }

  /** A proxy has connected; returns what to call when it has lost this connection. */
  connected(id: string): () => void {
    const replica: Replica = this.#all.get(id) ?? {
      ...{ connections: 0, leftAt: 0, at: -1, busy: none, draining: none, awaited: none, counted: 0 },
    };
    replica.connections++;
    this.#all.set(id, replica);
    return () => this.#left(id, replica);
  }

  #left(id: string, replica: Replica): void {
    if (--replica.connections > 0) return;
    replica.leftAt = this.#clock.elapsed();
    this.#later(drainMs, () => this.#settle());
    this.#later(rememberedMs, () => {
      if (replica.connections > 0 || this.#clock.elapsed() - replica.leftAt < rememberedMs) return;
      if (this.#all.get(id) === replica) this.#all.delete(id);
      for (const machine of replica.busy) this.#loaded(machine);
    });
  }

  #later(ms: number, run: () => void): void {
    const cancel = this.#clock.after(ms, () => {
      this.#cancels.delete(cancel);
      run();
    });
    this.#cancels.add(cancel);
  }

  /** A proxy has reported itself. One that has no connection is unknown, and its report is left out. */
  reported(id: string, { at, busy, draining, awaited }: Omit<Report, "run">): void {
    const replica = this.#all.get(id);
    if (!replica) return;
    const before = replica.busy;
    replica.at = Math.max(replica.at, at);
    replica.busy = new Set(busy);
    replica.draining = new Set(draining);
    replica.awaited = new Set(awaited);
    for (const machine of new Set([...before, ...replica.busy]))
      if (!before.has(machine) || !replica.busy.has(machine)) this.#loaded(machine);
    this.#settle();
  }

  /**
   * Whether the service counts the answers that a proxy reports with this number: not, if they were reported before. Undefined if the proxy is
   * not known.
   */
  mayCount(id: string, number: number): boolean | undefined {
    const replica = this.#all.get(id);
    if (!replica) return undefined;
    const isNew = number > replica.counted;
    replica.counted = Math.max(replica.counted, number);
    return isNew;
  }

  /** Resolves once no proxy sends requests to a Machine, of which the feed says at this number that it gets none. */
  drained(machine: string, at: number): Promise<void> {
    return new Promise((resolve) => {
      this.#drains.add({ machine, at, of: [...this.#all.values()], resolve });
      this.#settle();
    });
  }

  #settle(): void {
    for (const drain of this.#drains) {
      if (drain.of.some((replica) => this.#mayUse(replica, drain))) continue;
      this.#drains.delete(drain);
      drain.resolve();
    }
  }

  #mayUse({ connections, leftAt, at, draining }: Replica, drain: Drain): boolean {
    if (connections === 0 && this.#clock.elapsed() - leftAt >= drainMs) return false;
    return at < drain.at || draining.has(drain.machine);
  }

  close(): void {
    for (const cancel of this.#cancels) cancel();
    for (const { resolve } of this.#drains) resolve();
    this.#drains.clear();
  }
}
