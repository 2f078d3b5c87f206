// Requests of one connection take turns: a client may send many without waiting, and each would take a connection to a Machine.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

// ASSUMED: a client may send 64 requests ahead of their answers; with more it loses its connection.
const mostAhead = 64;

interface Line {
  waiting: number;
  last: Promise<void>;
}

/** The turns of the requests of each connection. */
export class Turns {
  readonly #lines = new WeakMap<Socket, Line>();

  /** Resolves with whether the request may be answered: once those before it on its connection are, and unless that has ended. */
  async take({ socket }: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const line = this.#lines.get(socket) ?? { waiting: 0, last: Promise.resolve() };
    this.#lines.set(socket, line);
    if (line.waiting >= mostAhead) socket.destroy();
    if (socket.destroyed) return false;
    const before = line.last;
    line.waiting++;
    line.last = before.then(() => ended(socket, response)).finally(() => line.waiting--);
    if (line.waiting > 1) await before;
    return !socket.destroyed;
  }
}

/** Resolves once an answer has been given, or its connection has ended. */
const ended = (socket: Socket, response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed || response.closed) return resolve();
    const done = (): void => {
      socket.removeListener("close", done);
      response.removeListener("close", done);
      resolve();
    };
    socket.once("close", done);
    response.once("close", done);
  });
