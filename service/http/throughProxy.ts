// Requests for the service itself that come by the proxy, at the service's hostname. They get the times that the API gives all clients.
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import type { OwnService } from "../proxy/ownNames.ts";
import { hasBody, type ConnectionLimits } from "./connections.ts";
import { answerUpgrade } from "./upgrades.ts";

/** Answers by the routes of a server. */
export function throughProxy(
  app: Pick<FastifyInstance, "ready" | "routing">,
  { requestMs, unreadMs }: Pick<ConnectionLimits, "requestMs" | "unreadMs">,
): OwnService {
  let isReady = false;
  const handle: RequestListener = (request, response) => {
    if (isReady) return app.routing(request, response);
    const answer = async (): Promise<void> => {
      await app.ready();
      isReady = true;
      app.routing(request, response);
    };
    answer().catch(() => request.socket.destroy());
  };
  return {
    request(request, response) {
      limitTimes(request, response, requestMs, unreadMs);
      handle(request, response);
    },
    upgrade: (request, socket, head) => answerUpgrade(request, { socket, head }, handle),
  };
}

/** Limits how long a client sends, and how long it does not read. The proxy has no such limits for Machines. */
function limitTimes(request: IncomingMessage, response: ServerResponse, requestMs: number, unreadMs: number): void {
  const { socket } = request;
  if (hasBody(request) && !request.complete) {
    const late = setTimeout(() => request.complete || socket.destroy(), requestMs).unref();
    response.once("close", () => clearTimeout(late));
  }
  response.setTimeout(unreadMs, () => {
    if (socket.writableLength > 0) socket.destroy();
  });
}
