// Answers to requests for another protocol, such as a WebSocket.
import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/**
 * The answer to a request for another protocol, over its connection; `end` is called once it is sent. Undefined if a request before it
 * has no answer yet, and a client has to wait for that: the connection is closed.
 */
export function answerOver(request: IncomingMessage, socket: Socket, end: () => void): ServerResponse | undefined {
  // No one else listens any more.
  socket.on("error", () => socket.destroy());
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(socket);
  } catch {
    socket.destroy();
    return undefined;
  }
  response.once("finish", end);
  return response;
}
