// Volumes and snapshots as volumes of the engine. A copy is written while the Machine that uses its source is paused. Nothing is
// removed before the service has deleted it, nor while a copy of it is missing.
import { pipeline, Transform } from "node:stream";
import type Dockerode from "dockerode";
import type { RuntimeHost, Subject, VolumeSubject } from "../runtime.ts";
import { containerName, labels } from "./container.ts";
import { allowing, isUnreachable, ofEngine, reasonOf, type Engine } from "./engine.ts";
import { importImage } from "./images.ts";
import { Steps } from "../steps.ts";
import { tarOf } from "./tar.ts";

const folder = "/data";

/** What volumes need from the Machines. */
export interface MachinesOfVolumes {
  /** Does the work while nothing runs that mounts a volume of the engine. */
  whilePaused(name: string, work: () => Promise<void>): Promise<void>;
  /** A volume that the Machine waits for may be ready. */
  changed(machine: string): void;
}

/** The volumes and snapshots of a service. */
export class Volumes {
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #machines: MachinesOfVolumes;
  readonly #steps: Steps;
  /** Why a volume could not be written so far. */
  readonly #reasons = new Map<string, string>();
  /** Volumes that are being copied; no Machine may begin to write into them. */
  readonly #copied = new Set<string>();
  readonly #closed = new AbortController();

  constructor(engine: Engine, host: RuntimeHost, machines: MachinesOfVolumes) {
    this.#engine = engine;
    this.#host = host;
    this.#machines = machines;
    this.#steps = new Steps(host, { ...ofEngine, kind: "volume", step: (id) => this.#step(id) });
  }

