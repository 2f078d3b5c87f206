// The Docker driver: each Machine is a container, and each version has its own.
import type Dockerode from "dockerode";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type { SignalName } from "../../../api/signals.ts";
import { lastLinesOf } from "../lastLines.ts";
import type { Driver, Pauses, Published, Reports } from "../reconciler/driver.ts";
import type {
  Command,
  Exit,
  FoundImage,
  LogLine,
  LogQuery,
  Outcome,
  Process,
  RuntimeHost,
  StopRequest,
  Subject,
  TerminalRequest,
  TerminalSession,
  Usage,
} from "../runtime.ts";
import { runCommand, processesOf } from "./commands.ts";
import { containerOptions, filesOf, keepsFiles, labels, memoryLimits } from "./container.ts";
import { Containers, endpointsOf, exitOf, type ContainerOf } from "./containers.ts";
import {
  allowing,
  engineGone,
  isAnswered,
  isUnreachable,
  lowersFileLimit,
  noDiskLimit,
  ofEngine,
  startOf,
  statusOf,
  withoutMissing,
  type Engine,
} from "./engine.ts";
import { followEvents } from "./events.ts";
import { Firewall } from "./firewall.ts";
import { fetchImage, findImage, type ImageSource } from "./images.ts";
import { containerLogs } from "./logs.ts";
import { Networks } from "./networks.ts";
import type { Registries } from "./registries.ts";
import { listensIn } from "./sockets.ts";
import { openTerminal } from "./terminal.ts";
import { unsupported } from "./unsupported.ts";
import { usageOf } from "./usage.ts";
import { DockerVolumes } from "./volumes.ts";

/** Exit codes of a program that cannot be executed, or that is missing. */
const notStarted: readonly number[] = [126, 127];

/** The line that the init of a container writes when it cannot start the program. */
const initFailure = /^\[FATAL tini \(\d+\)\] (.+)$/;

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

/** Does what an engine does. */
export class DockerDriver implements Driver<ContainerOf> {
  readonly name = "docker";
  readonly place = "the container engine";
  readonly failures = ofEngine;
  readonly isReady = true;
  readonly killsOnRemove = true;
  readonly pauses: Pauses<ContainerOf> = {
    pause: ({ id }) => this.#containers.get(id).pause(),
    resume: ({ id }) => this.#containers.get(id).unpause(),
  };
  readonly volumes: DockerVolumes;
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #walls: Walls;
  readonly #containers: Containers;
  readonly #images: ImageSource;
  readonly #firewall: Firewall;
  readonly #networks: Networks;
  /** The time of the last line before a container was started again, by its id. */
  readonly #writtenBefore = new Map<string, string>();
  #ended: Promise<void> | undefined;

