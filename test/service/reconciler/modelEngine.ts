// A model of an engine and its driver. It notes what no engine may be asked to do.
import {
  Impossible,
  type Driver,
  type Instance,
  type Pauses,
  type Published,
  type Reports,
  type Routes,
  type VolumeDriver,
} from "../../../service/runtime/reconciler/driver.ts";
import type { SignalName } from "../../../api/signals.ts";
import type {
  Exit,
  LogLine,
  RuntimeHost,
  StopRequest,
  Subject,
  Usage,
  VolumeSubject,
} from "../../../service/runtime/runtime.ts";

/** How an engine differs from others. */
export interface Kind {
  /** Whether it keeps the memory of a paused process. */
  readonly pauses: boolean;
  readonly killsOnRemove: boolean;
  /** Whether each start has its own instance, which the engine starts by itself. */
  readonly isPerStart: boolean;
  /** Whether an instance that has ended is started again, and keeps its id. */
  readonly startsAgain: boolean;
  /** Milliseconds until its own routes follow a withdrawal; undefined if it has none. */
  readonly drainMs: number | undefined;
  /** Milliseconds that a request takes. */
  readonly answerMs: number;
}

/** An engine that keeps its instances, as Docker does. */
export const containers: Kind = {
  pauses: true,
  killsOnRemove: true,
  isPerStart: false,
  startsAgain: false,
  drainMs: undefined,
  answerMs: 0,
};

/** A process, or what is left of one. */
export interface Made {
  readonly id: string;
  readonly machine: string;
  readonly version: string;
  readonly start: string;
  readonly mounts: readonly string[];
  state: "created" | "begins" | "running" | "paused" | "ended";
  runs: number;
  /** When it was asked to end, and how long it may take. */
  asked: { readonly at: number; readonly ms: number } | undefined;
  /** Whether a service that still runs, or its store, knows that. */
  isAskedForCertain: boolean;
  /** The signals that were sent to it. */
  readonly signals: SignalName[];
}

const aliveStates: readonly Made["state"][] = ["begins", "running", "paused"];

/** The engine. It outlives the service. */
export class ModelEngine {
  readonly kind: Kind;
  readonly made: Made[] = [];
  readonly volumes = new Set<string>();
  readonly copied = new Set<string>();
  readonly offered = new Map<string, boolean>();
  readonly withdrawn = new Map<string, number>();
  readonly mistakes: string[] = [];
  isDown = false;
  /** Whether it refuses to start processes and to write volumes. */
  isRefusing = false;
  /** Whether processes ignore the signal to end. */
  isDeaf = false;
  /** The open requests of a Machine, and when it was first to be stopped. */
  requestsOf = (_machine: string): { readonly open: number; readonly since: number } => ({ open: 0, since: 0 });
  /** The driver of the service that runs now. */
  driver: ModelDriver | undefined;
  #count = 0;

  constructor(kind: Kind) {
    this.kind = kind;
  }

  nextId(): string {
    return `made-${++this.#count}`;
  }

  aliveOf(machine: string): Made[] {
    return this.made.filter((one) => one.machine === machine && aliveStates.includes(one.state));
  }

  /** Runs something as the engine does by itself, after some time. */
  after(ms: number, run: () => void): void {
    setTimeout(run, ms);
  }

  begin(one: Made): void {
    if (this.aliveOf(one.machine).some((other) => other !== one)) this.mistakes.push(`two of ${one.machine} run`);
    for (const volume of one.mounts) {
      if (!this.volumes.has(volume)) this.mistakes.push(`${one.machine} runs without ${volume}`);
      // An engine that starts processes by itself copies what is there at one moment.
      if (this.copied.has(volume) && !this.kind.isPerStart)
        this.mistakes.push(`${one.machine} begins to run while ${volume} is copied`);
    }
    one.runs++;
    one.state = "running";
    this.driver?.said(one.machine);
  }

