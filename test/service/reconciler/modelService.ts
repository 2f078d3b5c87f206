// A model of the service that uses a runtime: Machines, volumes and open requests. Its states are those of the service.
import { effects, steps, type MachineState, type PowerOperation } from "../../../service/states/machineStates.ts";
import { Reconciler } from "../../../service/runtime/reconciler/reconciler.ts";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type {
  About,
  Runtime,
  RuntimeEvents,
  RuntimeHost,
  StoredStop,
  StoredStops,
  Subject,
  VolumeSubject,
} from "../../../service/runtime/runtime.ts";
import { ManualClock } from "../../../service/index.ts";
import { ModelDriver, type ModelEngine } from "./modelEngine.ts";

/** A Machine of the model. */
export interface Machine {
  readonly id: string;
  state: MachineState;
  /** When it was last to be stopped. */
  since: number;
  version: number;
  starts: number;
  isCordoned: boolean;
  readonly isRestarted: boolean;
  readonly volume: string | undefined;
  /** How long a requested stop may take: twice as long as configured. */
  readonly stopMs: number;
  /** How often each report came. */
  readonly reports: string[];
}

/** A volume or snapshot of the model. */
export interface Volume {
  readonly id: string;
  readonly source: string | null;
  machine: string | null;
  isWritten: boolean;
  isDeleted: boolean;
}

/** The service. It is started and killed again and again, and keeps its store. */
export class ModelService {
  readonly engine: ModelEngine;
  readonly machines = new Map<string, Machine>();
  readonly volumes = new Map<string, Volume>();
  readonly warnings: string[] = [];
  /** The endpoints that the proxy may keep connections to. */
  readonly reachable = new Set<string>();
  /** Settles once what the store has is durable. */
  durable: Promise<void> = Promise.resolve();
  /** Ids are never used again. */
  count = 0;
  readonly #stops = new Map<string, StoredStop & { readonly at: number }>();
  readonly #requests = new Map<string, { count: number; ended: (() => void)[] }>();
  runtime: Runtime;

  constructor(engine: ModelEngine) {
    this.engine = engine;
    engine.requestsOf = (id) => ({
      open: this.#requests.get(id)?.count ?? 0,
      since: this.machines.get(id)?.since ?? 0,
    });
    this.runtime = this.#run();
  }

  /** Starts it again. Whatever it did before is cut off. */
  killed(): void {
    if (this.engine.driver) this.engine.driver.isDead = true;
    this.engine.copied.clear();
    this.reachable.clear();
    this.runtime = this.#run();
  }

  create(machine: Pick<Machine, "id" | "isRestarted" | "volume" | "stopMs">): void {
    const volume = this.volumes.get(machine.volume ?? "");
    if (volume) volume.machine = machine.id;
    const created = { ...machine, version: 1, starts: 0, isCordoned: false, reports: [] };
    this.machines.set(machine.id, { ...created, state: "created", since: Date.now() });
    this.#enter(machine.id, "created");
  }

  operate(id: string, operation: PowerOperation): void {
    const machine = this.machines.get(id);
    if (!machine) return;
    const effect = effects[operation][machine.state];
    if (typeof effect === "function" || effect === "unchanged") return;
    if (operation === "update") machine.version++;
    this.#enter(id, effect);
  }

  copyVolume(id: string, source: string | null): void {
    this.volumes.set(id, { id, source, machine: null, isWritten: false, isDeleted: false });
    this.runtime.volumeChanged?.(id);
  }

  deleteVolume(id: string): void {
    const volume = this.volumes.get(id);
    // It is removed a day later.
    if (!volume?.isWritten || volume.machine !== null) return;
    volume.isDeleted = true;
    this.runtime.volumeChanged?.(id);
  }

  /** A request to a started Machine, which lasts as long. */
  request(id: string, ms: number): void {
    if (this.machines.get(id)?.state !== "started") return;
    const open = this.#requests.get(id) ?? { count: 0, ended: [] };
    this.#requests.set(id, open);
    open.count++;
    setTimeout(() => {
      if (--open.count === 0) for (const ended of open.ended.splice(0)) ended();
    }, ms);
  }

  /** The store is an older one, which does not know a Machine. */
  forget(id: string): void {
    this.#leave(id);
    this.killed();
  }

