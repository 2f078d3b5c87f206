// The headers that are sent on to each side. What a side says about its own connection stays there, and what a client says about
// itself is replaced by what the proxy knows.
import type { IncomingMessage } from "node:http";
import { addressOfClient, isSchemeSaid, schemeOfClient } from "../runtime/trustedProxies.ts";
import { isHeaderName, isHeaderValue, ofMessage, type HeaderChanges } from "../../api/answerHeaders.ts";

/** Headers about one connection, not about the request or the answer (RFC 9110, section 7.6.1). */
const ofConnection = ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/**
 * Headers by which proxies say who asks and for what; those that CGI calls `HTTP_PROXY` too. Some programs believe each of them,
 * so a client's own are never passed on.
 */
const ofProxies = new RegExp(
  `^(?:${[
    "forwarded|forwarded-for|x-forwarded|x-forwarded-.+|via|proxy|client-ip|x-client-ip|x-real-ip|true-client-ip",
    "x-cluster-client-ip|x-remote-(?:ip|addr)|x-originating-ip|x-original-.+|x-rewrite-url|x-host|x-proxyuser-ip",
    "x-envoy-.+|x-appengine-.+|wl-proxy-.+|cf-connecting-ipv?6?|cf-ipcountry|fastly-client-ip|x-azure-clientip",
    "fly-client-ip|fly-forwarded-.+|fly-region|fly-request-id|fly-replay-src|svc-request-id",
  ].join("|")})$`,
);

/** A client cannot have these removed by naming them in its header `Connection`. */
const needed = ["host", "content-length", "content-type", "authorization", "cookie"];

// This server has already said that it continues, and it reads trailers itself.
const ofRequest: ReadonlySet<string> = new Set([...ofConnection, "host", "content-length", "expect", "trailer"]);
const ofAnswer: ReadonlySet<string> = new Set(ofConnection);
const ofTrailers: ReadonlySet<string> = new Set([...ofMessage, "host", "set-cookie", "authorization"]);

const none: ReadonlySet<string> = new Set();

const namedBy = (connection: string | undefined): ReadonlySet<string> =>
  connection === undefined ? none : new Set(connection.toLowerCase().split(/[\s,]+/));

/** Methods whose requests need no length without a body. */
const withoutBody: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);

function lengthOf({ headers, method = "GET" }: IncomingMessage): string[] {
  if (headers["transfer-encoding"] !== undefined) return ["transfer-encoding", "chunked"];
  const length = headers["content-length"] ?? (withoutBody.has(method) ? undefined : "0");
  return length === undefined ? [] : ["content-length", length];
}

/** The headers of a request to a Machine; `upgrade` is the other protocol that it asks for, `source` its header `fly-replay-src`. */
export function requestHeaders(
  request: IncomingMessage,
  upgrade: string | undefined,
  source: string | undefined,
): string[] {
  const { rawHeaders, headers } = request;
  const named = namedBy(headers.connection);
  // Routing and framing are said once, and first.
  const sent = ["host", headers.host ?? "", ...lengthOf(request)];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""];
    // Many programs cannot tell `X_Real_IP` from `X-Real-IP`.
    const lower = name.toLowerCase().replaceAll("_", "-");
    if (ofRequest.has(lower) || ofProxies.test(lower) || (named.has(lower) && !needed.includes(lower))) continue;
    sent.push(name, value);
  }
  sent.push(...knownOf(request), ...(source === undefined ? [] : ["fly-replay-src", source]));
  if (upgrade !== undefined) sent.push("connection", "upgrade", "upgrade", upgrade);
  // A Machine that is told to close does so before it has read an upload that it refuses, and its answer is lost.
  else sent.push("connection", "keep-alive");
  return sent;
}

/** What the proxy knows about a client. */
function knownOf(request: IncomingMessage): string[] {
  const { headers, socket } = request;
  const [ip, proto] = [addressOfClient(request), schemeOfClient(request)];
  // The port of a proxy in front of this one is not known.
  const port = isSchemeSaid(request) ? { http: 80, https: 443 }[proto] : (socket.localPort ?? "");
  const { host = "" } = headers;
  const node = ip.includes(":") ? `"[${ip}]"` : ip;
  return [
    ...["x-forwarded-for", ip, "x-forwarded-port", String(port), "x-forwarded-proto", proto],
    ...["x-forwarded-host", host, "x-real-ip", ip, "fly-client-ip", ip],
    ...["forwarded", `for=${node};host="${host}";proto=${proto}`],
  ];
}

/** The headers of an answer, by name in lower case. */
export type AnswerHeaders = Map<string, { readonly name: string; readonly values: string[] }>;

/** The headers of an answer for the client, with the changes of the port's configuration. */
export function answerHeaders(
  { rawHeaders, headers, statusCode }: IncomingMessage,
  changes: HeaderChanges,
  mayHaveTrailers: boolean,
): AnswerHeaders {
  const named = namedBy(headers.connection);
  const sent: AnswerHeaders = new Map();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""];
    const lower = name.toLowerCase();
    if (ofAnswer.has(lower) || (named.has(lower) && !needed.includes(lower))) continue;
    if (lower === "trailer" && !mayHaveTrailers) continue;
    // An answer without content has no length (RFC 9110, section 8.6).
    if (lower === "content-length" && statusCode === 204) continue;
    const known = sent.get(lower);
    if (known) known.values.push(value);
    else sent.set(lower, { name, values: [value] });
  }
  for (const [name, values] of changes) {
    sent.delete(name.toLowerCase());
    if (values.length > 0) sent.set(name.toLowerCase(), { name, values: [...values] });
  }
  return sent;
}

/** The trailers of an answer that a client may get: none that would change how it reads or believes the answer. */
export function trailersOf({ rawTrailers }: IncomingMessage): [string, string][] {
  const sent: [string, string][] = [];
  for (let i = 0; i + 1 < rawTrailers.length; i += 2) {
    const [name, value] = [rawTrailers[i] ?? "", rawTrailers[i + 1] ?? ""];
    if (!ofTrailers.has(name.toLowerCase()) && isHeaderName(name) && isHeaderValue(value)) sent.push([name, value]);
  }
  return sent;
}
