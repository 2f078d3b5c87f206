// Volumes and snapshots of a service: each is written once, and removed when the service has deleted it and no copy of it is missing.
import type { RuntimeHost, Subject, VolumeArchives, VolumeSubject } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { Impossible, type Driver, type Instance, type Reports, type VolumeDriver } from "./driver.ts";

/** The volumes and snapshots that have yet to be copied from this one. */
export const copiesOf = (host: RuntimeHost, id: string): string[] =>
  host.unsettledVolumes().filter((other) => host.volume(other)?.source === id);

/** The volumes and snapshots of a service. */
export class Volumes {
  readonly #host: RuntimeHost;
  readonly #reports: Reports;
  readonly #driver: Driver<Instance>;
  readonly #steps: Steps;
  /** Why a volume could not be written so far. */
  readonly #reasons = new Map<string, string>();
  /** Volumes that are being copied; no Machine may begin to write into them. */
  readonly #copied = new Set<string>();

  constructor(host: RuntimeHost, reports: Reports, driver: Driver<Instance>) {
    this.#host = host;
    this.#reports = reports;
    this.#driver = driver;
    this.#steps = new Steps(host, { ...driver.failures, kind: "volume", step: (id) => this.#step(id) });
  }

  get #volumes(): VolumeDriver {
    return this.#driver.volumes;
  }

  /** A volume or snapshot was created or deleted, or the engine has said something about it. */
  changed(id: string): void {
    if (this.#driver.isReady) this.#steps.changed(id);
  }

  /** A Machine begins again: its volumes that could not be written are tried at once, and it waits for the result. */
  tryAgain({ config }: Subject): void {
    for (const { volume } of config.mounts ?? []) if (this.#reasons.delete(volume)) this.changed(volume);
  }

  /** Continues with what was interrupted. */
  async lookAtAll(): Promise<void> {
    const unsettled = this.#host.unsettledVolumes();
    for (const id of unsettled) this.changed(id);
    for (const { id, name } of await this.#volumes.all())
      if (!this.#host.volume(id) && !this.#host.unsettledVolumes().includes(id))
        this.#host.log.warn(
          { volume: id, name },
          `the service does not know this volume of ${this.#driver.place}; it is kept`,
        );
  }

  /** Copies that are being written end; they are made again later. */
  close(): Promise<void> {
    return this.#steps.close();
  }

  /**
   * Whether the volumes of a Machine have their contents; false as long as one is being written or copied.
   * @throws Impossible if one cannot be mounted.
   */
  async areReady({ config }: Subject): Promise<boolean> {
    const ids = config.mounts?.map(({ volume }) => volume) ?? [];
    for (const id of ids) {
      const reason = this.#reasons.get(id);
      if (reason !== undefined) throw new Impossible(`volume ${id} could not be written: ${reason}`);
      // Engines create a volume that is missing, and the Machine would begin without its data; others wait for it for ever.
      if (this.#host.volume(id)?.isWritten && !(await this.#volumes.has(id)))
        throw new Impossible(
          `volume ${id} is missing in ${this.#driver.place}; create a volume from one of its snapshots`,
        );
    }
    return ids.every((id) => this.#host.volume(id)?.isWritten && !this.#copied.has(id));
  }

  async #step(id: string): Promise<boolean> {
    const volume = this.#host.volume(id);
    if (!volume) {
      if (this.#host.unsettledVolumes().includes(id)) await this.#discard(id);
      return false;
    }
    try {
      if (volume.isWritten) await this.#volumes.settle?.(volume);
      else await this.#write(volume);
      this.#reasons.delete(id);
    } catch (error) {
      const { isRefusal, reasonOf } = this.#driver.failures;
      if (error instanceof Impossible || isRefusal(error)) this.#reasons.set(id, reasonOf(error));
      throw error;
    } finally {
      this.#machineChanged(id);
    }
    return false;
  }

  async #write(volume: VolumeSubject): Promise<void> {
    const { id, source } = volume;
    const bytes = await (source === null ? this.#volumes.create(volume).then(() => 0) : this.#copy(volume, source));
    if (bytes === undefined) return;
    this.#host.events.written(id, bytes);
    await this.#kept(() => this.#host.volume(id)?.isWritten !== false);
    // Its source may have been kept for it.
    for (const other of [...copiesOf(this.#host, id), ...(source === null ? [] : [source])]) this.changed(other);
    // It was deleted meanwhile.
    if (!this.#host.volume(id)) this.changed(id);
  }

  /** For backups; undefined if the engine gives no access to contents. */
  get archives(): VolumeArchives | undefined {
    const { frozen } = this.#volumes;
    if (!frozen) return undefined;
    return {
      read: async (id, use) => {
        const volume = this.#host.volume(id);
        if (!volume?.isWritten) throw new Impossible(`volume ${id} has no contents yet`);
        const copy = await this.#whileCopied(id, () => frozen.freeze(volume));
        try {
          await frozen.read(copy, use);
        } finally {
          if (copy !== id) await this.#volumes.remove(copy);
        }
      },
      write: frozen.write,
      tidy: frozen.tidy,
    };
  }

  async #copy(volume: VolumeSubject, source: string): Promise<number | undefined> {
    // It comes back here when its source is written.
    if (this.#host.volume(source)?.isWritten === false) return undefined;
    return this.#whileCopied(source, () => this.#volumes.copy(volume, source));
  }

  /** Does work while no Machine begins to write into a volume. */
  async #whileCopied<T>(source: string, copy: () => Promise<T>): Promise<T> {
    this.#copied.add(source);
    try {
      const machine = this.#host.volume(source)?.machine;
      // A step that began before may still create or start an instance, which the copy then sees.
      if (machine) (await this.#reports.hold(machine))();
      return await copy();
    } finally {
      this.#copied.delete(source);
      this.#machineChanged(source);
    }
  }

  async #discard(id: string): Promise<void> {
    // The store could still lose the deletion, and then its data must be there.
    await this.#host.settled();
    // A copy that is not complete needs it; it comes back here when it is written.
    if (copiesOf(this.#host, id).length > 0 || !(await this.#volumes.remove(id))) return;
    this.#host.events.discarded(id);
    await this.#kept(() => !this.#host.unsettledVolumes().includes(id));
    // A volume may have been kept for this copy of it.
    for (const other of this.#host.unsettledVolumes()) this.changed(other);
  }

  /**
   * Resolves when a report is durable.
   * @throws if it is lost, because the disk is full for example: the step is then repeated.
   */
  async #kept(isReported: () => boolean): Promise<void> {
    await this.#host.settled();
    if (!isReported()) throw new Error("the service could not store what was reported");
  }

  #machineChanged(volume: string): void {
    const machine = this.#host.volume(volume)?.machine;
    if (machine) this.#reports.changed(machine);
  }
}
