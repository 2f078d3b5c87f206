// Sends a request on to a Machine, and its answer back. Both are read completely and written anew, so that a side never gets bytes
// that this proxy has not understood.
import { request as send, type Agent, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { addressOf } from "../runtime/endpoint.ts";
import type { HeaderChanges } from "../../api/answerHeaders.ts";
import { codeOf } from "../runtime/errorCode.ts";
import { answerHeaders, requestHeaders, trailersOf } from "./headers.ts";
import { join } from "./join.ts";
import type { KeptBody } from "./keptBody.ts";
import { pathOf } from "./malformed.ts";

// ASSUMED: a Machine accepts a connection within ten seconds.
const connectMs = 10_000;

/** A Machine has begun to answer, and the client cannot get that. */
export class BadAnswer extends Error {
  readonly isInvalid: boolean;

  constructor(reason: string, isInvalid = true) {
    super(reason);
    this.isInvalid = isInvalid;
  }
}

/** What is forwarded, and how. */
export interface Forwarding {
  readonly endpoint: string;
  /** Keeps connections; without it, the request has its own. */
  readonly agent: Agent | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly changes: HeaderChanges;
  /** The body of the request, if it has one. */
  readonly body: KeptBody | undefined;
  /** The header `fly-replay-src`; undefined for a request that was not replayed. */
  readonly source: string | undefined;
  /** What the client has sent after it requested another protocol. */
  readonly head: Buffer | undefined;
}

/**
 * Sends a request to a Machine, and resolves when the client has its answer or has gone. It resolves to the header `fly-replay` of the
 * answer if there is one: the client gets nothing of this answer.
 * @throws BadAnswer if the Machine has begun to answer; the error of the connection if it has not.
 */
export function forward(forwarding: Forwarding): Promise<string | undefined> {
  const { request, response, body } = forwarding;
  return new Promise((resolve, reject) => {
    const { sent, hasBegun } = begin(forwarding);
    let isOver = false;
    const end = (): void => {
      isOver = true;
      response.removeListener("close", gone);
      request.unpipe(sent);
      sent.destroy();
    };
    const gone = (): void => {
      end();
      resolve(undefined);
    };
    const fail = (error: unknown): void => {
      if (isOver) return;
      end();
      if (!response.headersSent && !response.destroyed) {
        for (const name of response.getHeaderNames()) response.removeHeader(name);
        response.statusMessage = "";
        return reject(error);
      }
      // The client sees that the answer is not complete.
      response.destroy();
      resolve(undefined);
    };
    const guarded = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        fail(new BadAnswer(codeOf(error)));
      }
    };
    response.once("close", gone);
    let isRead = false;
    sent.on("error", (error) => {
      // The whole answer has come, and the client is still reading it.
      if (isRead) return;
      const isInvalid = codeOf(error).startsWith("HPE_");
      fail(isInvalid || hasBegun() ? new BadAnswer(codeOf(error), isInvalid) : error);
    });
    sent.on("response", (answer) => {
      const replay = answer.headers["fly-replay"];
      if (replay !== undefined && !isOver) {
        end();
        return resolve(String(replay));
      }
      answer.once("end", () => (isRead = answer.complete));
      guarded(() => passBack(answer, forwarding, fail));
    });
    sent.on("upgrade", (answer: IncomingMessage, machine: Socket, first: Buffer) => {
      machine.on("error", () => machine.destroy());
      if (forwarding.head === undefined || isOver) {
        machine.destroy();
        return fail(new BadAnswer("UNASKED_UPGRADE"));
      }
      response.removeListener("close", gone);
      request.socket.once("close", () => resolve(undefined));
      guarded(() => switchProtocols(answer, machine, first, forwarding));
    });
    if (body) body.sendTo(sent);
    else sent.end();
  });
}

/** A request that has begun. */
interface Begun {
  readonly sent: ClientRequest;
  /** Whether the Machine has sent anything back. */
  readonly hasBegun: () => boolean;
}

function begin({ endpoint, agent, request, head, source }: Forwarding): Begun {
  const upgrade = head === undefined ? undefined : request.headers.upgrade;
  const sent = send({
    ...addressOf(endpoint),
    agent: agent ?? false,
    method: request.method ?? "GET",
    path: pathOf(request),
    headers: requestHeaders(request, upgrade, source),
  });
  // No header is left out, however many there are.
  sent.maxHeadersCount = 0;
  let readBefore = 0;
  sent.once("socket", (socket) => {
    readBefore = socket.bytesRead;
    if (!socket.connecting) return;
    const giveUp = setTimeout(() => sent.destroy(connectTimeout()), connectMs);
    socket.once("connect", () => clearTimeout(giveUp)).once("close", () => clearTimeout(giveUp));
  });
  return { sent, hasBegun: () => (sent.socket?.bytesRead ?? 0) > readBefore };
}

const connectTimeout = (): Error =>
  Object.assign(new Error("the Machine accepts no connection"), { code: "ETIMEDOUT" });

/** Sends an answer to the client. */
function passBack(answer: IncomingMessage, forwarding: Forwarding, fail: (error: unknown) => void): void {
  const { request, response, changes } = forwarding;
  const { statusCode = 0, statusMessage = "", headers, httpVersionMajor } = answer;
  answer.on("error", fail);
  const coding = headers["transfer-encoding"];
  if (httpVersionMajor !== 1) return fail(new BadAnswer("INVALID_VERSION"));
  if (statusCode < 200) return fail(new BadAnswer("INVALID_STATUS"));
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return fail(new BadAnswer("INVALID_TRANSFER_ENCODING"));
  const isChunked = coding !== undefined && request.httpVersion === "1.1" && request.method !== "HEAD";
  for (const { name, values } of answerHeaders(answer, changes, isChunked).values())
    response.setHeader(name, values.length === 1 ? (values[0] ?? "") : values);
  if (statusMessage) response.writeHead(statusCode, statusMessage);
  else response.writeHead(statusCode);
  response.on("drain", () => answer.resume());
  answer.on("data", (chunk: Buffer) => {
    if (!response.write(chunk)) answer.pause();
  });
  answer.on("end", () => {
    if (!answer.complete) return fail(new BadAnswer("ENDED"));
    const trailers = trailersOf(answer);
    if (trailers.length > 0) response.addTrailers(trailers);
    response.end();
    // What is left of the request is not read by anyone else.
    request.unpipe();
    request.resume();
  });
}

/** Answers that another protocol follows, and joins the connections. */
function switchProtocols(answer: IncomingMessage, machine: Socket, first: Buffer, forwarding: Forwarding): void {
  const { request, response, head } = forwarding;
  const { socket } = request;
  const lines: string[] = [];
  for (let i = 0; i + 1 < answer.rawHeaders.length; i += 2)
    lines.push(`${answer.rawHeaders[i]}: ${answer.rawHeaders[i + 1]}\r\n`);
  response.detachSocket(socket);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`, "latin1");
  if (first.length > 0) socket.write(first);
  if (head?.length) machine.write(head);
  join(socket, machine);
}