  get #docker(): Dockerode {
    return this.#engine.docker;
  }

  /** A volume or snapshot was created or deleted. */
  changed(id: string): void {
    this.#steps.changed(id);
  }

  /** A Machine begins again: its volumes that could not be written are tried at once, and it waits for the result. */
  tryAgain({ config }: Subject): void {
    for (const { volume } of config.mounts ?? []) if (this.#reasons.delete(volume)) this.changed(volume);
  }

  /** Continues with what was interrupted. */
  async lookAtAll(): Promise<void> {
    for (const id of this.#host.unsettledVolumes()) this.changed(id);
    const filters = { label: [`${labels.data}=${this.#host.dataId}`] };
    const { Volumes: found } = await this.#docker.listVolumes({ filters });
    for (const { Name, Labels } of found ?? []) {
      const id = Labels?.[labels.volume] ?? "";
      if (!this.#host.volume(id) && !this.#host.unsettledVolumes().includes(id))
        this.#host.log.warn(
          { volume: id, name: Name },
          "the service does not know this volume of the engine; it is kept",
        );
    }
  }

  /** Ends the copies that are being written; they are made again later. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#steps.close();
  }

  /**
   * The mounts of a Machine as the engine wants them; undefined as long as a volume is being written.
   * @throws Error if a volume cannot be mounted.
   */
  async mountsOf({ config }: Subject): Promise<Dockerode.MountSettings[] | undefined> {
    const mounts: Dockerode.MountSettings[] = [];
    for (const { volume, path } of config.mounts ?? []) {
      if (!this.#host.volume(volume)?.isWritten) {
        const reason = this.#reasons.get(volume);
        if (reason !== undefined) throw new Error(`volume ${volume} could not be written: ${reason}`);
        return undefined;
      }
      if (this.#copied.has(volume)) return undefined;
      // An engine creates a volume that is missing, and the Machine would begin without its data.
      if (!(await this.#find(volume)))
        throw new Error(
          `volume ${volume} is missing in the container engine; create a volume from one of its snapshots`,
        );
      mounts.push({ Type: "volume", Source: this.#nameOf(volume), Target: path, VolumeOptions: ownContents });
    }
    return mounts;
  }

  #nameOf(id: string): string {
    return `machines-${this.#host.dataId.slice(0, 8)}-${id}`;
  }

  #find(id: string): Promise<Dockerode.VolumeInspectInfo | undefined> {
    return allowing([404], this.#docker.getVolume(this.#nameOf(id)).inspect());
  }

  async #step(id: string): Promise<boolean> {
    const subject = this.#host.volume(id);
    if (!subject) {
      if (this.#host.unsettledVolumes().includes(id)) await this.#discard(id);
    } else if (!subject.isWritten) {
      try {
        await this.#write(subject);
      } catch (error) {
        // If the engine does not answer, the next attempt may succeed.
        if (!isUnreachable(error)) this.#reasons.set(id, reasonOf(error));
        if (subject.machine !== null) this.#machines.changed(subject.machine);
        throw error;
      }
    }
    return false;
  }

  async #discard(id: string): Promise<void> {
    // A copy that is not complete needs it; it comes back here when it is written.
    if (this.#copiesOf(id).length > 0) return;
    await this.#remove(id);
    this.#host.events.discarded(id);
    // A volume may have been kept for this copy of it.
    for (const other of this.#host.unsettledVolumes()) this.changed(other);
  }

  /** The volumes and snapshots that have yet to be copied from this one. */
  #copiesOf(id: string): string[] {
    return this.#host.unsettledVolumes().filter((other) => this.#host.volume(other)?.source === id);
  }

  async #write({ id, source }: VolumeSubject): Promise<void> {
    let bytes = 0;
    if (source === null) await this.#create(id);
    else {
      const from = this.#host.volume(source);
      // It comes back here when its source is written.
      if (from && !from.isWritten) return;
      if (!(await this.#find(source))) throw new Error(`its source ${source} is missing in the container engine`);
      if (await this.#isMounted(id)) this.#host.log.warn({ volume: id }, "the volume was written before");
      else {
        // What an interrupted copy has left.
        await this.#remove(id);
        await this.#create(id);
        this.#copied.add(source);
        try {
          await this.#machines.whilePaused(this.#nameOf(source), async () => {
            bytes = await this.#copy(source, id);
          });
        } finally {
          this.#copied.delete(source);
          const waiting = this.#host.volume(source)?.machine;
          if (waiting) this.#machines.changed(waiting);
        }
      }
    }
    this.#reasons.delete(id);
    this.#host.events.written(id, bytes);
    for (const other of [...this.#copiesOf(id), ...(source === null ? [] : [source])]) this.changed(other);
    const machine = this.#host.volume(id)?.machine;
    if (machine) this.#machines.changed(machine);
    // It was deleted meanwhile.
    if (!this.#host.volume(id)) this.changed(id);
  }

  async #create(id: string): Promise<void> {
    const Labels = { [labels.data]: this.#host.dataId, [labels.volume]: id };
    await this.#docker.createVolume({ Name: this.#nameOf(id), Labels });
  }

  async #remove(id: string): Promise<void> {
    await this.#removeHelpers(id);
    await allowing([404], this.#docker.getVolume(this.#nameOf(id)).remove());
  }

  /** Whether a Machine has a container with it, so that it may have new data. */
  async #isMounted(id: string): Promise<boolean> {
    const filters = { volume: [this.#nameOf(id)], label: [labels.machine] };
    return (await this.#docker.listContainers({ all: true, filters })).length > 0;
  }

  /** Copies the contents, with owners and modes, through two containers that never start. Returns the number of bytes. */
  async #copy(from: string, to: string): Promise<number> {
    await this.#removeHelpers(to);
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
      const abortSignal = AbortSignal.any([failed.signal, this.#closed.signal]);
      await target.putArchive(counted, { path: folder, abortSignal });
      failed.signal.throwIfAborted();
      return bytes;
    } finally {
      // The engine would not remove a container whose archive is still being read.
      counted.destroy();
      await this.#removeHelpers(to);
    }
  }

  async #helper(volume: string, of: string): Promise<Dockerode.Container> {
    return this.#docker.createContainer({
      name: containerName("copy", of),
      Image: await this.#emptyImage(),
      Cmd: ["/never-started"],
      Labels: { [labels.data]: this.#host.dataId, [labels.copy]: of },
      HostConfig: {
        Mounts: [{ Type: "volume", Source: this.#nameOf(volume), Target: folder, VolumeOptions: ownContents }],
        NetworkMode: "none",
      },
    });
  }

  async #removeHelpers(of: string): Promise<void> {
    const filters = { label: [`${labels.data}=${this.#host.dataId}`, `${labels.copy}=${of}`] };
    for (const { Id } of await this.#docker.listContainers({ all: true, filters }))
      await allowing([404, 409], this.#docker.getContainer(Id).remove({ force: true }));
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
