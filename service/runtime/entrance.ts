// Where clients come in: ports of this computer, and sockets that listen already.
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { codeOf } from "./errorCode.ts";

/** Length of the system's queue of new connections. When it is full, clients wait a whole second. */
export const backlog = 4096;

/** A place to listen at. */
export type Place =
  | { readonly fd: number }
  | { readonly host: string; readonly port: number; readonly ipv6Only?: boolean };

/** The service cannot listen where it must. */
export class NotListening extends Error {
  readonly place: Place;
  /** The code of the system. */
  readonly code: string;

  constructor(place: Place, cause: unknown) {
    super(
      `the service cannot listen at ${"fd" in place ? `the descriptor ${place.fd}` : `${place.host}:${place.port}`}`,
      {
        cause,
      },
    );
    this.place = place;
    this.code = codeOf(cause);
  }
}

/** Accepts connections for a server. */
export class Entrance {
  readonly #arrived: (socket: Socket) => void;
  readonly #servers: Server[] = [];
  /** Ports of all addresses of IPv4. A server that is closed no longer says where it listened. */
  readonly #everywhere = new Set<number>();
  /** Connections from before `begin`; undefined after it. */
  #early: Socket[] | undefined = [];

  constructor(arrived: (socket: Socket) => void) {
    this.#arrived = arrived;
  }

  /** Listens by `bind`, which returns the port. */
  open(bind: (server: Server) => Promise<number>): Promise<number> {
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.#take(socket));
    this.#servers.push(server);
    return bind(server).then((port) => {
      const at = server.address();
      if (typeof at === "object" && (at?.address === "0.0.0.0" || at?.address === "::")) this.#everywhere.add(port);
      // A connection that the system cannot accept must not end the service.
      server.on("error", () => {});
      return port;
    });
  }

  /** Listens at all of these places, and returns the port of the first. Where a free port is wanted, all have the same one. */
  async openAll(places: readonly Place[]): Promise<number> {
    let first: number | undefined;
    for (const place of places) {
      const exact = "fd" in place || place.port !== 0 ? place : { ...place, port: first ?? 0 };
      const port = await this.open((server) => listen(server, exact));
      first ??= port;
    }
    return first ?? 0;
  }

  /** Where the first of its ports is. */
  get address(): AddressInfo | undefined {
    const address = this.#servers[0]?.address();
    return typeof address === "object" && address !== null ? address : undefined;
  }

  /** Whether a port of all addresses of IPv4 is one of its own; also of connections that outlive it. */
  isEverywhereAt(port: number): boolean {
    return this.#everywhere.has(port);
  }

  /** Hands over the connections from now on, and those that have come. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const socket of early) if (!socket.destroyed) this.#arrived(socket);
  }

  #take(socket: Socket): void {
    socket.on("error", () => socket.destroy());
    if (this.#early) this.#early.push(socket);
    else this.#arrived(socket);
  }

  /** Accepts no more connections. Those that it has accepted stay. */
  close(): void {
    for (const server of this.#servers) server.close();
  }
}

const listen = (server: Server, place: Place): Promise<number> =>
  new Promise((resolve, reject) => {
    const failed = (error: unknown): void => reject(new NotListening(place, error));
    server.once("error", failed);
    server.listen({ ...place, backlog }, () => {
      server.removeListener("error", failed);
      const address = server.address();
      if (typeof address === "object" && address !== null) resolve(address.port);
      else failed(Object.assign(new Error("not a port"), { code: "ENOTSUP" }));
    });
  });
