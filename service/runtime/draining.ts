// Ends the connections of clients without losing a request: each gets the answers to what it has sent, the last one with
// `Connection: close`. An idle connection is kept for a moment, because a request may be on its way.
import type { IncomingMessage, Server as HttpServer, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { endsOf } from "./ends.ts";

// ASSUMED: a connection without a request is kept for a tenth of the time that a drain may take; a third of a second, as usual.
const partForIdle = 10;
/** How often it looks whether other connections have ended. */
const lookMs = 20;

interface Connection {
  /** After its handshake a connection is another object with the same ends. */
  socket: Socket;
  /** Requests without their whole answer. */
  open: number;
  /** The answer to the last request. */
  newest: ServerResponse | undefined;
  idle: NodeJS.Timeout | undefined;
}

/** The connections of servers, which end together. */
export class Draining {
  readonly #connections = new Map<string, Connection>();
  /** The same, for each request. */
  readonly #known = new WeakMap<Socket, Connection>();
  #idleMs: number | undefined;

  /** Knows the requests of a server. Its connections are those that {@link take} gets. */
  watch(server: HttpServer): void {
    server.prependListener("secureConnection", (socket: Socket) => this.take(socket));
    server.prependListener("request", (request: IncomingMessage, response: ServerResponse) =>
      this.#begun(request.socket, response),
    );
    server.prependListener("upgrade", (_: IncomingMessage, socket: Duplex) => this.#begun(socket as Socket, undefined));
  }

  /** Knows a connection. */
  take(socket: Socket): void {
    // The client has gone already.
    if (socket.destroyed || socket.remoteAddress === undefined) return;
    const ends = endsOf(socket);
    const known = this.#connections.get(ends);
    if (known?.socket === socket) return;
    const connection: Connection = known ?? { socket, open: 0, newest: undefined, idle: undefined };
    connection.socket = socket;
    this.#known.set(socket, connection);
    this.#connections.set(ends, connection);
    socket.once("close", () => {
      if (connection.socket !== socket || this.#connections.get(ends) !== connection) return;
      clearTimeout(connection.idle);
      this.#connections.delete(ends);
    });
    this.#arm(connection);
  }

  /** Ends the connections. Resolves when there are none, and no others that the caller knows of, or after that time. */
  async begin(limitMs: number, areOthersOver: () => boolean = () => true): Promise<void> {
    this.#idleMs = limitMs / partForIdle;
    for (const connection of this.#connections.values()) {
      // Of several answers only the last one ends the connection.
      if (connection.newest) last(connection.newest);
      this.#arm(connection);
    }
    const until = performance.now() + limitMs;
    while ((this.#connections.size > 0 || !areOthersOver()) && performance.now() < until) await sleep(lookMs);
  }

  /** Forgets all of them. */
  close(): void {
    for (const { idle } of this.#connections.values()) clearTimeout(idle);
    this.#connections.clear();
  }

  #begun(socket: Socket, response: ServerResponse | undefined): void {
    const connection = this.#known.get(socket);
    if (!connection) return;
    connection.open++;
    connection.newest = response;
    clearTimeout(connection.idle);
    // Another protocol has no last answer.
    if (!response) return;
    if (this.#idleMs !== undefined) last(response);
    response.once("close", () => {
      connection.open--;
      if (connection.newest === response) connection.newest = undefined;
      this.#arm(connection);
    });
  }

  #arm(connection: Connection): void {
    if (this.#idleMs === undefined || connection.open > 0) return;
    clearTimeout(connection.idle);
    // What has come meanwhile is read first: on a busy computer, this may be late.
    const look = (): void => void setImmediate(() => setImmediate(() => this.#endIdle(connection)));
    connection.idle = setTimeout(look, this.#idleMs);
  }

  #endIdle({ socket, open }: Connection): void {
    if (open === 0) socket.destroySoon();
  }
}

function last(response: ServerResponse): void {
  if (!response.headersSent) response.shouldKeepAlive = false;
}
