// Ports that the proxy used where the wanted ones were taken. They are kept over restarts, because programs hold the addresses.
import { readFileSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { bind, bindNear } from "../runtime/bind.ts";
import { writePrivately } from "../store/privateFile.ts";

const port = z.int().min(1).max(65_535);
const ports = z.record(z.string(), z.strictObject({ wanted: z.int().min(0).max(65_535), used: port }));

/** The file of a data folder with these ports. */
export const portsFile = (folder: string): string => join(folder, "proxy-ports.json");

/** Binds servers to the ports that they had. */
export class KeptPorts {
  readonly #file: string | undefined;
  readonly #kept: Map<string, { readonly wanted: number; readonly used: number }>;

  /** Keeps the ports in a folder, or not at all. */
  constructor(folder: string | undefined) {
    this.#file = folder === undefined ? undefined : portsFile(folder);
    this.#kept = new Map(this.#file === undefined ? [] : Object.entries(readPorts(this.#file)));
  }

  /**
   * Listens at the port that was used by this name, if the same one was wanted then; else at the wanted port, or at a free one.
   * ASSUMED: where a port of the proxy was taken, the one that was used instead is kept, also when the wanted one is free again.
   */
  async bind(name: string, server: Server, host: string, wanted: number): Promise<number> {
    const before = this.#kept.get(name);
    const again = before?.wanted === wanted ? await bind(server, host, before.used).catch(() => undefined) : undefined;
    const used = again ?? (await bindNear(server, host, wanted));
    if (used === wanted) this.forget(name);
    else if (before?.wanted !== wanted || before.used !== used) {
      this.#kept.set(name, { wanted, used });
      this.#save();
    }
    return used;
  }

  /** Keeps no port for a name. */
  forget(name: string): void {
    if (this.#kept.delete(name)) this.#save();
  }

  #save(): void {
    if (this.#file !== undefined) writePrivately(this.#file, `${JSON.stringify(Object.fromEntries(this.#kept))}\n`);
  }
}

/** The ports in a file; none if it is missing or holds something else. */
function readPorts(file: string): z.infer<typeof ports> {
  try {
    return ports.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {};
  }
}
