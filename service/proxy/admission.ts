// Connections that a trusted load balancer passes on: before anything else, it says from which client, by the PROXY protocol.
import type { Server, Socket } from "node:net";
import { endsOf } from "../runtime/ends.ts";
import type { Networks } from "../runtime/networks.ts";
import { readProxyHeader, type Source } from "./proxyProtocol.ts";

/** Lets connections in as those of their clients. */
export class Admission {
  /** Networks whose connections must begin with a header; those of others must not. */
  readonly #networks: Networks;
  readonly #limitMs: number;
  /** By the ends that the system knows: after its handshake a connection is another object with the same ones. */
  readonly #sources = new Map<string, Source>();

  constructor(networks: Networks, limitMs: number) {
    this.#networks = networks;
    this.#limitMs = limitMs;
  }

  /** Shows the clients of connections with TLS. The first listener of a server has to do this. */
  watch(server: Server): void {
    server.prependListener("secureConnection", (socket: Socket) => {
      const source = this.#sources.get(endsOf(socket));
      if (source) present(socket, source);
    });
  }

  /** Passes a connection on, once it is known whose it is. */
  admit(socket: Socket, pass: (socket: Socket) => void): void {
    if (this.#networks.has(socket.remoteAddress)) void this.#read(socket, pass);
    else pass(socket);
  }

  async #read(socket: Socket, pass: (socket: Socket) => void): Promise<void> {
    const ends = endsOf(socket);
    const found = await readProxyHeader(socket, this.#limitMs);
    if (!found || socket.destroyed) return;
    if (found.source) {
      const { source } = found;
      this.#sources.set(ends, source);
      socket.once("close", () => {
        if (this.#sources.get(ends) === source) this.#sources.delete(ends);
      });
      present(socket, source);
    }
    pass(socket);
  }
}

/** Makes a connection show the address of its client, in limits, headers and logs. */
function present(socket: Socket, { ip, port }: Source): void {
  Object.defineProperty(socket, "remoteAddress", { value: ip, configurable: true });
  Object.defineProperty(socket, "remotePort", { value: port, configurable: true });
}
