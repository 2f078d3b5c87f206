// Sends a request on, and its answer back. What each side says about its own connection stays there.
import type { ServerResponse } from "node:http";
import { type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Dispatcher } from "undici";
import { join } from "./join.ts";

/** Headers about one connection, not about the request or the answer (RFC 9110, section 7.6.1). */
const ofConnection = ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/** Headers by which the proxy says who asks; a client's own are not believed. */
const ofProxy = ["x-forwarded-for", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-host"];

// This server has already said that it continues.
const dropped: ReadonlySet<string> = new Set([...ofConnection, ...ofProxy, "expect"]);

const namedBy = (connection: string | string[] | undefined): ReadonlySet<string> =>
  new Set(
    String(connection ?? "")
      .toLowerCase()
      .split(/[\s,]+/),
  );

/** The headers to send, as names and values in turn. */
function headersOf({ rawHeaders, headers, socket }: IncomingMessage): string[] {
  const named = namedBy(headers.connection);
  const sent: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""];
    const lower = name.toLowerCase();
    if (!dropped.has(lower) && !named.has(lower)) sent.push(name, value);
  }
  const isSecure = (socket as Partial<TLSSocket>).encrypted === true;
  const { host = "" } = headers;
  sent.push("x-forwarded-for", socket.remoteAddress ?? "");
  sent.push("x-forwarded-port", /:(\d+)$/.exec(host)?.[1] ?? (isSecure ? "443" : "80"));
  sent.push("x-forwarded-proto", isSecure ? "https" : "http", "x-forwarded-host", host);
  return sent;
}

/** Whether a request comes with a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** Changes the headers of an answer; their names are in lower case. */
export type Change = (headers: IncomingHttpHeaders) => void;

/**
 * Sends a request by a dispatcher, and resolves when the client has its answer or has gone.
 * @throws the error of the connection, if no answer began.
 */
export function forward(
  dispatcher: Dispatcher,
  request: IncomingMessage,
  response: ServerResponse,
  change: Change,
  head?: Buffer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // The dispatcher ends a body that it does not need any more, and with it the client's connection.
    const body = hasBody(request) ? request.pipe(new PassThrough()) : null;
    let controller: Dispatcher.DispatchController | undefined;
    const gone = (): void => {
      controller?.abort(new Error("the client has gone"));
      resolve();
    };
    response.once("close", gone);
    const upgrade = head === undefined ? null : (request.headers.upgrade ?? null);
    const method = request.method ?? "GET";
    dispatcher.dispatch(
      { path: pathOf(request), method, headers: headersOf(request), body, upgrade },
      {
        onRequestStart(started) {
          controller = started;
          if (response.destroyed) gone();
        },
        onResponseStart(current, status, headers, text) {
          if (status < 200) return;
          const named = namedBy(headers.connection);
          for (const name of Object.keys(headers))
            if (ofConnection.includes(name) || named.has(name)) Reflect.deleteProperty(headers, name);
          change(headers);
          response.on("drain", () => current.resume());
          if (text) response.writeHead(status, text, headers);
          else response.writeHead(status, headers);
        },
        onResponseData(current, chunk) {
          if (!response.write(chunk)) current.pause();
        },
        onResponseEnd(_, trailers) {
          if (Object.keys(trailers).length > 0) response.addTrailers(trailers);
          response.end();
        },
        onResponseError(_, error) {
          response.removeListener("close", gone);
          if (!response.headersSent) return reject(error);
          response.destroy();
          resolve();
        },
        onRequestUpgrade(_, status, headers, machine) {
          response.removeListener("close", gone);
          const { socket } = request;
          response.detachSocket(socket);
          const lines = Object.entries(headers).flatMap(([name, value]) =>
            [value].flat().map((one) => `${name}: ${one}\r\n`),
          );
          socket.write(`HTTP/1.1 ${status} Switching Protocols\r\n${lines.join("")}\r\n`);
          if (head?.length) machine.write(head);
          join(socket, machine);
          socket.once("close", resolve);
        },
      },
    );
  });
}

/** The path of a request. Clients that know of a proxy name the host as well; `OPTIONS *` is about the whole server. */
export const pathOf = ({ url = "/" }: IncomingMessage): string => {
  const path = url.replace(/^https?:\/\/[^/?#]*/i, "");
  return path.startsWith("/") ? path : `/${path.replace(/^\*$/, "")}`;
};
