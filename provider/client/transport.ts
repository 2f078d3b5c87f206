// One request, one outcome: the only file that talks HTTP.
import type * as undici from "undici";

/** What is sent. The headers hold the token: nothing may log them. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Milliseconds until the answer must have come. */
  readonly timeout: number;
  /** The service may hold the answer back; such requests never use up the connections of others. */
  readonly held: boolean;
  readonly signal: AbortSignal | undefined;
}

/** What came back. */
export type Outcome =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly text: string;
    }
  /** Nothing of the request reached the service. */
  | { readonly kind: "unsent"; readonly cause: Error }
  /** The request may have been received and its answer lost. */
  | { readonly kind: "lost"; readonly cause: Error };

/** Sends a request. `close` ends the connections that are kept for later ones; a request after it makes new ones. */
export type Transport = ((sent: Sent) => Promise<Outcome>) & { close(): Promise<void> };

const largestAnswer = 32 * 1024 * 1024;
const unsentCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_HAS_EXPIRED",
  "ERR_SSL_WRONG_VERSION_NUMBER",
]);

/** What requests are sent over: waits never use up the connections of calls. */
interface Connections {
  readonly request: typeof undici.request;
  readonly calls: undici.Dispatcher;
  readonly waits: undici.Dispatcher;
}

/** The transport over undici: connections are kept and reused, redirects are never followed. */
export function httpTransport(dispatcher?: undici.Dispatcher): Transport {
  const options = { connect: { timeout: 10_000 }, keepAliveTimeout: 30_000, maxResponseSize: largestAnswer };
  // Loaded with the first request: much of what a provider is started for needs none.
  let opened: Promise<Connections> | undefined;
  const open = async (): Promise<Connections> => {
    const { Agent, request } = await import("undici");
    const calls = dispatcher ?? new Agent({ ...options, connections: 64 });
    return { request, calls, waits: dispatcher ?? new Agent(options) };
  };
  const send = async (sent: Sent): Promise<Outcome> => {
    const { request, calls, waits } = await (opened ??= open());
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), sent.timeout);
    try {
      const answer = await request(sent.url, {
        method: sent.method,
        headers: sent.headers,
        body: sent.body ?? null,
        dispatcher: sent.held ? waits : calls,
        signal: sent.signal ? AbortSignal.any([sent.signal, timeout.signal]) : timeout.signal,
        headersTimeout: sent.timeout,
        bodyTimeout: sent.timeout,
      });
      const headers = Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
      );
      return { kind: "answer", status: answer.statusCode, headers, text: await answer.body.text() };
    } catch (error) {
      const cause = timeout.signal.aborted ? new Error(`no answer within ${sent.timeout / 1000} s`) : rootOf(error);
      return { kind: isUnsent(cause) ? "unsent" : "lost", cause };
    } finally {
      clearTimeout(timer);
    }
  };
  return Object.assign(send, {
    close: async () => {
      const closing = await opened;
      opened = undefined;
      await Promise.all([closing?.calls.close(), closing?.waits.close()]);
    },
  });
}

/** A connection that is up can report an unreachable network too: only a failure to connect proves that nothing was sent. */
function isUnsent(cause: NodeJS.ErrnoException): boolean {
  const { code = "", syscall } = cause;
  return (
    unsentCodes.has(code) || (syscall === "connect" && ["EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"].includes(code))
  );
}

/** The first failure of several tried addresses says what is wrong; the error around it says nothing. */
function rootOf(error: unknown): Error {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0];
  return error instanceof Error ? error : new Error(String(error));
}
