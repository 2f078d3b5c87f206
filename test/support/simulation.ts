// The real service and processes of the provider in one simulated time: all code is real, requests use HTTP, and only
// waiting is simulated.
import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../../provider/client/api.ts";
import type { Clock } from "../../provider/client/clock.ts";
import { openJournal, type Journal, type OpenJournal } from "../../provider/core/journal.ts";
import { httpTransport, type Outcome, type Sent, type Transport } from "../../provider/client/transport.ts";
import { readConfig } from "../../provider/client/config.ts";
import { check, create, diff, read, remove, update, type Caller } from "../../provider/core/verbs/index.ts";
import { Run } from "../../provider/core/run/run.ts";
import type { Resource, Values } from "../../provider/core/resource.ts";
import { resources } from "../../provider/registry.ts";
import { operationsById } from "../../service/faults/faults.ts";
import { seededRandom, type ServiceOptions } from "../../service/index.ts";
import type { Verbs } from "./verbs.ts";
import { withMutant } from "./mutants.ts";
import { Activity, SimulatedTime } from "./simulatedTime.ts";
import { startService, type TestService } from "./startService.ts";

/** Where a process of the provider dies: at a request, before it is sent or after it was answered. */
export interface Death {
  /** The request, counted from 1. */
  readonly request: number;
  readonly when: "before" | "after";
  /** Counts only requests of these operations, and kills at one. */
  readonly of?: (operation: string) => boolean;
}

/** Slow requests, measured by the clock. */
export interface Slow {
  /** Of every operation if omitted. */
  readonly operation?: string;
  /** The first affected request of a process, counted from 1, and the number from there on. */
  readonly nth: number;
  readonly times: number;
  readonly ms: number;
  /** Before the service receives it, or after it was answered. */
  readonly when: "before" | "after";
}

/** One recorded request. */
export interface Counted {
  readonly operation: string;
  readonly status: number | undefined;
}

/** The requests of one engine step. */
export interface Watched {
  readonly requests: Counted[];
}

/** A process of the provider: it knows only what it has read from disk or requested. */
export interface ProviderProcess {
  bound(type: string): Verbs;
  /** Its configuration. */
  readonly configuration: Values;
  /** All its warnings and progress messages. */
  readonly said: { readonly kind: "warning" | "progress"; readonly text: string }[];
  readonly isDead: boolean;
  /** Waits for work of this process; returns `"died"` if it died first. */
  run<T>(work: () => Promise<T>): Promise<T | "died">;
}

/** A service, its clock, and a computer that runs the provider. */
export interface Simulation {
  readonly time: SimulatedTime;
  readonly service: TestService<SimulatedTime>;
  /** Internal errors that the service logged. */
  readonly mistakes: readonly string[];
  /** Starts the provider as an engine does, without the memory of an earlier process. */
  start(options?: {
    readonly death?: Death;
    readonly slow?: readonly Slow[];
    /** Additional configuration keys beside endpoint and token. */
    readonly settings?: Readonly<Record<string, string>>;
    /** Uses another, empty service. */
    readonly isLost?: boolean;
    /** Cancels its operations, as an engine does. */
    readonly signal?: AbortSignal;
  }): ProviderProcess;
  /** Switches to another computer, without records of begun creates. */
  moveAway(): void;
  /** Whether a create of an owner was begun on any computer with a result that may be in no state. */
  isOpen(owner: string): boolean;
  /** Lets this many milliseconds pass. */
  wait(ms: number): Promise<void>;
  /** Records the requests of some work. */
  watch<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly watched: Watched }>;
  close(): Promise<void>;
}

/** Simulated milliseconds after which a run counts as stuck. */
const longestRun = 6 * 3600_000;

// A RAM disk if there is one, because writes must be flushed before a request is sent.
const disk = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
/** A new folder on the RAM disk. */
export const newFolder = (): string => mkdtempSync(join(disk, "simulation-"));
const transport = httpTransport();
/** A new one each time: a single one would keep alive whatever has ever waited for it. */
const never = (): Promise<never> => new Promise(() => undefined);

/** Like the engine's transport: refuses `undefined`, keeps only JSON. */
function json<T>(value: T): T {
  const hasUndefined = (at: unknown): boolean =>
    at === undefined || (typeof at === "object" && at !== null && Object.values(at).some(hasUndefined));
  if (hasUndefined(value)) throw new TypeError(`undefined in ${JSON.stringify(value)}`);
  return JSON.parse(JSON.stringify(value)) as T;
}

