// The Docker runtime: each Machine is a container. A call only says that a Machine has changed. The runtime then compares the state
// that the store wants with the container that the engine has, does the next step and reports it. It continues in the same way
// after the service or the engine was killed.
import { once } from "node:events";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type { SignalName } from "../../../api/signals.ts";
import type {
  Command,
  Exit,
  FoundImage,
  LogLine,
  LogQuery,
  Memory,
  Outcome,
  Process,
  Reach,
  Runtime,
  RuntimeHost,
  StopRequest,
  Subject,
} from "../runtime.ts";
import { containerOptions, filesOf, labels, memoryLimits } from "./container.ts";
import {
  allowing,
  engineGone,
  isAnswered,
  isUnreachable,
  lowersFileLimit,
  noDiskLimit,
  ofEngine,
  reasonOf,
  statusOf,
  withoutMissing,
  type Engine,
} from "./engine.ts";
import { Firewall } from "./firewall.ts";
import { fetchImage, findImage, type ImageSource } from "./images.ts";
import { containerLogs } from "./logs.ts";
import { lastLinesOf } from "../lastLines.ts";
import { Networks } from "./networks.ts";
import type { Registries } from "./registries.ts";
import { outcomeOf } from "./outcome.ts";
import { Checker, type Ports } from "../checker.ts";
import { Collected } from "../collected.ts";
import { accepts } from "../probe.ts";
import { memoryLimit } from "../memory.ts";
import { stopRequest } from "../stopRequest.ts";
import { pauses, Steps } from "../steps.ts";
import { listensIn, type Running } from "./sockets.ts";
import { unsupported } from "./unsupported.ts";
import { Volumes } from "./volumes.ts";

type Inspected = Dockerode.ContainerInspectInfo;

/** How a running process is being stopped. */
interface Stopping {
  readonly container: string;
  timer?: NodeJS.Timeout;
  isSent: boolean;
  isLate: boolean;
}

/** Pause between two looks for a Machine's next container while its logs are followed. */
const logsPause = 300;

/** Pause between two attempts to connect to a program that does not listen yet. */
const listenPause = 20;

/** Exit codes of a program that cannot be executed, or that is missing. */
const notStarted: readonly number[] = [126, 127];

/** The line that the init of a container writes when it cannot start the program. */
const initFailure = /^\[FATAL tini \(\d+\)\] (.+)$/;

/** The ports of a container, and where this computer has them. */
interface Published extends Running {
  readonly endpoints: ReadonlyMap<number, string>;
}

/** What an operator allows Machines. */
export interface Walls {
  /** Capabilities of containers beside the usual ones. */
  readonly capabilities: readonly string[];
  /** Private networks that Machines reach. */
  readonly reach: readonly string[];
  readonly registries: Registries;
  /** Why there is no firewall around Machines; undefined if there is one. */
  readonly firewallProblem: string | undefined;
}

