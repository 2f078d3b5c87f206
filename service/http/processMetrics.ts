// Metrics of the process: how late its event loop is, the disk of its data, processor time and memory.
import { statfs } from "node:fs/promises";
import { processMetrics as of } from "../watch/catalogue.ts";
import { EventLoopLag } from "../watch/eventLoop.ts";
import type { Measured, Sample } from "../watch/exposition.ts";

/** Measures the process. */
export class ProcessMetrics {
  readonly #folder: string | undefined;
  readonly #lag = new EventLoopLag();

  /** `folder`: the folder of the data; undefined in memory. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** The metrics now. */
  async read(): Promise<readonly Measured[]> {
    const { user, system } = process.cpuUsage();
    const disk = await this.#disk();
    const one = (value: number | undefined): readonly Sample[] => (value === undefined ? [] : [[{}, value]]);
    return [
      [of.lag, this.#lag.samples],
      [of.diskFree, one(disk?.free)],
      [of.diskSize, one(disk?.size)],
      [of.cpu, one((user + system) / 1e6)],
      [of.memory, one(process.memoryUsage.rss())],
      [of.started, one(performance.timeOrigin / 1000)],
    ];
  }

  /** A disk that cannot be read is not known. */
  async #disk(): Promise<{ readonly free: number; readonly size: number } | undefined> {
    const found = this.#folder === undefined ? undefined : await statfs(this.#folder).catch(() => undefined);
    return found && { free: found.bavail * found.bsize, size: found.blocks * found.bsize };
  }

  close(): void {
    this.#lag.close();
  }
}
