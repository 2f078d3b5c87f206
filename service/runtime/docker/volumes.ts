// Volumes and snapshots as volumes of the engine. A copy is written while the Machine that uses its source is paused.
import { pipeline, Transform } from "node:stream";
import type Dockerode from "dockerode";
import { Impossible, type Reports, type VolumeDriver } from "../reconciler/driver.ts";
import type { RuntimeHost, Subject, VolumeSubject } from "../runtime.ts";
import { containerName, labels } from "./container.ts";
import type { Containers } from "./containers.ts";
import { allowing, reasonOf, type Engine } from "./engine.ts";
import { importImage } from "./images.ts";
import { tarOf } from "./tar.ts";

const folder = "/data";

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

  async all(): Promise<{ id: string; name: string }[]> {
    const filters = { label: [`${labels.data}=${this.#host.dataId}`] };
    const { Volumes: found } = await this.#docker.listVolumes({ filters });
    return (found ?? []).map(({ Name, Labels }) => ({ id: Labels?.[labels.volume] ?? "", name: Name }));
  }

  async has(id: string): Promise<boolean> {
    return (await allowing([404], this.#docker.getVolume(this.#nameOf(id)).inspect())) !== undefined;
  }

  async create({ id }: Pick<VolumeSubject, "id">): Promise<void> {
    const Labels = { [labels.data]: this.#host.dataId, [labels.volume]: id };
    await this.#docker.createVolume({ Name: this.#nameOf(id), Labels });
  }

  async copy({ id }: VolumeSubject, source: string): Promise<number> {
    if (!(await this.has(source))) throw new Impossible(`its source ${source} is missing in the container engine`);
    // A Machine has a container with it, so it may have new data.
    if ((await this.#containers.machines(this.#nameOf(id))).length > 0) {
      this.#host.log.warn({ volume: id }, "the volume was written before");
      return 0;
    }
    // What an interrupted copy has left.
    await this.remove(id);
    await this.create({ id });
    return this.#whilePaused(this.#nameOf(source), () => this.#copy(source, id));
  }

  async remove(id: string): Promise<boolean> {
    await this.#containers.remove(labels.copy, id);
    await allowing([404], this.#docker.getVolume(this.#nameOf(id)).remove());
    return true;
  }

  /** The mounts of a Machine as the engine wants them. */
  mountsOf({ config }: Subject): Dockerode.MountSettings[] {
    return (config.mounts ?? []).map(({ volume, path }) => this.#mountOf(volume, path));
  }

  #mountOf(volume: string, path: string): Dockerode.MountSettings {
    return { Type: "volume", Source: this.#nameOf(volume), Target: path, VolumeOptions: ownContents };
  }

  #nameOf(id: string): string {
    return `machines-${this.#host.dataId.slice(0, 8)}-${id}`;
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

  /** Copies the contents, with owners and modes, through two containers that never start. Returns the number of bytes. */
  async #copy(from: string, to: string): Promise<number> {
    await this.#containers.remove(labels.copy, to);
    const [source, target] = [await this.#helper(from, to), await this.#helper(to, to)];
    const failed = new AbortController();
    let bytes = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        done(null, chunk);
      },
    });
    try {
      const archive = await source.getArchive({ path: `${folder}/.` });
      pipeline(archive, counted, (error) => {
        if (error) failed.abort(error);
      });
      const abortSignal = AbortSignal.any([failed.signal, this.#reports.closed]);
      await target.putArchive(counted, { path: folder, abortSignal });
      failed.signal.throwIfAborted();
      return bytes;
    } finally {
      // The engine would not remove a container whose archive is still being read.
      counted.destroy();
      await this.#containers.remove(labels.copy, to);
    }
  }

  async #helper(volume: string, of: string): Promise<Dockerode.Container> {
    return this.#docker.createContainer({
      name: containerName("copy", of),
      Image: await this.#emptyImage(),
      Cmd: ["/never-started"],
      Labels: { [labels.data]: this.#host.dataId, [labels.copy]: of },
      HostConfig: {
        Mounts: [this.#mountOf(volume, folder)],
        NetworkMode: "none",
      },
    });
  }

  /** An image with nothing in it but the folder. Someone may have removed it since the last copy. */
  async #emptyImage(): Promise<string> {
    const name = "machines-service/copy:1";
    if (!(await allowing([404], this.#docker.getImage(name).inspect())))
      await importImage(this.#docker, name, await tarOf([{ name: folder.slice(1), type: "directory", mode: 0o755 }]));
    return name;
  }
}

/** A new volume stays empty; the engine does not copy what the image has at the path. */
const ownContents = { NoCopy: true, Labels: {}, DriverConfig: { Name: "", Options: {} } };