  constructor(engine: Engine, host: RuntimeHost, reports: Reports, walls: Walls) {
    this.#engine = engine;
    this.#host = host;
    this.#reports = reports;
    this.#walls = walls;
    this.#containers = new Containers(engine, host.dataId);
    this.#images = { engine, registries: walls.registries, log: host.log };
    this.#firewall = new Firewall(engine, host, walls.firewallProblem, walls.reach);
    this.#networks = new Networks(engine, host, this.#firewall);
    this.volumes = new DockerVolumes(engine, host, reports, this.#containers);
  }

  problem(config: MachineConfig): { field: string; message: string } | undefined {
    return unsupported(config, this.#engine.memoryMb);
  }

  findImage(image: string): Promise<FoundImage> {
    return findImage(this.#images, image);
  }

  databasesChanged(): void {
    this.#firewall.refresh();
  }

  begin(): void {
    this.#firewall.start();
    if (!this.#engine.hasDiskLimit) this.#host.log.info({}, noDiskLimit);
    const { closed } = this.#reports;
    this.#ended = followEvents(this.#engine, this.#host, {
      closed,
      changed: (machine) => this.#reports.changed(machine),
      connected: async () => {
        this.#firewall.refresh();
        await this.#reports.lookAtAll(await this.#containers.machines());
        await this.#networks.removeUnused();
      },
    });
  }

  // Steps may wait for an image, so they are not waited for.
  async close(): Promise<void> {
    await this.#ended;
    await this.#firewall.close();
  }

  observe(id: string, machine: Subject | undefined): Promise<readonly ContainerOf[]> {
    return this.#containers.of(id, machine);
  }

  async prepare(machine: Subject, instances: readonly ContainerOf[]): Promise<void> {
    if (!instances.some(({ isCurrent }) => isCurrent)) await this.#create(machine, instances);
  }

  /** Creates a container. Of those before, it keeps the newest, whose logs may still be wanted. */
  async #create(machine: Subject, before: readonly ContainerOf[]): Promise<Dockerode.Container> {
    const [image, network] = await Promise.all([
      fetchImage(this.#images, machine),
      this.#networks.ensure(machine.network),
    ]);
    const { dataId } = this.#host;
    const { capabilities } = this.#walls;
    const mounts = this.volumes.mountsOf(machine);
    const options = { dataId, image, network, mounts, capabilities };
    const container = await withoutMissing(this.#engine, this.#host.log, () =>
      this.#engine.docker.createContainer(containerOptions(this.#engine, machine, options)),
    );
    for (const { id } of before.slice(1)) await this.#containers.removeOne(id);
    return container;
  }

  /** Starts the container, or a new one if the Machine has run before: its root file system is fresh. */
  async start(machine: Subject, instances: readonly ContainerOf[]): Promise<boolean> {
    const current = instances.find(({ isCurrent }) => isCurrent);
    if (current?.isAlive) return true;
    const known = current?.canStart ? this.#containers.get(current.id) : undefined;
    // Here, because the service may have been killed after the container was created.
    const isNew = !known || current?.run === undefined;
    try {
      const container = known ?? (await this.#create(machine, instances));
      const files = isNew ? await filesOf(machine) : undefined;
      if (files) await container.putArchive(files, { path: "/" });
      if (keepsFiles(machine.config)) await this.#noteWritten(machine.id, container.id, isNew);
      // Another program may have removed the rules.
      await this.#firewall.hold();
      await allowing([304], container.start());
      return true;
    } catch (error) {
      if (isUnreachable(error)) throw error;
      // Someone has removed its network or its image. The next step creates another container.
      const isBroken = current && statusOf(error) === 404 && !keepsFiles(machine.config);
      const broken = (await this.#containers.of(machine.id, machine)).find(({ isCurrent }) => isCurrent);
      if (!broken || !(isBroken || (isNew && lowersFileLimit(this.#engine, broken.container.HostConfig, error))))
        throw error;
      await this.#containers.removeOne(broken.id);
      this.#reports.changed(machine.id);
      return false;
    }
  }

  async stop({ id, isPaused }: ContainerOf, { signal }: StopRequest): Promise<void> {
    if (isPaused) await allowing([404, 409], this.#containers.get(id).unpause());
    await allowing([404, 409], this.#containers.get(id).kill({ signal }));
  }

  kill(container: ContainerOf): Promise<void> {
    return this.stop(container, { signal: "SIGKILL", timeoutMs: 0 });
  }

  async remove(machine: string): Promise<void> {
    for (const id of await this.#containers.remove(labels.machine, machine)) this.#writtenBefore.delete(id);
    await this.#networks.removeUnused();
  }

  /** Why a program could not be started is only in the log. */
  async exitOf({ id, config }: Subject, instance: ContainerOf | undefined): Promise<Exit> {
    const container = instance?.container;
    const exit = exitOf(container, container && (await startOf(this.#engine)));
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

  #lastLines(machine: string, id: string): Promise<readonly LogLine[] | undefined> {
    return lastLinesOf((query) => this.logs(machine, { id }, query), this.#reports.closed);
  }

  publishedOf(_machine: Subject, { container }: ContainerOf): Published {
    const at = { container: container.Id, pid: container.State.Pid };
    return {
      run: `${at.container} ${at.pid}`,
      endpoints: endpointsOf(container),
      listens: (port) => listensIn(at, port),
    };
  }

  async limitMemory({ config, memoryLimitMb }: Subject, { container }: ContainerOf): Promise<void> {
    const limits = memoryLimits(config, memoryLimitMb);
    if (container.HostConfig.Memory !== limits.Memory) await this.#containers.get(container.Id).update(limits);
  }

  logs(machine: string, { id }: Pick<ContainerOf, "id">, query: LogQuery): AsyncIterable<LogLine> {
    return containerLogs(this.#containers.get(id), machine, query);
  }

  async signal({ id }: Subject, signal: SignalName): Promise<void> {
    const [newest] = await this.#containers.of(id);
    if (newest) await this.#containers.get(newest.id).kill({ signal });
  }

  async exec(machine: Subject, command: Command): Promise<Outcome | undefined> {
    const container = await this.#current(machine);
    await this.#firewall.settled();
    return runCommand(container, command);
  }

  async terminal(machine: Subject, request: TerminalRequest): Promise<TerminalSession> {
    const container = await this.#current(machine);
    await this.#firewall.settled();
    return openTerminal(container, request);
  }

  async processes(machine: Subject): Promise<readonly Process[]> {
    return processesOf(await this.#current(machine));
  }

  async usage(): Promise<ReadonlyMap<string, Usage>> {
    return usageOf(this.#engine, await this.#containers.running());
  }

  async #current(machine: Subject): Promise<Dockerode.Container> {
    try {
      const current = (await this.#containers.of(machine.id, machine)).find(({ isCurrent }) => isCurrent);
      if (current) return this.#containers.get(current.id);
    } catch (error) {
      if (!isAnswered(error)) throw engineGone(error);
      throw error;
    }
    throw new Error(`Machine ${machine.id} has no container`);
  }
}
