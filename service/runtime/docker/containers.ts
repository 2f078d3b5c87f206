// The containers of a service, as the engine has them.
import type Dockerode from "dockerode";
import type { SignalName } from "../../../api/signals.ts";
import type { Instance } from "../reconciler/driver.ts";
import type { Exit, Subject } from "../runtime.ts";
import { keepsFiles, labels } from "./container.ts";
import { allowing, type Engine } from "./engine.ts";

/** A container of a Machine. */
export interface ContainerOf extends Instance {
  readonly container: Dockerode.ContainerInspectInfo;
}

const endedStates: readonly string[] = ["created", "exited", "dead"];

/** The containers of a service. */
export class Containers {
  readonly #engine: Engine;
  readonly #dataId: string;

  constructor(engine: Engine, dataId: string) {
    this.#engine = engine;
    this.#dataId = dataId;
  }

  /** The containers of a Machine, newest first. */
  async of(id: string, machine?: Subject): Promise<ContainerOf[]> {
    const listed = await this.#list(labels.machine, id);
    const found = await Promise.all(listed.map(({ Id }) => allowing([404], this.get(Id).inspect())));
    return found
      .filter((one) => one !== undefined)
      .sort((a, b) => (a.Created < b.Created ? 1 : a.Created > b.Created ? -1 : 0))
      .map((one) => instanceOf(one, machine));
  }

  /** The Machines that have a container, which mounts this volume of the engine if one is named. */
  async machines(volume?: string): Promise<string[]> {
    const filters = {
      label: [`${labels.data}=${this.#dataId}`],
      ...(volume === undefined ? {} : { volume: [volume] }),
    };
    const listed = await this.#engine.docker.listContainers({ all: true, filters });
    return [...new Set(listed.flatMap(({ Labels }) => Labels[labels.machine] ?? []))];
  }

  /** Ids of the containers that run, by Machine. */
  async running(): Promise<ReadonlyMap<string, string>> {
    const filters = { label: [`${labels.data}=${this.#dataId}`], status: ["running"] };
    const listed = await this.#engine.docker.listContainers({ filters });
    return new Map(
      listed.flatMap(({ Id, Labels }): [string, string][] => {
        const machine = Labels[labels.machine];
        return machine === undefined ? [] : [[machine, Id]];
      }),
    );
  }

  /** Removes all containers whose label has a value, also those that run; returns their ids. */
  async remove(label: string, value: string): Promise<string[]> {
    const ids = (await this.#list(label, value)).map(({ Id }) => Id);
    for (const id of ids) await this.removeOne(id);
    return ids;
  }

  /** Removes the containers that have ended and mount this volume: while there is one, the engine refuses to remove the volume. */
  async removeEnded(volume: string): Promise<void> {
    const filters = { label: [`${labels.data}=${this.#dataId}`], volume: [volume] };
    for (const { Id, State } of await this.#engine.docker.listContainers({ all: true, filters }))
      // Without force: one that begins at this moment stays.
      if (endedStates.includes(State)) await allowing([404, 409], this.get(Id).remove({ v: true }));
  }

  async removeOne(id: string): Promise<void> {
    await allowing([404, 409], this.get(id).remove({ force: true, v: true }));
  }

  get(id: string): Dockerode.Container {
    return this.#engine.docker.getContainer(id);
  }

  #list(label: string, value: string): Promise<Dockerode.ContainerInfo[]> {
    const filters = { label: [`${labels.data}=${this.#dataId}`, `${label}=${value}`] };
    return this.#engine.docker.listContainers({ all: true, filters });
  }
}

function instanceOf(container: Dockerode.ContainerInspectInfo, machine: Subject | undefined): ContainerOf {
  const { Id, State, Config } = container;
  const isNew = State.Status === "created";
  return {
    container,
    id: Id,
    isCurrent: Config.Labels[labels.version] === machine?.version,
    isAlive: State.Running,
    isPaused: State.Running && State.Paused,
    // After a run, its root file system is not fresh.
    canStart: State.Running || isNew || (machine !== undefined && keepsFiles(machine.config)),
    run: isNew ? undefined : `${Id} ${State.StartedAt}`,
    stopSignal: ((Config as { StopSignal?: string }).StopSignal ?? "SIGINT") as SignalName,
  };
}

/**
 * How the process of a container ended. If it ended before its engine was started, the engine or its computer has ended it.
 * ASSUMED: a program that ends by itself while the service does not run, and before the engine is started again, is rare.
 */
export function exitOf(container: Dockerode.ContainerInspectInfo | undefined, started: Date | undefined): Exit {
  // The container was removed by someone else.
  if (!container) return { code: 137, signal: 9, oom: false, requested: false };
  const { ExitCode: code, OOMKilled: oom, FinishedAt } = container.State;
  const exit = { code, signal: code > 128 && code < 160 ? code - 128 : 0, oom, requested: false };
  if (!started || new Date(FinishedAt) >= started) return exit;
  return { ...exit, error: "it ended with its container engine", interrupted: true };
}

/** Where this computer has the ports of a container. */
export const endpointsOf = ({ NetworkSettings }: Dockerode.ContainerInspectInfo): ReadonlyMap<number, string> =>
  new Map(
    Object.entries(NetworkSettings.Ports).flatMap(([name, at]): [number, string][] => {
      const [port, protocol] = name.split("/");
      // Without a port there, the engine does not publish it.
      return protocol === "tcp" && at?.[0] ? [[Number(port), `127.0.0.1:${at[0].HostPort}`]] : [];
    }),
  );
