// Claims blocks of loopback addresses: the service that listens at the claiming address of a block has the block to itself.
import { createServer, type Server } from "node:net";
import { blockOf, blocksFor, claimIn } from "../runtime/loopback.ts";
import type { Log } from "../runtime/runtime.ts";
import type { Bind } from "../runtime/bind.ts";
import { codeOf } from "../runtime/errorCode.ts";

// ASSUMED: services claim their loopback addresses at port 4283 of the last one.
const claimPort = 4283;

/** The blocks that a service has claimed. */
export class Claims {
  readonly #bind: Bind;
  readonly #log: Log;
  readonly #servers: Server[] = [];

  constructor(bind: Bind, log: Log) {
    this.#bind = bind;
    this.#log = log;
  }

  /**
   * Claims the blocks of the addresses that Apps have, and one for new addresses, which is returned. Undefined if the system does not
   * accept such addresses, or if other services have all blocks.
   */
  async claim(dataId: string, ips: readonly string[]): Promise<number | undefined> {
    const used = [...new Set(ips.map(blockOf))].filter((block) => block !== undefined);
    let own: number | undefined;
    for (const block of used) {
      const code = await this.#try(block);
      if (code === undefined) own ??= block;
      else if (code === "EADDRINUSE")
        this.#log.warn(
          { block: claimIn(block) },
          "another service has taken the block of addresses that Apps here have",
        );
    }
    if (own !== undefined) return own;
    for (const block of blocksFor(dataId)) {
      const code = await this.#try(block);
      if (code === undefined) return block;
      if (code !== "EADDRINUSE") {
        this.#log.info({ code }, "this system has no further loopback addresses, so addresses of Apps are simulated");
        return undefined;
      }
    }
    this.#log.warn({ port: claimPort }, "all loopback addresses are claimed, so new addresses of Apps are simulated");
    return undefined;
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }

  /** Claims a block; returns the code of the error if it cannot be claimed. */
  async #try(block: number): Promise<string | undefined> {
    const server = createServer((socket) => socket.destroy());
    try {
      await this.#bind(server, claimIn(block), claimPort);
    } catch (error) {
      return codeOf(error);
    }
    this.#servers.push(server);
    return undefined;
  }
}