  #enter(id: string, state: MachineState): void {
    const machine = this.machines.get(id);
    if (!machine) return;
    if (machine.state === "started") machine.since = Date.now();
    machine.state = state;
    if (state === "starting") machine.starts++;
    if (state === "destroyed") return this.#leave(id);
    const call = steps[state]?.call;
    const subject = this.#subject(id);
    if (!call || !subject) return;
    if (call === "stop") this.runtime.stop(subject, { signal: "SIGTERM", timeoutMs: machine.stopMs });
    else this.runtime[call](subject);
  }

  #leave(id: string): void {
    this.machines.delete(id);
    for (const volume of this.volumes.values()) if (volume.machine === id) volume.machine = null;
  }

  #subject(id: string): Subject | undefined {
    const machine = this.machines.get(id);
    if (!machine) return undefined;
    const { version, starts, isCordoned, state, volume, stopMs } = machine;
    const config: MachineConfig = {
      image: "model",
      stop_config: { timeout: `${stopMs / 2}ms` },
      ...(volume === undefined ? {} : { mounts: [{ volume, path: "/data" }] }),
    };
    return {
      ...{ id, appId: "app", app: "app", name: id, region: "ams", privateIp: "", network: "net", digest: "sha256:0" },
      ...{ version: String(version), start: String(starts), isCordoned, state, config, repository: "model" },
      fleet: undefined,
      memoryLimitMb: undefined,
      secrets: () => ({}),
    };
  }

  #events(): RuntimeEvents {
    const current = ({ id, version }: About, report: string): Machine | undefined => {
      const machine = this.machines.get(id);
      if (String(machine?.version) !== version) return undefined;
      machine?.reports.push(report);
      return machine;
    };
    const reached = (about: About, report: "prepared" | "started" | "suspended" | "destroyed"): void => {
      const machine = current(about, report);
      const step = machine && steps[machine.state];
      if (step?.on === report) this.#enter(about.id, step.become);
    };
    const failed = (about: About, from: readonly MachineState[], to: MachineState): void => {
      const machine = current(about, `failed ${to}`);
      if (!machine || !from.includes(machine.state)) return;
      this.#enter(about.id, to);
      if (!machine.isRestarted || to !== "stopped") return;
      const { starts } = machine;
      setTimeout(() => {
        if (machine.starts === starts && machine.state === "stopped") this.#enter(about.id, "starting");
      }, 1000);
    };
    return {
      prepared: (about) => reached(about, "prepared"),
      unprepared: (about) => failed(about, ["created", "replacing"], "failed"),
      started: (about) => reached(about, "started"),
      resolved: () => {},
      exited: (about) => {
        const machine = current(about, "exited");
        const step = machine && steps[machine.state];
        if (step?.on === "exited") this.#enter(about.id, step.become);
        else failed(about, ["starting", "started", "suspending"], "stopped");
      },
      suspended: (about) => reached(about, "suspended"),
      destroyed: (about) => reached(about, "destroyed"),
      checked: () => {},
      hostChanged: () => {},
      written: (id) => {
        const volume = this.volumes.get(id);
        if (volume && !volume.isDeleted) volume.isWritten = true;
      },
      discarded: (id) => void this.volumes.delete(id),
    };
  }

  #run(): Runtime {
    const clock = new ManualClock();
    const events = this.#events();
    const isDead = (): boolean => driver?.isDead === true;
    const host: RuntimeHost = {
      clock,
      delays: {} as RuntimeHost["delays"],
      timers: {} as RuntimeHost["timers"],
      events: Object.fromEntries(
        Object.entries(events).map(([name, report]) => [
          name,
          (...args: never[]) => (isDead() ? undefined : (report as (...all: never[]) => void)(...args)),
        ]),
      ) as unknown as RuntimeEvents,
      stops: this.#storedStops(isDead),
      subject: (id) => this.#subject(id),
      ids: () => [...this.machines.keys()],
      app: () => ({
        name: "app",
        network: "net",
        machines: [...this.machines.keys()],
        expected: [],
        requested: [],
        certificates: [],
      }),
      databases: () => [],
      volume: (id) => this.#volume(id),
      unsettledVolumes: () =>
        [...this.volumes.values()].filter(({ isWritten, isDeleted }) => !isWritten || isDeleted).map(({ id }) => id),
      reachable: (machine) => {
        const endpoint = isDead() ? undefined : this.runtime.reach?.endpoint(machine, 8080);
        if (endpoint !== undefined) this.reachable.add(endpoint);
      },
      unreachable: (endpoints) => {
        if (!isDead()) for (const endpoint of endpoints) this.reachable.delete(endpoint);
      },
      drained: (id) => {
        const open = this.#requests.get(id);
        return open && open.count > 0 ? new Promise((resolve) => open.ended.push(resolve)) : undefined;
      },
      settled: () => this.durable,
      unsure: undefined,
      dataId: "data",
      log: {
        info: () => {},
        warn: (details, message) => void this.warnings.push(`${message}: ${JSON.stringify(details)}`),
      },
    };
    let driver: ModelDriver | undefined;
    const runtime = new Reconciler(host, (reports) => (driver = new ModelDriver(this.engine, host, reports)));
    runtime.recover();
    return runtime;
  }

  #storedStops(isDead: () => boolean): StoredStops {
    return {
      of: (id) => {
        const stop = this.#stops.get(id);
        const { asked } = stop ?? {};
        return stop && { ...stop, asked: asked && { ...asked, leftMs: asked.leftMs + stop.at - Date.now() } };
      },
      keep: (id, stop) => {
        if (!isDead()) this.#stops.set(id, { ...stop, at: Date.now() });
      },
      forget: (id) => {
        if (!isDead()) this.#stops.delete(id);
      },
    };
  }

  #volume(id: string): VolumeSubject | undefined {
    const volume = this.volumes.get(id);
    if (!volume || volume.isDeleted) return undefined;
    const { machine, source, isWritten } = volume;
    return { id, machine, source, isWritten, isSnapshot: false, network: "net", region: "ams", sizeGb: 1 };
  }
}
