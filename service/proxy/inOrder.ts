// Requests of one connection, one after the other. Node.js hands over all that have come, and each would open a connection to a
// Machine, so that one client could take all descriptors (F76).
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Answers a request. */
type Handle = (request: IncomingMessage, response: ServerResponse) => void;

// ASSUMED: a client may send 16 requests, with headers of 16 KB in all, before the first one is answered; with more, it is gone.
const mostQueued = 16;
const mostCharacters = 16_384;

interface Queue {
  readonly rest: (readonly [IncomingMessage, ServerResponse])[];
  characters: number;
}

const charactersOf = ({ url = "", rawHeaders }: IncomingMessage): number =>
  rawHeaders.reduce((sum, { length }) => sum + length, url.length);

/** Handles the next request of a connection when the one before is answered. */
export function inOrder(handle: Handle): Handle {
  const queues = new WeakMap<Socket, Queue>();
  const begin = (queue: Queue, request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    response.once("close", () => {
      const next = queue.rest.shift();
      // After a last answer the socket is about to end, and no other answer could be sent.
      if (!next || !socket.writable) return void queues.delete(socket);
      queue.characters -= charactersOf(next[0]);
      begin(queue, ...next);
    });
    handle(request, response);
  };
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    const queue = queues.get(socket);
    if (!queue) {
      const first = { rest: [], characters: 0 };
      queues.set(socket, first);
      return begin(first, request, response);
    }
    queue.characters += charactersOf(request);
    queue.rest.push([request, response]);
    if (queue.rest.length > mostQueued || queue.characters > mostCharacters) socket.destroy();
  };
}
