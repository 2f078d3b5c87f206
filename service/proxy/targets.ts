// Finds the Machine for a request: started, not cordoned, with passing checks, and the least loaded. A request waits for one that is
// about to be ready, and starts one if it may.
import type { ProxyContext } from "./context.ts";
import type { Reach } from "../runtime/runtime.ts";
import type { MachineState } from "../states/machineStates.ts";
import { choose, type Load } from "./balance.ts";
import { Recent } from "../store/recent.ts";
import { isAsleep, type Power } from "./power.ts";
import { anyMachine, type Wish } from "./replay.ts";
import { hostOf, nameIn, passes, publicPorts, statusOf, type Host, type Offer, type PublicPort } from "./routes.ts";

// ASSUMED: a request waits a minute for a Machine that is being started, updated or created.
const startMs = 60_000;
// ASSUMED: a request waits five seconds if the checks of all Machines fail, or all have as many requests as they may.
const busyMs = 5000;
/** Pause before a Machine is tried again that has just failed. */
const againMs = 1000;
const softLimit = 20;
// A wildcard has any number of names, and clients choose which of them are requested.
const mostHosts = 1000;
const none: ReadonlySet<string> = new Set();

/** States that lead to `started`, if nothing fails. */
const underway: readonly MachineState[] = ["created", "replacing", "starting", "restarting"];

/** What is to be sent; a repeatable request may fail at a Machine that does not listen yet. */
export type Kind = "repeatable" | "request" | "connection";

/** A Machine that was chosen for a request. */
export interface Target {
  readonly machine: string;
  /** Where it is reached, as `host:port`. */
  readonly endpoint: string;
  readonly offer: Offer;
  /** It has answered. */
  answered(): void;
  /** It has not answered. */
  failed(): void;
  /** The request or connection has ended. */
  release(): void;
}

/** No Machine can take a request: why, for the client. */
export class Unavailable extends Error {}

/** Which Machine is to be taken. */
export interface Choice {
  /** They are avoided. */
  readonly tried?: ReadonlySet<string>;
  readonly wish?: Wish;
}

interface Candidate extends Load {
  readonly offer: Offer;
  readonly endpoint: string;
}

interface Wait {
  readonly app: string;
  wake(): void;
}

/** The Machines that take requests. */
export class Targets {
  readonly #context: ProxyContext;
  readonly #reach: Reach;
  readonly #ports = new Map<string, ReadonlyMap<number, PublicPort>>();
  readonly #hosts = new Recent<Host>(mostHosts);
  readonly #power: () => Pick<Power, "loaded" | "wake">;
  /** Open requests and connections by Machine. */
  readonly #open = new Map<string, number>();
  /** Those that end by themselves. */
  readonly #requests = new Map<string, number>();
  readonly #drains = new Map<string, Set<() => void>>();
  readonly #waits = new Set<Wait>();
  /** Endpoints at which something listens, or that are being tried. */
  readonly #listening = new Map<string, boolean>();
  #turn = 0;

  /** `power` starts Machines, and knows which of them have requests. */
  constructor(context: ProxyContext, reach: Reach, power: () => Pick<Power, "loaded" | "wake">) {
    this.#context = context;
    this.#reach = reach;
    this.#power = power;
  }