/** The computers on which a stack was deployed, with their records of begun creates. */
export class Computers {
  readonly #homes = [newFolder()];
  readonly #journals: OpenJournal[] = [];

  /** Opens the records of the one in use, for one process. */
  open(warn: (text: string) => void): Journal {
    const journal = openJournal(warn, this.#homes.at(-1));
    this.#journals.push(journal);
    return journal;
  }

  /** Switches to another one, without records. */
  moveAway(): void {
    this.#homes.push(newFolder());
  }

  /** Whether a create of an owner was begun on any of them with a result that may be in no state. */
  isOpen(owner: string): boolean {
    return this.#homes
      .map((home) => openJournal(() => undefined, home))
      .some((intents) => intents.find(owner) !== undefined || intents.delivered(owner).length > 0);
  }

  remove(): void {
    for (const journal of this.#journals) journal.close();
    for (const home of this.#homes) rmSync(home, { recursive: true, force: true });
  }
}

/** Starts a service in simulated time. The same seed gives the same run. */
export async function simulate(seed: string, options: ServiceOptions = {}): Promise<Simulation> {
  const time = new SimulatedTime();
  const mistakes: string[] = [];
  const log = { write: (line: string) => void (line.startsWith('{"level":50') && mistakes.push(line)) };
  const random = seededRandom(seed);
  const service = await startService({ delays: "believable", random, log, ...options, clock: time });
  const computers = new Computers();
  const watching = new AsyncLocalStorage<Watched>();
  const wire = new DirectWire(time);
  wire.watch(service);
  // Another, empty service.
  const empty = await startService({ delays: "believable", random: seededRandom(`${seed}/empty`), log, clock: time });
  wire.watch(empty);
  let current: { isDead: boolean } | undefined;
  let processes = 0;
  return {
    time,
    service,
    mistakes,
    isOpen: (owner) => computers.isOpen(owner),
    moveAway: () => computers.moveAway(),
    wait: (ms) => time.pass(new Promise((done) => void time.after(ms, () => done())), wire.moves, ms),
    async watch(work) {
      const watched: Watched = { requests: [] };
      return { result: await watching.run(watched, work), watched };
    },
    start({ death, slow = [], settings = {}, isLost = false, signal } = {}) {
      const { url: endpoint, token } = isLost ? empty : service;
      const process = new Process({
        ...{ time, wire, openJournal: (warn) => computers.open(warn), watching, seed: `${seed}/${++processes}` },
        drive: (work) => time.pass(work, wire.moves, longestRun),
        ...{ death, slow, settings: { endpoint, token, ...settings }, signal },
      });
      current = process;
      return process;
    },
    async close() {
      if (current) current.isDead = true;
      await Promise.all([service.close(), empty.close()]);
      computers.remove();
    },
  };
}

/** Does some work with a service in simulated time. */
export async function withSimulation<T>(
  seed: string,
  work: (simulation: Simulation) => Promise<T>,
  options?: ServiceOptions,
): Promise<T> {
  const simulation = await simulate(seed, options);
  try {
    return await work(simulation);
  } finally {
    await simulation.close();
  }
}

/** No answer within the time limit of a request. */
export const lateAnswer = ({ timeout }: Sent): Outcome => ({
  kind: "lost",
  cause: new Error(`no answer within ${timeout / 1000} s`),
  ...{ lasting: false, proxied: false },
});

/** The network between the processes and a service, and the disk of their computer. */
export interface Wire {
  readonly activity: Activity;
  /** Sends a request with a delay in each direction; the simulated clock cancels it. */
  send(sent: Sent, hungUp: AbortSignal, delays: { readonly before: number; readonly after: number }): Promise<Outcome>;
}

/** A network that loses nothing by itself, and whether anything is under way. */
class DirectWire implements Wire {
  readonly #time: SimulatedTime;
  readonly activity = new Activity();
  #sent = 0;
  #received = 0;

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  /** Counts the requests of a service. */
  watch({ service }: TestService): void {
    service.app.server.on("request", (_request, answer) => {
      this.#received++;
      this.activity.moved();
      answer.once("close", () => {
        this.#received--;
        this.activity.moved();
      });
    });
  }

  /** Undefined also while a request or an answer is under way. */
  readonly moves = (): number | undefined => (this.#sent === this.#received ? this.activity.moves() : undefined);

  async send(sent: Sent, hungUp: AbortSignal, { before = 0, after = 0 }): Promise<Outcome> {
    const late = new AbortController();
    const cancel = this.#time.after(sent.timeout, () => late.abort());
    const signals = [late.signal, hungUp, ...(sent.signal ? [sent.signal] : [])];
    const signal = AbortSignal.any(signals);
    try {
      if (!(await this.#passes(before, signal))) return lateAnswer(sent);
      const outcome = await this.#exchange({ ...sent, signal });
      await this.#passes(after, signal);
      return late.signal.aborted ? lateAnswer(sent) : outcome;
    } finally {
      cancel();
    }
  }

  async #exchange(sent: Sent): Promise<Outcome> {
    this.#sent++;
    this.activity.moved();
    try {
      return await transport(sent);
    } finally {
      this.#sent--;
      this.activity.moved();
    }
  }

  /** Lets time pass; returns false when it was aborted. */
  #passes(ms: number, signal: AbortSignal): Promise<boolean> {
    if (ms === 0) return Promise.resolve(!signal.aborted);
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        resolve(!signal.aborted);
      };
      const cancel = this.#time.after(ms, end);
      signal.addEventListener("abort", end, { once: true });
    });
  }
}

/** What a process of the provider is given. */
export interface ProcessParts {
  readonly time: SimulatedTime;
  readonly wire: Wire;
  /** Waits for its work while time passes. */
  readonly drive: <T>(work: Promise<T>) => Promise<T>;
  readonly openJournal: (warn: (text: string) => void) => Journal;
  readonly watching: AsyncLocalStorage<Watched>;
  readonly seed: string;
  readonly death: Death | undefined;
  readonly slow: readonly Slow[];
  readonly settings: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  /** Mistakes on purpose. */
  readonly planted?: Planted;
}

/** Parts of a process that are broken on purpose. */
export interface Planted {
  journal?(journal: Journal): Journal;
  transport?(transport: Transport): Transport;
  verbs?(verbs: Verbs): Verbs;
}

/** A process of the provider, with the real code of its client and its verbs. */
export class Process implements ProviderProcess {
  readonly said: ProviderProcess["said"] = [];
  readonly configuration: Values;
  isDead = false;
  readonly #parts: ProcessParts;
  readonly #run: Run;
  readonly #caller: Caller;
  readonly #random: () => number;
  readonly #held = new AbortController();
  readonly #died: Promise<"died">;
  #die: () => void = () => undefined;
  #counted = 0;

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    const { wire, watching, settings } = parts;
    this.configuration = settings;
    const bytes = seededRandom(parts.seed);
    this.#random = () => Buffer.from(bytes(4)).readUInt32BE() / 2 ** 32;
    this.#died = new Promise((died) => (this.#die = () => died("died")));
    const warn = (text: string) => void this.said.push({ kind: "warning", text });
    const journal = parts.openJournal(warn);
    const intents = this.#mortal(parts.planted?.journal?.(journal) ?? journal);
    this.#run = new Run(() => intents);
    const api = createApi({
      config: readConfig((key) => settings[key], {}),
      connect: () => Promise.resolve({ url: settings["endpoint"] ?? "", token: settings["token"] ?? "" }),
      transport: parts.planted?.transport?.(this.#transport()) ?? this.#transport(),
      clock: this.#clock(),
      onRequest: ({ operation, status }) => {
        wire.activity.moved();
        watching.getStore()?.requests.push({ operation, status });
      },
    });
    const progress = (text: string) => void this.said.push({ kind: "progress", text });
    this.#caller = { api, run: this.#run, warn, progress, signal: parts.signal };
  }