/** Runs Machines as containers of an engine. */
export class DockerRuntime implements Runtime {
  readonly name = "docker";
  readonly reach: Reach = {
    endpoint: (machine, port) => this.#ports.get(machine)?.endpoints.get(port),
    listens: async (machine, port) => {
      for (;;) {
        const endpoint = this.#ports.get(machine)?.endpoints.get(port);
        if (endpoint === undefined || this.#closed.signal.aborted) return false;
        if (await accepts(endpoint, () => this.#listens(machine, port))) return true;
        await sleep(listenPause);
      }
    },
  };
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #walls: Walls;
  readonly #images: ImageSource;
  readonly #firewall: Firewall;
  readonly #networks: Networks;
  readonly #volumes: Volumes;
  readonly #steps: Steps;
  readonly #requests = new Map<string, StopRequest>();
  readonly #stopping = new Map<string, Stopping>();
  readonly #draining = new Map<string, { isOver: boolean; readonly timer: NodeJS.Timeout }>();
  readonly #checkers = new Map<string, Checker>();
  /** The time of the last line before a container was started again, by its id. */
  readonly #writtenBefore = new Map<string, string>();
  /** The published ports of started Machines. */
  readonly #ports = new Map<string, Published>();
  readonly #closed = new AbortController();
  #ended: Promise<void> | undefined;

  constructor(engine: Engine, host: RuntimeHost, walls: Walls) {
    this.#engine = engine;
    this.#host = host;
    this.#walls = walls;
    this.#images = { engine, registries: walls.registries, log: host.log };
    this.#firewall = new Firewall(engine, host, walls.firewallProblem, walls.reach);
    this.#networks = new Networks(engine, host, this.#firewall);
    this.#volumes = new Volumes(engine, host, {
      whilePaused: (volume, work) => this.#whilePaused(volume, work),
      changed: (machine) => this.#changed(machine),
    });
    this.#steps = new Steps(host, {
      ...ofEngine,
      kind: "machine",
      step: async (id) => {
        const before = host.subject(id)?.state;
        await this.#step(id);
        // A report may have moved the Machine into a state that needs another step.
        return host.subject(id)?.state !== before;
      },
    });
  }

  get #docker(): Dockerode {
    return this.#engine.docker;
  }

  problem(config: MachineConfig): { field: string; message: string } | undefined {
    return unsupported(config, this.#engine.memoryMb);
  }

  findImage(image: string): Promise<FoundImage> {
    return findImage(this.#images, image);
  }

  create(machine: Subject): void {
    this.#volumes.tryAgain(machine);
    this.#changed(machine.id);
  }

  start(machine: Subject): void {
    this.#volumes.tryAgain(machine);
    this.#changed(machine.id);
  }

  stop({ id }: Subject, request: StopRequest): void {
    this.#requests.set(id, request);
    this.#changed(id);
  }

  suspend({ id }: Subject): void {
    this.#changed(id);
  }

  destroy({ id }: Subject): void {
    this.#changed(id);
  }

  databasesChanged(): void {
    this.#firewall.refresh();
  }

  volumeChanged(id: string): void {
    this.#volumes.changed(id);
  }

  limitMemory({ id }: Subject): void {
    this.#changed(id);
  }

  signal({ id }: Subject, signal: SignalName): void {
    const send = async (): Promise<void> => {
      const container = await this.#newest(id);
      if (container) await this.#docker.getContainer(container.Id).kill({ signal });
    };
    send().catch((error: unknown) => this.#host.log.warn({ machine: id, reason: reasonOf(error) }, "a signal is lost"));
  }

  async exec(machine: Subject, { words, stdin, timeoutMs, signal }: Command): Promise<Outcome | undefined> {
    const container = await this.#running(machine);
    await this.#firewall.settled();
    const exec = await container.exec({
      Cmd: [...words],
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
    });
    const stream = await exec.start({ hijack: true, stdin: true });
    const [stdout, stderr] = [new Collected(), new Collected()];
    this.#docker.modem.demuxStream(stream, stdout, stderr);
    stream.end(stdin);
    // ASSUMED: a command that does not end in time continues to run: engines have no request to end it.
    const timer = setTimeout(() => stream.destroy(), timeoutMs);
    const leave = (): void => void stream.destroy();
    signal.addEventListener("abort", leave);
    try {
      await once(stream, "close").catch(() => {});
      const { Running, ExitCode } = await exec.inspect();
      if (Running) return undefined;
      return outcomeOf(stdout.text, stderr.text, ExitCode ?? 0);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    }
  }

  async processes(machine: Subject): Promise<readonly Process[]> {
    const container = await this.#running(machine);
    const columns = "pid,pcpu,rss,time,args";
    // Podman needs a `ps` in the image for options, and lists columns by itself.
    const options = (await container.top({ ps_args: `-o ${columns}` })) as Partial<Listed>;
    const { Titles, Processes } = options.Processes
      ? (options as Listed)
      : ((await container.top({ ps_args: columns })) as Listed);
    const at = (title: string): number => Titles.findIndex((one) => one.includes(title));
    return Processes.map((fields) => ({
      pid: Number(fields[at("PID")]),
      command: fields[at("COMMAND")] ?? "",
      directory: "",
      cpu: Math.round(Number(fields[at("CPU")])),
      rss: Number(fields[at("RSS")]) * 1024,
      rtime: 0,
      stime: secondsOf(fields[at("TIME")] ?? ""),
      // ASSUMED: an engine does not say where a process listens.
      listen_sockets: [],
    }));
  }

  async *logs({ id }: Subject, query: LogQuery): AsyncGenerator<LogLine> {
    const seen = new Set<string>();
    let { since, lines: tail } = query;
    for (;;) {
      const all = (await this.#all(id)).filter(({ State }) => State.Status !== "created");
      // Oldest first; the container before the newest is kept for its logs.
      for (const { Id, State } of all.reverse()) {
        const run = `${Id} ${State.StartedAt}`;
        if (seen.has(run)) continue;
        seen.add(run);
        yield* containerLogs(this.#docker.getContainer(Id), id, { ...query, since, lines: tail });
      }
      if (!query.follow || query.signal.aborted || !this.#host.subject(id)) return;
      // All lines of a later container are new.
      since = undefined;
      tail = undefined;
      await sleep(logsPause, undefined, { signal: query.signal });
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
    this.#firewall.start();
    if (!this.#engine.hasDiskLimit) this.#host.log.info({}, noDiskLimit);
    this.#ended = this.#watch();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    for (const checker of this.#checkers.values()) checker.end();
    for (const { timer } of [...this.#stopping.values(), ...this.#draining.values()]) clearTimeout(timer);
    // Its steps may wait for an image, so they are not waited for.
    void this.#steps.close();
    await this.#volumes.close();
    await this.#ended;
    await this.#firewall.close();
  }

  /** Follows the events of the engine. After each connection, it looks at everything, because events may have been missed. */
  async #watch(): Promise<void> {
    const { signal } = this.#closed;
    let pause = pauses.first;
    while (!signal.aborted) {
      let stream: Readable | undefined;
      try {
        const events = await this.#docker.getEvents({
          filters: {
            type: ["container"],
            // Podman says `died` and `remove`.
            event: ["die", "died", "oom", "destroy", "remove"],
            label: [`${labels.data}=${this.#host.dataId}`],
          },
          abortSignal: signal,
        } as Dockerode.GetEventsOptions);
        stream = events as Readable;
        pause = pauses.first;
        await this.#lookAtAll();
        for await (const line of lines(events)) {
          const { Actor } = JSON.parse(line) as { readonly Actor?: { readonly Attributes?: Record<string, string> } };
          const id = Actor?.Attributes?.[labels.machine];
          if (id !== undefined) this.#changed(id);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#host.log.warn({ reason: reasonOf(error) }, "the container engine does not answer");
      } finally {
        stream?.destroy();
      }
      // The engine has ended: no answer comes any more.
      this.#engine.failWaiting();
      await sleep(pause, undefined, { signal }).catch(() => {});
      pause = Math.min(pause * 2, pauses.longest);
    }
  }

  /** Looks at every Machine, and at every container of this service. */
  async #lookAtAll(): Promise<void> {
    this.#firewall.refresh();
    const containers = await this.#docker.listContainers({ all: true, filters: this.#mine() });
    const ids = containers.flatMap(({ Labels }) => Labels[labels.machine] ?? []);
    for (const id of new Set([...ids, ...this.#host.ids()])) this.#changed(id);
    await this.#volumes.lookAtAll();
    await this.#networks.removeUnused();
  }

  readonly #mine = (id?: string): { label: string[] } => ({
    label: [`${labels.data}=${this.#host.dataId}`, ...(id === undefined ? [] : [`${labels.machine}=${id}`])],
  });

  /** A Machine or its container has changed. */
  #changed(id: string): void {
    this.#steps.changed(id);
  }

  /** Does the work while nothing that mounts the volume runs. Volumes of one Machine are copied one after the other. */
  async #whilePaused(volume: string, work: () => Promise<void>): Promise<void> {
    const mounting = await this.#docker.listContainers({ all: true, filters: { ...this.#mine(), volume: [volume] } });
    // Always in the same order, so that two of them never wait for each other.
    const ids = [...new Set(mounting.flatMap(({ Labels }) => Labels[labels.machine] ?? []))].sort();
    const paused: Dockerode.Container[] = [];
    const releases: (() => void)[] = [];
    try {
      for (const id of ids) {
        releases.push(await this.#steps.hold(id));
        this.#checkers.get(id)?.pause(true);
        const running = (await this.#all(id)).filter(({ State }) => State.Running && !State.Paused);
        for (const { Id } of running) {
          const container = this.#docker.getContainer(Id);
          paused.push(container);
          // 409: it ends at this moment.
          await allowing([404, 409], container.pause());
        }
      }
      await work();
    } finally {
      for (const container of paused)
        await allowing([404, 409, 500], container.unpause()).catch((error: unknown) =>
          this.#host.log.warn({ reason: reasonOf(error) }, "a container is still paused; the next step continues it"),
        );
      for (const release of releases) release();
    }
  }

  /** Does what the state of a Machine needs now, and reports it. */
  async #step(id: string): Promise<void> {
    const machine = this.#host.subject(id);
    if (machine?.state !== "started") {
      this.#endChecks(id);
      this.#unpublish(id);
    }
    if (!machine) return this.#remove(id);
    const { events } = this.#host;
    const all = await this.#all(id);
    const container = ofVersion(all, machine.version);
    const state = container?.State;
    switch (machine.state) {
      case "created":
      case "replacing":
        return this.#prepare(machine, all);
      case "starting":
        return this.#launch(machine, all);
      case "started":
        if (!container || !state?.Running) return events.exited(machine, await this.#exitOf(machine, container));
        if (state.Paused) await this.#docker.getContainer(container.Id).unpause();
        this.#checkers.get(id)?.pause(false);
        await this.#limit(machine, container);
        this.#publish(id, container);
        return this.#check(machine);
      case "stopping":
      case "restarting":
        return this.#end(machine, container);
      case "suspending":
        if (!container || !state?.Running) return events.exited(machine, await this.#exitOf(machine, container));
        if (!state.Paused) {
          if (this.#isDraining(id, stopRequest(machine.config.stop_config).timeoutMs)) return;
          await this.#docker.getContainer(container.Id).pause();
        }
        this.#forgetStop(id);
        return events.suspended(machine);
      case "destroying":
        if (state?.Running && this.#isDraining(id, stopRequest(machine.config.stop_config).timeoutMs)) return;
        await this.#remove(id);
        return events.destroyed(machine);
      case "stopped":
      case "failed":
        // It was started by a run of the service that was killed.
        if (container && state?.Running) await this.#kill(container);
    }
  }

  /** Ends the container of the version before, fetches the image, and creates the container. */
  async #prepare(machine: Subject, all: readonly Inspected[]): Promise<void> {
    const old = all.find(({ State }) => State.Running);
    if (old && old.Config.Labels[labels.version] !== machine.version) {
      // It continues when the engine reports that the old container has ended.
      return this.#halt(machine.id, old, { ...stopRequest(machine.config.stop_config), signal: signalOf(old) });
    }
    try {
      if (!ofVersion(all, machine.version) && !(await this.#create(machine, all))) return;
    } catch (error) {
      if (isUnreachable(error)) throw error;
      return this.#host.events.unprepared(machine, reasonOf(error));
    }
    this.#host.events.prepared(machine);
  }

  /**
   * Creates a container; undefined as long as its volume is being written. Of the containers before, it keeps the newest, whose
   * logs may still be wanted.
   */
  async #create(machine: Subject, before: readonly Inspected[]): Promise<Dockerode.Container | undefined> {
    const mounts = await this.#volumes.mountsOf(machine);
    if (!mounts) return undefined;
    const [image, network] = await Promise.all([
      fetchImage(this.#images, machine),
      this.#networks.ensure(machine.network),
    ]);
    const { dataId } = this.#host;
    const { capabilities } = this.#walls;
    const container = await withoutMissing(this.#engine, this.#host.log, () =>
      this.#docker.createContainer(
        containerOptions(this.#engine, machine, { dataId, image, network, mounts, capabilities }),
      ),
    );
    for (const { Id } of before.slice(1))
      await allowing([404, 409], this.#docker.getContainer(Id).remove({ force: true, v: true }));
    return container;
  }

  /** Starts the container, or a new one if the Machine has run before: its root file system is fresh. */
  async #launch(machine: Subject, all: readonly Inspected[]): Promise<void> {
    const { events } = this.#host;
    const container = ofVersion(all, machine.version);
    this.#forgetStop(machine.id);
    if (container?.State.Paused) {
      await this.#docker.getContainer(container.Id).unpause();
      return events.started(machine);
    }
    if (container?.State.Running) return events.started(machine);
    const canStart = container && (container.State.Status === "created" || keepsFiles(machine.config));
    // Here, because the service may have been killed after the container was created.
    const isNew = !canStart || container.State.Status === "created";
    try {
      const fresh = canStart ? this.#docker.getContainer(container.Id) : await this.#create(machine, all);
      if (!fresh) return;
      const files = isNew ? await filesOf(machine) : undefined;
      if (files) await fresh.putArchive(files, { path: "/" });
      if (keepsFiles(machine.config)) await this.#noteWritten(machine.id, fresh.id, isNew);
      // Another program may have removed the rules.
      await this.#firewall.hold();
      await allowing([304], fresh.start());
    } catch (error) {
      if (isUnreachable(error)) throw error;
      // Someone has removed its network or its image. The next step creates another container.
      const isBroken = container && statusOf(error) === 404 && !keepsFiles(machine.config);
      const broken = await this.#newest(machine.id, machine.version);
      if (broken && (isBroken || (isNew && lowersFileLimit(this.#engine, broken.HostConfig, error)))) {
        await allowing([404, 409], this.#docker.getContainer(broken.Id).remove({ force: true, v: true }));
        return this.#changed(machine.id);
      }
      return events.exited(machine, { code: 127, signal: 0, oom: false, requested: false, error: reasonOf(error) });
    }
    events.started(machine);
  }

  /** Asks the process to end, kills it when it is late, and reports its exit. */
  async #end(machine: Subject, container: Inspected | undefined): Promise<void> {
    if (!container?.State.Running) {
      this.#forgetStop(machine.id);
      return this.#host.events.exited(machine, { ...(await this.#exitOf(machine, container)), requested: true });
    }
    await this.#halt(machine.id, container, this.#requests.get(machine.id) ?? stopRequest(machine.config.stop_config));
  }

  /** One step of stopping a container: the signal first, and later, when its time is over, the kill. */
  async #halt(id: string, container: Inspected, { signal, timeoutMs }: StopRequest): Promise<void> {
    const before = this.#stopping.get(id);
    const stopping =
      before?.container === container.Id ? before : { container: container.Id, isSent: false, isLate: false };
    this.#stopping.set(id, stopping);
    if (stopping.isLate) return this.#kill(container);
    if (stopping.isSent || this.#isDraining(id, timeoutMs)) return;
    stopping.isSent = true;
    if (container.State.Paused) await this.#docker.getContainer(container.Id).unpause();
    stopping.timer = setTimeout(() => {
      stopping.isLate = true;
      this.#changed(id);
    }, timeoutMs);
    await allowing([404, 409], this.#docker.getContainer(container.Id).kill({ signal }));
  }

  /** Whether requests of the proxy are still open. The step is repeated when they have ended, or when the time is over. */
  #isDraining(id: string, timeoutMs: number): boolean {
    const draining = this.#draining.get(id);
    if (draining) return !draining.isOver;
    const drained = this.#host.drained(id);
    if (!drained) return false;
    const over = (): void => {
      begun.isOver = true;
      clearTimeout(begun.timer);
      this.#changed(id);
    };
    const begun = { isOver: false, timer: setTimeout(over, timeoutMs) };
    this.#draining.set(id, begun);
    void drained.then(over);
    return true;
  }

  async #kill({ Id, State }: Inspected): Promise<void> {
    if (State.Paused) await allowing([404, 409], this.#docker.getContainer(Id).unpause());
    await allowing([404, 409], this.#docker.getContainer(Id).kill({ signal: "SIGKILL" }));
  }

  #forgetStop(id: string): void {
    clearTimeout(this.#stopping.get(id)?.timer);
    this.#stopping.delete(id);
    clearTimeout(this.#draining.get(id)?.timer);
    this.#draining.delete(id);
    this.#requests.delete(id);
  }

  /** How the process of a container ended, and what it wrote. Why a program could not be started is only in the log. */
  async #exitOf({ id, config }: Subject, container: Inspected | undefined): Promise<Exit> {
    const exit = exitOf(container);
    if (!container) return exit;
    const after = keepsFiles(config) ? (this.#writtenBefore.get(container.Id) ?? container.State.StartedAt) : "";
    const written = await this.#lastLines(id, container.Id);
    const lines = written?.filter(({ time }) => time > after).map(({ text }) => text);
    const [, error] = (notStarted.includes(exit.code) && initFailure.exec(lines?.at(-1) ?? "")) || [];
    return error === undefined ? { ...exit, lines } : { ...exit, error };
  }

  /**
   * Notes what a container wrote before its next start. The engine notes the time of the start only after it, so a program that is
   * quick has written already.
   */
  async #noteWritten(machine: string, container: string, isNew: boolean): Promise<void> {
    const written = isNew ? [] : await this.#lastLines(machine, container);
    if (written) this.#writtenBefore.set(container, written.at(-1)?.time ?? "");
  }

  #lastLines(machine: string, container: string): Promise<readonly LogLine[] | undefined> {
    const read = (query: LogQuery): AsyncIterable<LogLine> =>
      containerLogs(this.#docker.getContainer(container), machine, query);
    return lastLinesOf(read, this.#closed.signal);
  }

  async #limit(machine: Subject, { Id, HostConfig }: Inspected): Promise<void> {
    const limits = memoryLimits(machine.config, machine.memoryLimitMb);
    if (HostConfig.Memory !== limits.Memory) await this.#docker.getContainer(Id).update(limits);
  }

  #check(machine: Subject): void {
    const before = this.#checkers.get(machine.id);
    if (before?.version === machine.version) return;
    before?.end();
    const { id } = machine;
    const ports: Ports = {
      endpoint: (port) => this.reach.endpoint(id, port),
      listens: (port) => this.#listens(id, port),
    };
    this.#checkers.set(id, new Checker(machine, this.#host.events, ports));
  }

  /** Whether a program of a Machine listens at a port, where this computer shows it. */
  async #listens(machine: string, port: number): Promise<boolean | undefined> {
    const published = this.#ports.get(machine);
    return published && listensIn(published, port);
  }

  /** Remembers where the ports of a started Machine are. */
  #publish(id: string, { Id, State, NetworkSettings }: Inspected): void {
    const endpoints = Object.entries(NetworkSettings.Ports).flatMap(([name, at]): [number, string][] => {
      const [port, protocol] = name.split("/");
      // Without a port there, the engine does not publish it.
      return protocol === "tcp" && at?.[0] ? [[Number(port), `127.0.0.1:${at[0].HostPort}`]] : [];
    });
    const known = this.#ports.get(id);
    const { Pid: pid } = State;
    if (
      known?.container === Id &&
      known.pid === pid &&
      endpoints.every(([port, at]) => known.endpoints.get(port) === at)
    )
      return;
    this.#unpublish(id);
    this.#ports.set(id, { container: Id, pid, endpoints: new Map(endpoints) });
    this.#host.reachable(id);
  }

  #unpublish(id: string): void {
    const before = this.#ports.get(id);
    this.#ports.delete(id);
    if (before) this.#host.unreachable([...before.endpoints.values()]);
  }

  #endChecks(id: string): void {
    this.#checkers.get(id)?.end();
    this.#checkers.delete(id);
  }

  /** Removes what belongs to a Machine. */
  async #remove(id: string): Promise<void> {
    this.#forgetStop(id);
    for (const { Id } of await this.#docker.listContainers({ all: true, filters: this.#mine(id) })) {
      await allowing([404, 409], this.#docker.getContainer(Id).remove({ force: true, v: true }));
      this.#writtenBefore.delete(Id);
    }
    await this.#networks.removeUnused();
  }

  /** The containers of a Machine, newest first. */
  async #all(id: string): Promise<Inspected[]> {
    const listed = await this.#docker.listContainers({ all: true, filters: this.#mine(id) });
    const inspected = await Promise.all(
      listed.map(({ Id }) => allowing([404], this.#docker.getContainer(Id).inspect())),
    );
    return inspected
      .filter((one) => one !== undefined)
      .sort((a, b) => (a.Created < b.Created ? 1 : a.Created > b.Created ? -1 : 0));
  }

  async #newest(id: string, version?: string): Promise<Inspected | undefined> {
    const all = await this.#all(id);
    return version === undefined ? all[0] : ofVersion(all, version);
  }

  async #running({ id, version }: Subject): Promise<Dockerode.Container> {
    try {
      const container = await this.#newest(id, version);
      if (container) return this.#docker.getContainer(container.Id);
    } catch (error) {
      if (!isAnswered(error)) throw engineGone(error);
      throw error;
    }
    throw new Error(`Machine ${id} has no container`);
  }
}

/** Whether the files of a Machine outlive its stop, so that it keeps its container. */
const keepsFiles = ({ rootfs, guest }: MachineConfig): boolean =>
  (rootfs?.persist ?? guest?.persist_rootfs ?? "never") !== "never";

/** The newest container of a version. */
const ofVersion = (all: readonly Inspected[], version: string): Inspected | undefined =>
  all.find(({ Config }) => Config.Labels[labels.version] === version);

/** How the process of a container ended. */
function exitOf(container: Inspected | undefined): Exit {
  // The container was removed by someone else.
  if (!container) return { code: 137, signal: 9, oom: false, requested: false };
  const { ExitCode: code, OOMKilled: oom } = container.State;
  return { code, signal: code > 128 && code < 160 ? code - 128 : 0, oom, requested: false };
}

const signalOf = ({ Config }: Inspected): SignalName =>
  ((Config as { StopSignal?: string }).StopSignal ?? "SIGINT") as SignalName;

/** Processes in the form of an engine. */
interface Listed {
  readonly Titles: readonly string[];
  readonly Processes: readonly (readonly string[])[];
}

/** Seconds of a time as ps prints it, `01:02:03`, or as Podman does, `1h2m3.4s`. */
const secondsOf = (time: string): number =>
  Math.floor(
    time
      .replace(/s$/, "")
      .split(/[:hm]/)
      .reduce((sum, part) => sum * 60 + Number(part), 0),
  );

/** The lines of a stream. */
async function* lines(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream) {
    const parts = `${rest}${chunk.toString()}`.split("\n");
    rest = parts.pop() ?? "";
    yield* parts.filter((line) => line !== "");
  }
}