  end(one: Made): void {
    if (one.state === "ended") return;
    one.state = "ended";
    this.driver?.said(one.machine);
  }

  /** Removes something, as others may do. */
  lose(one: Made): void {
    one.state = "ended";
    this.made.splice(this.made.indexOf(one), 1);
    this.driver?.said(one.machine);
  }

  goDown(ms: number): void {
    this.isDown = true;
    this.after(ms, () => {
      this.isDown = false;
      this.driver?.connected();
    });
  }
}

class NoAnswer extends Error {}
class Refused extends Error {}

interface ModelInstance extends Instance {
  readonly made: Made;
}

const never = new Promise<never>(() => {});

/** The driver of one run of the service. */
export class ModelDriver implements Driver<ModelInstance> {
  readonly name = "model";
  readonly place = "the engine";
  readonly failures = {
    failed: "the engine refused or did not answer",
    reasonOf: (error: unknown) => (error instanceof Error ? error.message : "unknown error"),
    isRefusal: (error: unknown) => error instanceof Refused,
  };
  readonly killsOnRemove: boolean;
  readonly pauses?: Pauses<ModelInstance>;
  readonly routes?: Routes<ModelInstance>;
  readonly volumes: VolumeDriver;
  isReady = false;
  /** Whether its service was killed: nothing that it asks reaches the engine any more. */
  isDead = false;
  readonly #engine: ModelEngine;
  readonly #host: RuntimeHost;
  readonly #reports: Reports;