  run<T>(work: () => Promise<T>): Promise<T | "died"> {
    return this.#parts.drive(Promise.race([work(), this.#died]));
  }

  bound(type: string): Verbs {
    const resource = resourceOf(type);
    const caller = this.#caller;
    const alive = async <T>(work: Promise<T>): Promise<T> => {
      try {
        const result = await work;
        return this.isDead ? await never() : result;
      } catch (error) {
        return this.isDead ? await never() : Promise.reject(error);
      }
    };
    const compared = (id: string, state: Values, inputs: Values) =>
      alive(diff(resource, id, json(state), json(inputs), caller));
    const verbs: Verbs = {
      check: (olds, news) => alive(this.#check(resource, olds, news)),
      diff: async (id, state, inputs) => {
        const { changes, replaces, deleteBeforeReplace, mustRewrite } = await compared(id, state, inputs);
        if (changes.length === 0) return mustRewrite ? "update" : "same";
        return replaces.length === 0 ? "update" : deleteBeforeReplace ? "delete-replace" : "replace";
      },
      changed: async (id, state, inputs) => {
        const { changes, deleteBeforeReplace } = await compared(id, state, inputs);
        return { names: changes.map(({ path }) => String(path[0])), deleteBeforeReplace };
      },
      create: (inputs) => alive(create(resource, json(inputs), caller).then(json)),
      read: async (id, state) => {
        const before = Object.keys(state).length === 0 ? undefined : json(state);
        const found = await alive(read(resource, id, before, caller));
        return found && { state: json(found.state), inputs: json(found.inputs) };
      },
      update: (id, state, inputs) => alive(update(resource, id, json(state), json(inputs), caller).then(json)),
      delete: (id, state) => alive(remove(resource, id, json(state), caller)),
    };
    return withMutant(type, this.#parts.planted?.verbs?.(verbs) ?? verbs);
  }

  async #check(resource: Resource, olds: Values, news: Values): Promise<{ inputs: Values; failures: string[] }> {
    const { inputs, problems } = await check(resource, json(olds), json(news), {
      randomHex: (count) => Array.from({ length: count }, () => Math.floor(this.#random() * 16).toString(16)).join(""),
      run: this.#run,
      warn: this.#caller.warn,
    });
    return { inputs: json(inputs), failures: [...problems] };
  }

  /** The transport of a process that may die at a request. */
  #transport(): Transport {
    const { wire, death } = this.#parts;
    const send = async (sent: Sent): Promise<Outcome> => {
      if (this.isDead) return never();
      const isCounted = death !== undefined && (death.of?.(operationOf(sent)) ?? true);
      const isLast = isCounted && ++this.#counted === death.request;
      if (isLast && death.when === "before") return this.#end();
      const hungUp = sent.held ? this.#held.signal : new AbortController().signal;
      const outcome = await wire.send(sent, hungUp, this.#delays(operationOf(sent)));
      if (isLast) return this.#end();
      return this.isDead ? never() : outcome;
    };
    return Object.assign(send, { close: () => Promise.resolve() });
  }

  readonly #passed = new Map<Slow, number>();

  /** The delays of a request in each direction. */
  #delays(operation: string): { before: number; after: number } {
    const delays = { before: 0, after: 0 };
    for (const slow of this.#parts.slow.filter((one) => (one.operation ?? operation) === operation)) {
      const count = (this.#passed.get(slow) ?? 0) + 1;
      this.#passed.set(slow, count);
      if (count >= slow.nth && count < slow.nth + slow.times) delays[slow.when] += slow.ms;
    }
    return delays;
  }

  /** Ends it in the middle of whatever it does. */
  #end(): Promise<never> {
    this.isDead = true;
    this.#held.abort();
    this.#die();
    return never();
  }

  #clock(): Clock {
    const { time } = this.#parts;
    return {
      now: () => time.now(),
      random: this.#random,
      every: (milliseconds, run) => {
        let cancel: () => void = () => undefined;
        const again = (): void => {
          cancel = time.after(milliseconds, () => {
            if (this.isDead) return;
            again();
            run();
          });
        };
        again();
        return () => cancel();
      },
      sleep: (milliseconds, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason as Error);
          const stop = () => {
            cancel();
            reject(signal?.reason as Error);
          };
          const cancel = time.after(milliseconds, () => {
            signal?.removeEventListener("abort", stop);
            if (!this.isDead) resolve();
          });
          signal?.addEventListener("abort", stop, { once: true });
        }),
    };
  }

  /** Disk operations of a dead process no longer happen. */
  #mortal(intents: Journal): Journal {
    const { wire } = this.#parts;
    return new Proxy(intents, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return (...args: unknown[]): unknown => {
          if (this.isDead) return never();
          const result: unknown = Reflect.apply(member, target, args);
          return result instanceof Promise ? wire.activity.busy(result) : result;
        };
      },
    });
  }
}

const paths = [...operationsById.values()].map(({ id, method, path }) => ({
  id,
  method,
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
}));

/** The operation of a request. */
function operationOf({ method, url }: Sent): string {
  const { pathname } = new URL(url);
  return paths.find((one) => one.method === method && one.pattern.test(pathname))?.id ?? "";
}

/** The resource type of a name. */
export function resourceOf(type: string): Resource {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);
  return resource;
}
