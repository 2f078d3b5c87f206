// Requests for WebSockets. They pass the same handler as every other request, so that they meet the same checks, and are refused by
// the same answers. A handler that accepts one takes its connection.
import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import { answerOver } from "../runtime/answerOver.ts";

/** The connection of a request for a WebSocket. */
export interface Upgrade {
  readonly socket: Socket;
  /** What the client has sent after the request. */
  readonly head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The connection of a request; undefined if it is not for a WebSocket. */
export const upgradeOf = (request: IncomingMessage): Upgrade | undefined => upgrades.get(request);

/** Whether a request is for a WebSocket. Others ask for HTTP/2, which the service does not speak: they get an answer by HTTP/1. */
export const isForWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" &&
  headers.upgrade?.toLowerCase() === "websocket" &&
  headers["transfer-encoding"] === undefined &&
  (headers["content-length"] ?? "0") === "0";

/** Passes requests for WebSockets to the listeners of the others. */
export function acceptUpgrades(server: Server): void {
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!isForWebSocket(request)) return readAgain(server, request, { socket, head });
    answerUpgrade(request, { socket, head }, (_, response) => server.emit("request", request, response));
  });
}

/** Passes a request for a WebSocket to a handler of the others. */
export function answerUpgrade(request: IncomingMessage, { socket, head }: Upgrade, handle: RequestListener): void {
  const response = answerOver(request, socket, () => socket.destroySoon());
  if (!response) return;
  upgrades.set(request, { socket, head });
  handle(request, response);
}

/** Reads a request again, as one without an upgrade. Only Node.js before 22.21 and 24.9 needs this: others ask before. */
function readAgain(server: Server, request: IncomingMessage, { socket, head }: Upgrade): void {
  // No one else listens any more.
  socket.on("error", () => socket.destroy());
  const { method = "GET", url = "/", httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (!/^(?:connection|upgrade)$/i.test(name)) lines.push(`${name}: ${rawHeaders[i + 1] ?? ""}`);
  }
  // Each time adds listeners to the connection, so it is used once.
  lines.push("Connection: close", "", "");
  socket.unshift(Buffer.concat([Buffer.from(lines.join("\r\n"), "latin1"), head]));
  server.emit("encrypted" in socket ? "secureConnection" : "connection", socket);
}
