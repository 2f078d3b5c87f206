// A runtime on an engine outside of this process. A call only says that a Machine has changed. The reconciler then compares the state
// that the store wants with the instances that its driver observes, does the next step and reports it. It continues in the same way
// after the service or the engine was killed.
import { setTimeout as sleep } from "node:timers/promises";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type { SignalName } from "../../../api/signals.ts";
import { memoryLimit } from "../memory.ts";
import type {
  Command,
  Exit,
  FoundImage,
  LogLine,
  LogQuery,
  Memory,
  Outcome,
  Process,
  Runtime,
  RuntimeHost,
  StopRequest,
  Subject,
  Usage,
} from "../runtime.ts";
import { Steps } from "../steps.ts";
import { stopRequest } from "../stopRequest.ts";
import { Impossible, type Driver, type DriverFactory, type Instance, type Reports } from "./driver.ts";
import { Reached } from "./reached.ts";
import { Stops } from "./stops.ts";
import { Volumes } from "./volumes.ts";

/** Pause between two looks for a Machine's next run while its logs are followed. */
const logsPause = 300;

const isCurrent = ({ isCurrent: is }: Instance): boolean => is;

/** The exit of a Machine that could not be started. */
const notStarted = (error: string): Exit => ({ code: 127, signal: 0, oom: false, requested: false, error });

/** Runs Machines by a driver. */
export class Reconciler<I extends Instance> implements Runtime {
  readonly name: string;
  readonly databasesChanged: (() => void) | undefined;
  readonly terminal: Runtime["terminal"] | undefined;
  readonly reach: Reached;
  readonly archives: Runtime["archives"];
  readonly challengeRoutes: Runtime["challengeRoutes"];
  readonly issuer: Runtime["issuer"];
  readonly #host: RuntimeHost;
  readonly #driver: Driver<I>;
  readonly #steps: Steps;
  readonly #stops: Stops<I>;
  readonly #volumes: Volumes;
  readonly #later = new Map<string, NodeJS.Timeout>();
  readonly #closed = new AbortController();