  constructor(engine: ModelEngine, host: RuntimeHost, reports: Reports) {
    this.#engine = engine;
    this.#host = host;
    this.#reports = reports;
    engine.driver = this;
    const { pauses, killsOnRemove, drainMs } = engine.kind;
    this.killsOnRemove = killsOnRemove;
    if (pauses) this.pauses = { pause: (one) => this.#pause(one, true), resume: (one) => this.#pause(one, false) };
    if (drainMs !== undefined) this.routes = this.#routesOf(drainMs);
    this.volumes = {
      all: () => this.#asked(() => [...engine.volumes].map((id) => ({ id, name: id }))),
      has: (id) => this.#asked(() => engine.volumes.has(id)),
      create: ({ id }) =>
        this.#asked(() => {
          if (engine.isRefusing) throw new Refused("no space");
          engine.volumes.add(id);
        }),
      copy: (volume, source) => this.#copy(volume, source),
      remove: (id) => this.#asked(() => this.#removeVolume(id)),
    };
  }

  /** The engine has said something about a Machine. */
  said(machine: string): void {
    if (!this.isDead && !this.#engine.isDown) this.#reports.changed(machine);
  }

  connected(): void {
    if (this.isDead) return;
    this.isReady = true;
    const look = (): Promise<void> =>
      this.#reports.lookAtAll(this.#engine.made.map(({ machine }) => machine)).catch(() => {
        if (!this.isDead && !this.#engine.isDown) return look();
        return undefined;
      });
    void look();
  }

  usage(): Promise<ReadonlyMap<string, Usage>> {
    return Promise.resolve(new Map());
  }

  problem(): undefined {
    return undefined;
  }

  findImage() {
    return Promise.resolve({ digest: "", labels: {} });
  }

  exec(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  processes() {
    return Promise.resolve([]);
  }

  begin(): void {
    // Requests of the last run arrive before.
    this.#engine.after(this.#engine.kind.answerMs + 1, () => {
      if (!this.#engine.isDown) this.connected();
    });
  }

  async close(stepsEnded: Promise<void>): Promise<void> {
    await stepsEnded;
    this.isDead = true;
  }

  observe(id: string, machine: Subject | undefined): Promise<readonly ModelInstance[]> {
    const { isPerStart } = this.#engine.kind;
    return this.#asked(() =>
      this.#engine.made
        .filter((one) => one.machine === id)
        .reverse()
        .map((made) => ({
          made,
          id: made.id,
          isCurrent: made.version === machine?.version,
          isAlive: aliveStates.includes(made.state) || (isPerStart && made.state === "created"),
          isPaused: made.state === "paused",
          canStart: isPerStart
            ? made.version === machine?.version && made.start === machine.start
            : made.state !== "ended" || this.#engine.kind.startsAgain,
          run: made.runs === 0 ? undefined : `${made.id} ${made.runs}`,
        })),
    );
  }

  prepare(machine: Subject, instances: readonly ModelInstance[]): Promise<void> {
    if (this.#engine.kind.isPerStart || instances.some(({ isCurrent }) => isCurrent)) return this.#asked(() => {});
    return this.#asked(() => void this.#make(machine));
  }

  start(machine: Subject, instances: readonly ModelInstance[]): Promise<boolean | Exit> {
    const engine = this.#engine;
    const current = instances.find(({ isCurrent, canStart }) => isCurrent && canStart);
    return this.#asked(() => {
      if (!engine.kind.isPerStart) {
        const made = current?.made ?? this.#make(machine);
        if (made.state === "ended") {
          made.asked = undefined;
          made.isAskedForCertain = false;
        }
        if (made.state === "created" || made.state === "ended") engine.begin(made);
        return true;
      }
      const [old] = instances;
      if (old && !current) {
        // Its name is needed.
        if (engine.made.includes(old.made)) {
          if (aliveStates.includes(old.made.state)) engine.end(old.made);
          else engine.lose(old.made);
        }
        return false;
      }
      if (current) {
        if (current.made.state === "ended" && current.made.runs === 0)
          return { ...lost, code: 127, error: "never ran" };
        return current.made.runs > 0;
      }
      const made = this.#make(machine);
      made.state = "begins";
      engine.after(30, () => made.state === "begins" && engine.begin(made));
      return false;
    });
  }

  async stop({ made }: ModelInstance, { timeoutMs, signal }: StopRequest): Promise<void> {
    const { drainMs } = this.#engine.kind;
    await this.#asked(() => {
      const engine = this.#engine;
      const withdrawn = engine.withdrawn.get(made.machine) ?? Number.NEGATIVE_INFINITY;
      const { open, since } = engine.requestsOf(made.machine);
      const isDraining =
        drainMs === undefined ? open > 0 && Date.now() < since + timeoutMs : Date.now() < withdrawn + drainMs;
      if (isDraining) engine.mistakes.push(`${made.machine} has requests and is stopped`);
      if (made.isAskedForCertain) engine.mistakes.push(`${made.machine} gets a second signal`);
      made.signals.push(signal);
      made.asked ??= { at: Date.now(), ms: timeoutMs };
      if (made.state === "paused") made.state = "running";
      const { runs } = made;
      if (!engine.isDeaf) engine.after(20, () => made.runs === runs && engine.end(made));
    });
    made.isAskedForCertain = true;
  }

  kill({ made }: ModelInstance): Promise<void> {
    return this.#asked(() => {
      const { asked } = made;
      const state = this.#host.subject(made.machine)?.state ?? "";
      const isStray = ["stopped", "failed", "suspended"].includes(state);
      if (!isStray && (!asked || Date.now() < asked.at + asked.ms))
        this.#engine.mistakes.push(`${made.machine} is killed too early`);
      made.signals.push("SIGKILL");
      this.#engine.end(made);
    });
  }

  remove(id: string): Promise<void> {
    return this.#asked(() => {
      if (!this.killsOnRemove && this.#host.subject(id) && this.#engine.aliveOf(id).length > 0)
        this.#engine.mistakes.push(`${id} is removed while it runs`);
      for (const one of this.#engine.made.filter(({ machine }) => machine === id)) this.#engine.lose(one);
      this.#engine.offered.delete(id);
    });
  }

  exitOf(_machine: Subject, instance: ModelInstance | undefined): Promise<Exit> {
    return Promise.resolve(instance ? { ...lost, code: 0, signal: 0 } : lost);
  }

  publishedOf({ id }: Subject, { made }: ModelInstance): Published {
    return {
      run: `${made.id} ${made.runs}`,
      endpoints: new Map([[8080, `${id}.${made.id}:8080`]]),
      listens: () => Promise.resolve(true),
    };
  }

  limitMemory(): Promise<void> {
    return this.#asked(() => {});
  }

  async *logs(machine: string, { run = "" }: ModelInstance): AsyncGenerator<LogLine> {
    yield await this.#asked(() => ({ machine, time: "", text: run }));
  }

  signal(): Promise<void> {
    return Promise.resolve();
  }

  #make({ id, version, start, config }: Subject): Made {
    if (this.#engine.isRefusing) throw new Refused("no such image");
    const mounts = config.mounts?.map(({ volume }) => volume) ?? [];
    const made: Made = {
      id: this.#engine.nextId(),
      machine: id,
      version,
      start,
      mounts,
      state: "created",
      runs: 0,
      asked: undefined,
      isAskedForCertain: false,
      signals: [],
    };
    this.#engine.made.push(made);
    return made;
  }

  #pause({ made }: ModelInstance, isPaused: boolean): Promise<void> {
    return this.#asked(() => {
      if (!aliveStates.includes(made.state)) throw new NoAnswer("it has ended");
      made.state = isPaused ? "paused" : "running";
    });
  }

  #routesOf(drainMs: number): Routes<ModelInstance> {
    const { offered, withdrawn } = this.#engine;
    return {
      offer: ({ id }, _instance, isReady) => this.#asked(() => void offered.set(id, isReady)),
      withdraw: ({ id }) =>
        this.#asked(() => {
          if (offered.get(id) === true) withdrawn.set(id, Date.now());
          offered.set(id, false);
        }),
      drainMs: (id) => Math.max(0, (withdrawn.get(id) ?? Number.NEGATIVE_INFINITY) + drainMs - Date.now()),
      appChanged: () => {},
    };
  }

  async #copy({ id }: VolumeSubject, source: string): Promise<number> {
    const engine = this.#engine;
    const mounting = new Set(engine.made.filter(({ mounts }) => mounts.includes(source)).map(({ machine }) => machine));
    const releases: (() => void)[] = [];
    try {
      for (const machine of [...mounting].sort()) releases.push(await this.#reports.hold(machine));
      if (!this.isDead) engine.copied.add(source);
      // A copy takes longer than other requests.
      for (let i = 0; i < 6; i++) await this.#asked(() => {});
      return await this.#asked(() => {
        if (!engine.volumes.has(source)) throw new Impossible(`its source ${source} is missing`);
        if (engine.isRefusing) throw new Refused("no space");
        engine.volumes.add(id);
        return 1;
      });
    } finally {
      engine.copied.delete(source);
      for (const release of releases) release();
    }
  }

  #removeVolume(id: string): boolean {
    if (this.#host.volume(id)) this.#engine.mistakes.push(`${id} is removed, which the service has`);
    if (this.#host.unsettledVolumes().some((other) => this.#host.volume(other)?.source === id))
      this.#engine.mistakes.push(`${id} is removed while a copy of it is missing`);
    if (this.#engine.made.some(({ mounts, machine }) => mounts.includes(id) && this.#host.subject(machine)))
      this.#engine.mistakes.push(`${id} is removed, which a Machine has`);
    this.#engine.volumes.delete(id);
    return true;
  }

  /** A request of the engine. */
  async #asked<T>(answer: () => T): Promise<T> {
    if (this.isDead) return never;
    const { answerMs } = this.#engine.kind;
    await new Promise((resolve) => setTimeout(resolve, answerMs));
    if (this.isDead) {
      // What was sent before is still done, and no one hears of it.
      if (!this.#engine.isDown) answer();
      return never;
    }
    if (this.#engine.isDown) throw new NoAnswer("no answer");
    return answer();
  }
}

const lost: Exit = { code: 137, signal: 9, oom: false, requested: false };
