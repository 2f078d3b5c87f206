// The contents of volumes of the engine, read and written as archives through containers that never start.
import { pipeline, Transform, type Readable } from "node:stream";
import type Dockerode from "dockerode";
import { containerName, labels } from "./container.ts";
import type { Containers } from "./containers.ts";
import { allowing } from "./engine.ts";
import { importImage } from "./images.ts";
import { tarOf } from "./tar.ts";

const folder = "/data";

/** The volumes of a service, and what is in them. */
export class VolumeContents {
  readonly #docker: Dockerode;
  readonly #dataId: string;
  readonly #containers: Containers;

  constructor(docker: Dockerode, dataId: string, containers: Containers) {
    this.#docker = docker;
    this.#dataId = dataId;
    this.#containers = containers;
  }

  nameOf(id: string): string {
    return `machines-${this.#dataId.slice(0, 8)}-${id}`;
  }

  mountOf(id: string, path: string): Dockerode.MountSettings {
    return { Type: "volume", Source: this.nameOf(id), Target: path, VolumeOptions: ownContents };
  }

  async has(id: string): Promise<boolean> {
    return (await allowing([404], this.#docker.getVolume(this.nameOf(id)).inspect())) !== undefined;
  }

  async create(id: string): Promise<void> {
    const Labels = { [labels.data]: this.#dataId, [labels.volume]: id };
    await this.#docker.createVolume({ Name: this.nameOf(id), Labels });
  }

  async remove(id: string): Promise<void> {
    await this.#containers.remove(labels.copy, id);
    await allowing([404], this.#docker.getVolume(this.nameOf(id)).remove());
  }

  /** Copies the contents, with owners and modes. Returns the number of bytes. */
  copy(from: string, to: string, closed: AbortSignal): Promise<number> {
    return this.#reading(from, to, (archive) => this.#fill(to, archive, closed));
  }

  /** Uses the contents as an archive. Nothing may write them meanwhile. */
  read(id: string, use: (archive: Readable) => Promise<void>): Promise<void> {
    return this.#reading(id, id, use);
  }

  /** Uses the contents of a volume as an archive, through containers that are named after the volume `of`. */
  async #reading<T>(id: string, of: string, use: (archive: Readable) => Promise<T>): Promise<T> {
    await this.#containers.remove(labels.copy, of);
    const source = await this.#helper(id, of);
    let archive: Readable | undefined;
    try {
      archive = (await source.getArchive({ path: `${folder}/.` })) as Readable;
      return await use(archive);
    } finally {
      // The engine would not remove a container whose archive is still being read.
      archive?.destroy();
      await this.#containers.remove(labels.copy, of);
    }
  }

  async write(id: string, archive: Readable, closed: AbortSignal): Promise<void> {
    // What an interrupted attempt has left.
    await this.remove(id);
    await this.create(id);
    try {
      await this.#fill(id, archive, closed);
    } finally {
      await this.#containers.remove(labels.copy, id);
    }
  }

  async #fill(id: string, archive: NodeJS.ReadableStream, closed: AbortSignal): Promise<number> {
    const target = await this.#helper(id, id);
    const failed = new AbortController();
    let bytes = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        done(null, chunk);
      },
    });
    try {
      pipeline(archive, counted, (error) => {
        if (error) failed.abort(error);
      });
      const abortSignal = AbortSignal.any([failed.signal, closed]);
      await target.putArchive(counted, { path: folder, abortSignal });
      failed.signal.throwIfAborted();
      return bytes;
    } finally {
      // The engine would not remove a container whose archive is still being read.
      counted.destroy();
    }
  }

  async #helper(volume: string, of: string): Promise<Dockerode.Container> {
    return this.#docker.createContainer({
      name: containerName("copy", of),
      Image: await this.#emptyImage(),
      Cmd: ["/never-started"],
      Labels: { [labels.data]: this.#dataId, [labels.copy]: of },
      HostConfig: {
        Mounts: [this.mountOf(volume, folder)],
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
