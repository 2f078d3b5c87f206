// Closes connections, without keeping the others waiting.
import type { Socket } from "node:net";

// Number of connections closed in one turn of the event loop: about 5 ms.
const closedAtOnce = 50;

/**
 * Handles a few items in each turn of the event loop. Connections that were opened together expire together, and closing ten
 * thousand in one turn would block every other client for a second.
 */
export function inSlices<Item>(act: (item: Item) => void): (item: Item) => void {
  let queue: Item[] = [];
  const goOn = (): void => {
    for (const item of queue.slice(0, closedAtOnce)) act(item);
    queue = queue.slice(closedAtOnce);
    if (queue.length > 0) setImmediate(goOn);
  };
  return (item) => {
    if (queue.push(item) === 1) setImmediate(goOn);
  };
}

// ASSUMED: a client that is turned away has a second to read the reason.
const lingerMs = 1000;

/** Refuses a request with a status and no content, and closes its connection. `headers` end with CRLF each. */
export function refuseWith(socket: Socket, status: string, headers = ""): void {
  endWith(socket, `HTTP/1.1 ${status}\r\n${headers}Content-Length: 0\r\nConnection: close\r\n\r\n`);
}

/** Sends a last text on a connection and closes it, whatever the client does. */
export function endWith(socket: Socket, text: string): void {
  socket.end(text);
  const giveUp = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(giveUp));
}
