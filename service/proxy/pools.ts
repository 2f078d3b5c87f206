// Connections to Machines that are kept for later requests.
import type { Socket } from "node:net";
import { buildConnector, Pool } from "undici";

/** Pools of connections, by the endpoint of the Machine. */
export class Pools {
  readonly #most: number;
  readonly #options: Pool.Options;
  readonly #pools = new Map<string, Pool>();
  #open = 0;

  /** Keeps at most about this many connections, beside those in use. */
  constructor(most: number, options: Pool.Options) {
    this.#most = most;
    const connect = buildConnector({});
    this.#options = {
      ...options,
      connect: (to, done) =>
        connect(to, (...found) => {
          const [, socket] = found;
          if (socket) this.#count(socket);
          done(...found);
        }),
    };
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open;
  }

  /** The pool of an endpoint. */
  of(endpoint: string): Pool {
    // Machines decide how long an idle connection is kept, and there can be any number of Machines (F76).
    if (this.#open >= this.#most) for (const one of [...this.#pools.keys()]) this.forget(one);
    const pool = this.#pools.get(endpoint) ?? new Pool(`http://${endpoint}`, this.#options);
    this.#pools.set(endpoint, pool);
    return pool;
  }

  /** Keeps no connection to an endpoint. Requests that have begun may end. */
  forget(endpoint: string): void {
    void this.#pools.get(endpoint)?.close();
    this.#pools.delete(endpoint);
  }

  /** Ends all connections. */
  close(): void {
    for (const pool of this.#pools.values()) void pool.destroy();
    this.#pools.clear();
  }

  #count(socket: Socket): void {
    this.#open++;
    socket.once("close", () => this.#open--);
  }
}
