// Requests that are refused, because this proxy and a Machine could understand them in two ways (RFC 9112, sections 3.2 and 6).
import type { IncomingMessage } from "node:http";

/** Why a request is refused. */
export interface Malformed {
  readonly status: 400 | 501;
  readonly text: string;
}

// A name or an address, and perhaps a port; no user, no path and no second host.
const hostForm = /^(?:\[[\da-f:.]+\]|[^\0-\x20"#,/:<>?@[\\\]^`{|}\x7f]*)(?::\d{0,5})?$/i;
const absoluteForm = /^https?:\/\/([^/?#]*)/i;

const bad = (text: string): Malformed => ({ status: 400, text });

/** What is wrong with a request; undefined if nothing is. */
export function malformed(request: IncomingMessage): Malformed | undefined {
  const { headers, httpVersion, rawHeaders } = request;
  if (!["1.0", "1.1"].includes(httpVersion)) return bad(`the proxy speaks HTTP/1.1, not HTTP/${httpVersion}`);
  const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
  if (names.filter((name) => name === "host").length > 1) return bad("the request has two headers `Host`");
  const { host = "" } = headers;
  if (!hostForm.test(host)) return bad(`the header \`Host\` is no host: ${JSON.stringify(host.slice(0, 200))}`);
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && httpVersion === "1.0") return bad("HTTP/1.0 has no `Transfer-Encoding`");
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return {
      status: 501,
      text: `the proxy reads only chunks, not \`Transfer-Encoding\` ${JSON.stringify(coding.slice(0, 200))}`,
    };
  return targetProblem(request, host);
}

/** A target is a path, or a URL of the same host; `*` is for OPTIONS. */
function targetProblem({ url = "", method }: IncomingMessage, host: string): Malformed | undefined {
  if (url.startsWith("/") || (url === "*" && method === "OPTIONS")) return undefined;
  const authority = absoluteForm.exec(url)?.[1];
  if (authority === undefined) return bad("the target of a request must be a path, or a URL of its host");
  if (plain(authority) !== plain(host)) return bad("the target of the request has another host than its header `Host`");
  return undefined;
}

const plain = (host: string): string => host.toLowerCase().replace(/:(?:80|443)?$/, "");

/** The path of a request. Clients that know of a proxy name the host as well; `OPTIONS *` is about the whole server. */
export const pathOf = ({ url = "/" }: IncomingMessage): string => {
  const path = url.replace(absoluteForm, "");
  return path.startsWith("/") || path === "*" ? path : `/${path}`;
};

/** Whether a request comes with a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Whether a request begins a WebSocket (RFC 6455, section 4.1). Other upgrades are offers that a server may ignore. What follows one
 * with a body could be read as part of the other protocol.
 */
export const isWebSocket = (request: IncomingMessage): boolean =>
  request.headers.upgrade?.toLowerCase() === "websocket" &&
  request.method === "GET" &&
  request.httpVersion === "1.1" &&
  request.headers["transfer-encoding"] === undefined &&
  !hasBody(request);