  constructor(host: RuntimeHost, driverOf: DriverFactory<I>) {
    this.#host = host;
    const reports: Reports = {
      changed: (id) => this.#changed(id),
      volumeChanged: (id) => this.#volumes.changed(id),
      lookLater: (id, ms) => {
        clearTimeout(this.#later.get(id));
        this.#later.set(
          id,
          setTimeout(() => this.#changed(id), ms),
        );
      },
      lookAtAll: async (ids) => {
        for (const id of new Set([...ids, ...host.ids()])) this.#changed(id);
        await this.#volumes.lookAtAll();
      },
      isServing: (id) => this.reach.isServing(id),
      hold: async (id) => {
        const release = await this.#steps.hold(id);
        this.reach.pauseChecks(id);
        return release;
      },
      closed: this.#closed.signal,
    };
    const driver = driverOf(reports);
    this.#driver = driver;
    this.name = driver.name;
    this.databasesChanged = driver.databasesChanged?.bind(driver);
    this.challengeRoutes = driver.challengeRoutes;
    this.issuer = driver.issuer;
    this.terminal = driver.terminal?.bind(driver);
    this.reach = new Reached(host, reports, driver.routes !== undefined);
    this.#stops = new Stops(host, reports, driver);
    this.#volumes = new Volumes(host, reports, driver);
    this.archives = this.#volumes.archives;
    this.#steps = new Steps(host, {
      ...driver.failures,
      kind: "machine",
      step: async (id) => {
        const before = host.subject(id)?.state;
        await this.#step(id);
        // A report may have moved the Machine into a state that needs another step.
        return host.subject(id)?.state !== before;
      },
    });
  }

  problem(config: MachineConfig): { field: string; message: string } | undefined {
    return this.#driver.problem(config);
  }

  hasRoom(config: MachineConfig, region: string, replaced?: string): boolean {
    return this.#driver.hasRoom?.(config, region, replaced) !== false;
  }

  copyProblem(): string | undefined {
    return this.#driver.copyProblem;
  }

  isUnreachable(id: string): boolean {
    return this.#driver.isUnreachable?.(id) === true;
  }

  findImage(image: string): Promise<FoundImage> {
    return this.#driver.findImage(image);
  }

  create(machine: Subject): void {
    this.#volumes.tryAgain(machine);
    this.#changed(machine.id);
  }

  start(machine: Subject): void {
    this.create(machine);
  }

  stop({ id }: Subject, request: StopRequest): void {
    this.#stops.request(id, request);
    this.#changed(id);
  }

  suspend({ id }: Subject): void {
    this.#changed(id);
  }

  destroy({ id }: Subject): void {
    this.#changed(id);
  }

  limitMemory({ id }: Subject): void {
    this.#changed(id);
  }

  volumeChanged(id: string): void {
    this.#volumes.changed(id);
  }

  changed(ids: ReadonlySet<string>): void {
    const { routes, isReady } = this.#driver;
    if (!routes || !isReady) return;
    for (const id of ids) {
      if (this.reach.has(id)) this.#changed(id);
      else if (this.#host.app(id)) routes.appChanged(id);
      else routes.gone?.(id);
    }
  }

  signal(machine: Subject, signal: SignalName): void {
    this.#driver.signal(machine, signal).catch((error: unknown) => {
      const reason = this.#driver.failures.reasonOf(error);
      this.#host.log.warn({ machine: machine.id, reason }, "a signal is lost");
    });
  }

  exec(machine: Subject, command: Command): Promise<Outcome | undefined> {
    return this.#driver.exec(machine, command);
  }

  processes(machine: Subject): Promise<readonly Process[]> {
    return this.#driver.processes(machine);
  }

  async usage(): Promise<ReadonlyMap<string, Usage>> {
    const { place, failures } = this.#driver;
    try {
      return await this.#driver.usage();
    } catch (error) {
      throw new Error(`${place} does not say what Machines use: ${failures.reasonOf(error)}`, { cause: error });
    }
  }

  async *logs({ id }: Subject, query: LogQuery): AsyncGenerator<LogLine> {
    const seen = new Set<string>();
    let { since, lines } = query;
    for (;;) {
      // Oldest first.
      for (const instance of [...(await this.#driver.observe(id, this.#host.subject(id)))].reverse()) {
        if (instance.run === undefined || seen.has(instance.run)) continue;
        seen.add(instance.run);
        yield* this.#driver.logs(id, instance, { ...query, since, lines });
      }
      if (!query.follow || query.signal.aborted || this.#closed.signal.aborted || !this.#host.subject(id)) return;
      // All lines of a later run are new.
      since = undefined;
      lines = undefined;
      await sleep(logsPause, undefined, { signal: query.signal }).catch(() => {});
    }
  }

  memory(machine: Subject): Promise<Memory> {
    return Promise.resolve(memoryLimit(machine));
  }

  // ASSUMED: engines have no request to reclaim memory; the kernel does so by itself at the limit.
  reclaim(): Promise<number> {
    return Promise.resolve(0);
  }

  recover(): void {
    this.#driver.begin();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.reach.close();
    this.#stops.close();
    for (const timer of this.#later.values()) clearTimeout(timer);
    await Promise.all([this.#volumes.close(), this.#driver.close(this.#steps.close())]);
  }

  /** A Machine or its instances have changed. */
  #changed(id: string): void {
    // What the engine has is not known yet; all Machines are looked at then.
    if (this.#driver.isReady) this.#steps.changed(id);
  }

  /** Does what the state of a Machine needs now, and reports it. */
  async #step(id: string): Promise<void> {
    const machine = this.#host.subject(id);
    const driver = this.#driver;
    // Before anything is awaited: a stop may be requested meanwhile.
    if (machine?.state === "starting") this.#stops.forget(id);
    if (machine?.state !== "started") {
      this.reach.withdraw(id);
      if (machine) await driver.routes?.withdraw(machine);
    }
    if (!machine) return this.#remove(id);
    const { events } = this.#host;
    const instances = await driver.observe(id, machine);
    const current = instances.find(isCurrent);
    const alive = instances.find(({ isAlive }) => isAlive);
    const request = stopRequest(machine.config.stop_config);
    switch (machine.state) {
      case "created":
      case "replacing":
        return this.#prepare(machine, instances);
      case "starting":
        return this.#start(machine, instances);
      case "started":
        if (!current?.isAlive) return events.exited(machine, await driver.exitOf(machine, current));
        if (current.isPaused) await driver.pauses?.resume(current);
        this.reach.publish(machine, driver.publishedOf(machine, current));
        await driver.limitMemory(machine, current);
        // A cordon may have come meanwhile.
        return driver.routes?.offer(
          machine,
          current,
          this.#host.subject(id)?.isCordoned === false && this.reach.isServing(id),
        );
      case "stopping":
      case "restarting":
        if (alive) return this.#stops.step(id, alive, this.#stops.requested(id) ?? request);
        this.#stops.forget(id);
        return events.exited(machine, { ...(await driver.exitOf(machine, current)), requested: true });
      case "suspending":
        if (driver.pauses) {
          if (!current?.isAlive) return events.exited(machine, await driver.exitOf(machine, current));
          if (!current.isPaused) {
            if (this.#stops.isDraining(id, request.timeoutMs)) return;
            await driver.pauses.pause(current);
          }
        } else if (alive) return this.#stops.step(id, alive, request);
        this.#stops.forget(id);
        return events.suspended(machine);
      case "destroying":
        if (alive && !driver.killsOnRemove) return this.#stops.step(id, alive, request);
        if (current?.isAlive && this.#stops.isDraining(id, request.timeoutMs)) return;
        await this.#remove(id);
        events.destroyed(machine);
        return driver.routes?.appChanged(machine.appId);
      case "stopped":
      case "failed":
      case "suspended":
        // It was started by a run of the service that was killed.
        if (alive && !(machine.state === "suspended" && driver.pauses)) await this.#stops.kill(id, alive);
    }
  }

  /** Ends the instance of the version before, and prepares what the next one needs. */
  async #prepare(machine: Subject, instances: readonly I[]): Promise<void> {
    const { events } = this.#host;
    const old = instances.find((one) => one.isAlive && !one.isCurrent);
    if (old) {
      // It continues when the engine reports that the old one has ended.
      const request = stopRequest(machine.config.stop_config);
      return this.#stops.step(machine.id, old, { ...request, signal: old.stopSignal ?? request.signal });
    }
    const prepared = await this.#attempt(async () => {
      if (!instances.some(isCurrent) && !(await this.#volumes.areReady(machine))) return false;
      await this.#driver.prepare(machine, instances);
      return true;
    });
    if (prepared instanceof Impossible) events.unprepared(machine, prepared.message);
    else if (prepared) events.prepared(machine);
  }

  /** Starts the current instance, or a new one. */
  async #start(machine: Subject, instances: readonly I[]): Promise<void> {
    const { events } = this.#host;
    const current = instances.find(isCurrent);
    if (current?.isPaused) {
      await this.#driver.pauses?.resume(current);
      return events.started(machine);
    }
    const started = await this.#attempt(async () => {
      if (!current?.canStart && !(await this.#volumes.areReady(machine))) return false;
      return this.#driver.start(machine, instances);
    });
    if (started === false) return;
    this.#forgetLater(machine.id);
    if (started instanceof Impossible) return events.exited(machine, notStarted(started.message));
    if (started !== true) return events.exited(machine, started);
    const digest = current?.digest;
    if (digest !== undefined && machine.digest === "") events.resolved(machine, digest);
    events.started(machine);
  }

  /** The result of some work, or why the engine has refused it, so that trying again would not help. */
  async #attempt<T>(work: () => Promise<T>): Promise<T | Impossible> {
    const { isRefusal, reasonOf } = this.#driver.failures;
    try {
      return await work();
    } catch (error) {
      if (error instanceof Impossible) return error;
      if (isRefusal(error)) return new Impossible(reasonOf(error));
      throw error;
    }
  }

  /** Removes what belongs to a Machine. */
  async #remove(id: string): Promise<void> {
    this.#stops.forget(id);
    this.#forgetLater(id);
    await this.#driver.remove(id);
  }

  #forgetLater(id: string): void {
    clearTimeout(this.#later.get(id));
    this.#later.delete(id);
  }
}