  /** Something in the store has changed. Requests that wait look again. */
  changed(): void {
    this.#ports.clear();
    this.#hosts.clear();
    for (const wait of this.#waits) wait.wake();
  }

  /** The App of a host name. */
  hostOf(header: string): Host | undefined {
    const name = nameIn(header);
    if (name === undefined) return undefined;
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    const found = hostOf(this.#context, name);
    // Only names that an App has: the others would drive them out.
    if (found) this.#hosts.set(name, found);
    return found;
  }

  /** An endpoint is no longer a Machine's. */
  forget(endpoint: string): void {
    for (const key of this.#listening.keys()) if (key.endsWith(` ${endpoint}`)) this.#listening.delete(key);
  }

  /** The public ports of an App. */
  portsOf(app: string): ReadonlyMap<number, PublicPort> {
    const known = this.#ports.get(app) ?? publicPorts(this.#context, app);
    this.#ports.set(app, known);
    return known;
  }

  /** Open requests and connections of a Machine. */
  openOf(machine: string): number {
    return this.#open.get(machine) ?? 0;
  }

  /** Machines with requests that end by themselves. */
  withRequests(): Iterable<string> {
    return this.#requests.keys();
  }

  /** Apps for whose Machines requests wait. */
  awaited(): ReadonlySet<string> {
    return new Set([...this.#waits].map(({ app }) => app));
  }

  /** Whether a request waits for a Machine of an App. */
  isAwaited(app: string): boolean {
    return [...this.#waits].some((wait) => wait.app === app);
  }

  /**
   * Resolves once a Machine has no open request; undefined if it has none now. WebSockets and raw connections may stay open for
   * days: the program ends them when it is asked to stop.
   */
  drained(machine: string): Promise<void> | undefined {
    if (!this.#requests.has(machine)) return undefined;
    return new Promise((resolve) => {
      const drains = this.#drains.get(machine) ?? new Set();
      this.#drains.set(machine, drains.add(resolve));
    });
  }

  /** A Machine that can take a request now. */
  takeNow(app: string, port: number, kind: Kind): Target | undefined {
    return this.#choose(this.portsOf(app).get(port)?.offers ?? [], kind, none);
  }

  /**
   * The App with a name, if requests of this App may be replayed there: one of the same organization and network.
   */
  neighbour(app: string, name: string): string | undefined {
    return this.#context.store.get<{ id: string }>(
      `SELECT other.id FROM apps JOIN apps AS other ON other.org = apps.org AND other.network = apps.network
       WHERE apps.id = ? AND other.name = ? AND other.deleting < 2`,
      ...[app, name],
    )?.id;
  }

  /**
   * A Machine for the next request to a public port of an App.
   * Those that were tried before are avoided.
   * @throws Unavailable if there is none in time.
   */
  async take(
    app: string,
    port: number,
    signal: AbortSignal,
    kind: Kind,
    { tried = none, wish = anyMachine }: Choice = {},
  ): Promise<Target> {
    const { clock } = this.#context;
    const begun = clock.elapsed();
    let patience = busyMs;
    // What has just failed is perhaps ending, and the runtime will report it.
    for (let left = againMs; left > 0 && this.#haveFailed(app, port, tried); left = begun + againMs - clock.elapsed())
      await this.#change(app, left, signal);
    for (;;) {
      signal.throwIfAborted();
      const groups = this.#wanted(app, port, wish);
      for (const group of groups) {
        const target = this.#choose(group, kind, tried);
        if (target) return target;
      }
      const offers = groups.flat();
      const isBusy = offers.some(({ machine }) => machine.state === "started" && machine.cordoned === 0);
      if (this.#wakeOne(offers) || offers.some((offer) => this.#isUnderway(offer))) patience = startMs;
      else if (!isBusy) patience = 0;
      const left = begun + patience - clock.elapsed();
      if (left <= 0) throw new Unavailable(reasonOf(offers, wish));
      await this.#change(app, left, signal);
    }
  }

  /** The Machines behind a public port that a request is for, in groups. */
  #wanted(app: string, port: number, wish: Wish): readonly (readonly Offer[])[] {
    const offers = this.portsOf(app).get(port)?.offers ?? [];
    return wish === anyMachine ? [offers] : wish.map((group) => offers.filter(({ machine }) => group(machine)));
  }

  /** Whether a Machine is about to take requests. One that is started and is not reached is reached soon, or ends and starts again. */
  #isUnderway(offer: Offer): boolean {
    const { machine, service } = offer;
    const isHidden =
      machine.state === "started" && this.#reach.endpoint(machine.id, service.internal_port) === undefined;
    return (isHidden && machine.cordoned === 0) || isUnderway(this.#context, offer);
  }

  /** Whether all Machines that could take the request were tried before. */
  #haveFailed(app: string, port: number, tried: ReadonlySet<string>): boolean {
    if (tried.size === 0) return false;
    const candidates = this.#candidates(this.portsOf(app).get(port)?.offers ?? [], "repeatable");
    return candidates.length > 0 && candidates.every(({ offer }) => tried.has(offer.machine.id));
  }

  /** The Machines that can take a request now. */
  #candidates(offers: readonly Offer[], kind: Kind): Candidate[] {
    return offers.flatMap((offer) => {
      const { machine, service } = offer;
      if (machine.state !== "started" || machine.cordoned === 1 || !passes(offer)) return [];
      const endpoint = this.#reach.endpoint(machine.id, service.internal_port);
      if (endpoint === undefined || !this.#isListening(offer, endpoint, kind)) return [];
      const { soft_limit: soft = softLimit, hard_limit: hard = Infinity } = service.concurrency ?? {};
      return [{ offer, endpoint, open: this.openOf(machine.id), soft, hard }];
    });
  }

  #choose(offers: readonly Offer[], kind: Kind, tried: ReadonlySet<string>): Target | undefined {
    const candidates = this.#candidates(offers, kind);
    const others = candidates.filter(({ offer }) => !tried.has(offer.machine.id));
    const chosen = choose(others.length > 0 ? others : candidates, this.#turn++);
    // All are busy, and another one may be started for the next request.
    if (chosen && chosen.open >= chosen.soft) this.#wakeOne(offers);
    return chosen && this.#take(chosen.offer, chosen.endpoint, kind);
  }

  #take(offer: Offer, endpoint: string, kind: Kind): Target {
    const { id, app } = offer.machine;
    add(this.#open, id, 1);
    if (this.openOf(id) === 1) this.#power().loaded(id);
    if (kind !== "connection") add(this.#requests, id, 1);
    let isOpen = true;
    const release = (): void => {
      if (!isOpen) return;
      isOpen = false;
      add(this.#open, id, -1);
      if (kind !== "connection") add(this.#requests, id, -1);
      if (!this.#requests.has(id)) {
        for (const resolve of this.#drains.get(id) ?? []) resolve();
        this.#drains.delete(id);
      }
      if (!this.#open.has(id)) this.#power().loaded(id);
      // One may wait because all were at their limit.
      for (const wait of this.#waits) if (wait.app === app) wait.wake();
    };
    const key = keyOf(offer, endpoint);
    const isOpenPort = offer.checks.length > 0 || this.#listening.get(key);
    return {
      machine: id,
      endpoint,
      offer,
      answered: () => {
        if (!isOpenPort) this.#listening.set(key, true);
      },
      failed: () => {
        if (!isOpenPort && this.#listening.get(key) === undefined) this.#isListening(offer, endpoint, "request");
      },
      release,
    };
  }

  /**
   * Whether a Machine without checks has begun to listen; the first question begins to try. A request that can be repeated is
   * itself the first try, because it need not wait for a connection that proves it.
   */
  #isListening(offer: Offer, endpoint: string, kind: Kind): boolean {
    if (offer.checks.length > 0) return true;
    const key = keyOf(offer, endpoint);
    const known = this.#listening.get(key);
    if (known !== undefined) return known;
    if (kind === "repeatable") return true;
    this.#listening.set(key, false);
    void this.#tryPort(key, offer.machine.id, offer.service.internal_port);
    return false;
  }

  async #tryPort(key: string, machine: string, port: number): Promise<void> {
    if (await this.#reach.listens(machine, port)) this.#listening.set(key, true);
    else this.#listening.delete(key);
    this.changed();
  }

  /** Starts a Machine that sleeps and may be started by a request. */
  #wakeOne(offers: readonly Offer[]): boolean {
    if (offers.some(({ machine }) => machine.state === "starting")) return true;
    const found = offers.find(({ machine, service }) => service.autostart === true && isAsleep(machine));
    return found !== undefined && this.#power().wake(found.machine.id);
  }

  /** Resolves at the next change, when the time is over, or when the client has gone. */
  #change(app: string, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#waits.delete(wait);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = this.#context.clock.after(ms, end);
      const wait: Wait = { app, wake: end };
      this.#waits.add(wait);
      signal.addEventListener("abort", end);
    });
  }
}

/** Whether a Machine is about to take requests: it is being started, will be restarted, or its checks have not run yet. */
const isUnderway = ({ timers }: ProxyContext, offer: Offer): boolean => {
  const { id, state } = offer.machine;
  if (state === "stopped") return timers.pending(id, "machine.retry");
  // A request starts it again when it has ended.
  if (state === "stopping" || state === "suspending") return offer.service.autostart === true;
  return underway.includes(state) || (state === "started" && statusOf(offer) === "warning");
};

const keyOf = ({ machine }: Offer, endpoint: string): string => `${machine.id} ${endpoint}`;

function add(counts: Map<string, number>, key: string, number: number): void {
  const count = (counts.get(key) ?? 0) + number;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

/** Why none of them takes a request: `1 is stopped, 2 fail their checks`. */
function reasonOf(offers: readonly Offer[], wish: Wish): string {
  if (offers.length === 0) return `it has no ${wish === anyMachine ? "" : "such "}Machine with a service at this port`;
  const counts = new Map<string, number>();
  for (const offer of offers) {
    const { state, cordoned } = offer.machine;
    const what =
      state !== "started" ? state : cordoned === 1 ? "cordoned" : passes(offer) ? "busy" : "failing its checks";
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const parts = [...counts].map(([what, count]) => `${count} ${what}`);
  return `of its Machines, ${parts.join(", ")}`;
}
