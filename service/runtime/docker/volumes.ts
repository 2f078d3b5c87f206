// Volumes and snapshots as volumes of the engine. A copy is written while the Machine that uses its source is paused.
import type Dockerode from "dockerode";
import { Impossible, type FrozenVolumes, type Reports, type VolumeDriver } from "../reconciler/driver.ts";
import type { RuntimeHost, Subject, VolumeSubject } from "../runtime.ts";
import { labels } from "./container.ts";
import type { Containers } from "./containers.ts";
import { allowing, reasonOf, type Engine } from "./engine.ts";
import { VolumeContents } from "./volumeContents.ts";

/** The copy of a volume from which a backup reads it. */
const draftOf = (id: string): string => `backup-${id}`;

/** The volumes and snapshots of a service. */
export class DockerVolumes implements VolumeDriver {
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #containers: Containers;

  constructor(engine: Engine, host: RuntimeHost, reports: Reports, containers: Containers) {
    this.#engine = engine;
    this.#host = host;
    this.#reports = reports;
    this.#containers = containers;
  }

  get #docker(): Dockerode {
    return this.#engine.docker;
  }

  // The identity is known from the first call on.
  get #contents(): VolumeContents {
    return new VolumeContents(this.#docker, this.#host.dataId, this.#containers);
  }

  async all(): Promise<{ id: string; name: string }[]> {
    const filters = { label: [`${labels.data}=${this.#host.dataId}`] };
    const { Volumes: found } = await this.#docker.listVolumes({ filters });
    return (found ?? []).map(({ Name, Labels }) => ({ id: Labels?.[labels.volume] ?? "", name: Name }));
  }

  has(id: string): Promise<boolean> {
    return this.#contents.has(id);
  }

  create({ id }: Pick<VolumeSubject, "id">): Promise<void> {
    return this.#contents.create(id);
  }

  async copy({ id }: VolumeSubject, source: string): Promise<number> {
    if (!(await this.has(source))) throw new Impossible(`its source ${source} is missing in the container engine`);
    // A Machine has a container with it, so it may have new data.
    if ((await this.#containers.machines(this.#contents.nameOf(id))).length > 0) {
      this.#host.log.warn({ volume: id }, "the volume was written before");
      return 0;
    }
    return this.#copy(source, id);
  }

  async remove(id: string): Promise<boolean> {
    // Those of earlier versions of a Machine, which are kept for their logs.
    await this.#containers.removeEnded(this.#contents.nameOf(id));
    await this.#contents.remove(id);
    return true;
  }

  readonly frozen: FrozenVolumes = {
    freeze: async ({ id, isSnapshot }) => {
      if (!(await this.has(id))) throw new Impossible(`volume ${id} is missing in the container engine`);
      if (isSnapshot) return id;
      await this.#copy(id, draftOf(id));
      return draftOf(id);
    },
    read: (id, use) => this.#contents.read(id, use),
    write: (id, archive, signal) => this.#contents.write(id, archive, AbortSignal.any([signal, this.#reports.closed])),
    tidy: async () => {
      for (const { id } of await this.all()) if (id.startsWith(draftOf(""))) await this.remove(id);
    },
  };

  /** The mounts of a Machine as the engine wants them. */
  mountsOf({ config }: Subject): Dockerode.MountSettings[] {
    return (config.mounts ?? []).map(({ volume, path }) => this.#contents.mountOf(volume, path));
  }

  async #copy(source: string, id: string): Promise<number> {
    // What an interrupted copy has left.
    await this.remove(id);
    await this.#contents.create(id);
    return this.#whilePaused(this.#contents.nameOf(source), () =>
      this.#contents.copy(source, id, this.#reports.closed),
    );
  }

  /** Does the work while nothing that mounts the volume runs. Volumes of one Machine are copied one after the other. */
  async #whilePaused<T>(volume: string, work: () => Promise<T>): Promise<T> {
    const paused: Dockerode.Container[] = [];
    const releases: (() => void)[] = [];
    try {
      // Always in the same order, so that two of them never wait for each other.
      for (const machine of (await this.#containers.machines(volume)).sort()) {
        releases.push(await this.#reports.hold(machine));
        for (const { id, isAlive, isPaused } of await this.#containers.of(machine)) {
          if (!isAlive || isPaused) continue;
          const container = this.#containers.get(id);
          paused.push(container);
          // 409: it ends at this moment.
          await allowing([404, 409], container.pause());
        }
      }
      return await work();
    } finally {
      for (const container of paused)
        await allowing([404, 409, 500], container.unpause()).catch((error: unknown) =>
          this.#host.log.warn({ reason: reasonOf(error) }, "a container is still paused; the next step continues it"),
        );
      for (const release of releases) release();
    }
  }
}
