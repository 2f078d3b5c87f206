// One request, one outcome: the only file that talks HTTP.
import type { Readable } from "node:stream";
import type * as undici from "undici";

/** A request to send. The headers contain the token: nothing may log them. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Milliseconds until the answer must arrive. */
  readonly timeout: number;
  /** The service may delay the answer; such requests never use up the connections of others. */
  readonly held: boolean;
  readonly signal: AbortSignal | undefined;
}

/** An answer of the service. */
export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The outcome of a request. */
export type Outcome =
  | Answer
  /** Nothing of the request reached the service. */
  | Unanswered<"unsent">
  /** The request may have been received and its answer lost. */
  | Unanswered<"lost">;

interface Unanswered<Kind> {
  readonly kind: Kind;
  readonly cause: Error;
  /** Another try would end in the same way. */
  readonly lasting: boolean;
  /** The environment names a proxy that may be in between. */
  readonly proxied: boolean;
}

/** Sends a request. `close` closes idle connections; a later request opens new ones. */
export type Transport = ((sent: Sent) => Promise<Outcome>) & { close(): Promise<void> };

/** Bytes; more than any list of the service. */
const largestAnswer = 32 * 2 ** 20;

/** No connection was established; the next try may succeed. */
const unreachedCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_PRX_CONN",
]);

/** The other side is not the one that the endpoint names, or does not speak its protocol. */
const refusedCode =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_TLS_CERT_|ERR_SSL_(WRONG_VERSION_NUMBER|UNSUPPORTED_PROTOCOL|.*ALERT_(HANDSHAKE_FAILURE|PROTOCOL_VERSION)|.*UNRECOGNIZED_NAME)$|UND_ERR_(INVALID_ARG|PRX_TLS)$)/;

/** The connection pools. Waits never use up the connections of calls. */
interface Connections {
  readonly calls: undici.Dispatcher;
  readonly waits: undici.Dispatcher;
}

/** The environment's proxy settings. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The transport over undici. It reuses connections, never follows redirects, and obeys `HTTP_PROXY`, `HTTPS_PROXY` and
 * `NO_PROXY`. Requests to this computer never use a proxy.
 */
export function httpTransport(env: ProxyEnvironment = process.env): Transport {
  // Loaded with the first request, because many runs of a provider send none.
  let opened: Promise<Connections> | undefined;
  const send = async (sent: Sent): Promise<Outcome> => {
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), sent.timeout);
    try {
      const { calls, waits } = await (opened ??= open(env));
      const { origin, pathname, search } = new URL(sent.url);
      const answer = await (sent.held ? waits : calls).request({
        origin,
        path: pathname + search,
        method: sent.method,
        // Nothing is decompressed here, so a small answer stays small in memory.
        headers: { ...sent.headers, "accept-encoding": "identity" },
        body: sent.body ?? null,
        signal: sent.signal ? AbortSignal.any([sent.signal, timeout.signal]) : timeout.signal,
        headersTimeout: sent.timeout,
        bodyTimeout: sent.timeout,
      });
      const headers = Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
      );
      return { kind: "answer", status: answer.statusCode, headers, text: await textOf(answer.body) };
    } catch (error) {
      if (timeout.signal.aborted) return failed(new Error(`no answer within ${sent.timeout / 1000} s`), sent, env);
      return failed(rootOf(error), sent, env);
    } finally {
      clearTimeout(timer);
    }
  };
  return Object.assign(send, {
    close: async () => {
      const closing = await opened?.catch(() => undefined);
      opened = undefined;
      await Promise.all([closing?.calls.close(), closing?.waits.close()]);
    },
  });
}

async function open(env: ProxyEnvironment): Promise<Connections> {
  // The plugin's bundle has only these two. By the name of its file, because Bun has its own "undici", whose agents send nothing.
  const { Agent, EnvHttpProxyAgent } = await import("undici/index.js");
  const options = { connect: { timeout: 10_000 }, connectTimeout: 10_000, keepAliveTimeout: 30_000 };
  const [httpProxy, httpsProxy] = [proxyOf(env, "http_proxy"), proxyOf(env, "https_proxy")];
  const noProxy = [setting(env, "no_proxy"), ...ownNames].join();
  const agent = (more: { connections?: number }): undici.Dispatcher =>
    httpProxy || httpsProxy
      ? new EnvHttpProxyAgent({ ...options, ...more, httpProxy, httpsProxy, noProxy })
      : new Agent({ ...options, ...more });
  return { calls: agent({ connections: 64 }), waits: agent({}) };
}

/** Names of this computer in URLs. */
const ownNames = ["localhost", "127.0.0.1", "[::1]"];

const setting = (env: ProxyEnvironment, name: string): string => env[name] ?? env[name.toUpperCase()] ?? "";

/** A proxy's URL, which may contain a password: no message quotes it. */
function proxyOf(env: ProxyEnvironment, name: string): string {
  const value = setting(env, name);
  if (value === "" || (URL.canParse(value) && /^(https?|socks5?):$/.test(new URL(value).protocol))) return value;
  throw Object.assign(new Error(`${name.toUpperCase()} is no URL of a proxy, such as http://proxy.example.com:3128`), {
    code: "UND_ERR_INVALID_ARG",
  });
}

/** The body as text. Reading stops once it is longer than any valid answer. */
const textOf = (body: Readable): Promise<string> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    body.on("data", (part: Buffer) => {
      size += part.length;
      if (size > largestAnswer) body.destroy(new AnswerTooLarge());
      else parts.push(part);
    });
    body.on("end", () => resolve(new TextDecoder().decode(Buffer.concat(parts))));
    body.on("error", reject);
  });

class AnswerTooLarge extends Error {
  constructor() {
    super(`the answer is larger than ${largestAnswer / 2 ** 20} MiB`);
  }
}

/** The outcome of a failure. */
function failed(cause: Error, { url }: Sent, env: ProxyEnvironment): Outcome {
  const proxied =
    !ownNames.includes(new URL(url).hostname) &&
    ["http_proxy", "https_proxy"].some((name) => setting(env, name) !== "");
  if (speaksTls(cause))
    return {
      kind: "unsent",
      cause: new Error("it speaks TLS, but the request did not use it"),
      lasting: true,
      proxied,
    };
  const { code = "" }: NodeJS.ErrnoException = cause;
  if (refusedCode.test(code)) return { kind: "unsent", cause, lasting: true, proxied };
  if (isUnreached(cause)) return { kind: "unsent", cause, lasting: false, proxied };
  const lasting = cause instanceof AnswerTooLarge || code === "UND_ERR_HEADERS_OVERFLOW";
  return { kind: "lost", cause, lasting, proxied };
}

/**
 * An established connection can also report an unreachable network: only a failure to connect proves that nothing was sent.
 */
function isUnreached({ code = "", syscall, message }: NodeJS.ErrnoException): boolean {
  return (
    unreachedCodes.has(code) ||
    (syscall === "connect" && ["EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"].includes(code)) ||
    // The destination that a proxy refused.
    (code === "UND_ERR_ABORTED" && message.startsWith("Proxy response"))
  );
}

/** Whether the answer was a TLS alert: then the other side understood nothing of the request. */
const speaksTls = (cause: Error & { data?: unknown }): boolean =>
  cause.name === "HTTPParserError" && typeof cause.data === "string" && cause.data.startsWith("\u0015\u0003");

/** The first failure of several addresses has the reason; the error around it does not. */
function rootOf(error: unknown): Error {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0];
  return error instanceof Error ? error : new Error(String(error));
}
