// The innermost handler: sends a request once, within its deadline, and reports it.
import { inSpan, type Span, type SpanOptions } from "../../api/tracing.ts";
import { MachinesError } from "./errors.ts";
import { isRead, type ClientParts, type Handler, type Request } from "./handler.ts";
import type { Outcome } from "./transport.ts";

/** Milliseconds that the service may take to end a held request after the timeout which the request carries. */
const holdMargin = 15_000;
const longestHold = 60_000;

/** Sends the request. The work that the deadline cancels sends nothing more; a change that was sent is waited for. */
export const send =
  ({ config, clock, transport, onRequest }: ClientParts): Handler<Outcome> =>
  async (request) => {
    const { operation, path, url, headers, body, deadline, attempt, countRequest } = request;
    deadline.signal?.throwIfAborted();
    const remaining = deadline.at - clock.now();
    if (remaining <= 0)
      throw new MachinesError(
        "wait-timeout",
        `${operation.id}: the time limit of ${deadline.allowed} ended before ${operation.method} ${url} was sent. ${deadline.advice ?? "The next up continues from here."}`,
      );
    countRequest();
    const outcome = await inSpan(`${operation.method} ${operation.path}`, spanOf(request), async (span) => {
      const received = await transport({
        method: operation.method,
        url,
        headers: span ? { ...headers, traceparent: span.traceparent } : headers,
        body,
        timeout: operation.held
          ? Math.min(remaining, longestHold) + holdMargin
          : Math.min(config.requestTimeout, Math.max(remaining, 1000)),
        held: operation.held ?? false,
        signal: isRead(request) ? deadline.signal : undefined,
      });
      if (span) noteOutcome(span, received);
      return received;
    });
    const status = outcome.kind === "answer" ? outcome.status : undefined;
    onRequest?.({ operation: operation.id, method: operation.method, path, status, attempt });
    if (deadline.signal?.aborted && isRead(request)) throw deadline.signal.reason;
    return outcome;
  };

/** A span shows the route only: the path, the query, the headers and the body may contain secrets. */
const spanOf = ({ operation, attempt }: Request): SpanOptions => ({
  kind: "client",
  attributes: {
    "http.request.method": operation.method,
    "url.template": operation.path,
    "http.request.resend_count": attempt,
    "machines.request": operation.id,
  },
});

function noteOutcome(span: Span, outcome: Outcome): void {
  if (outcome.kind !== "answer") return span.fail(outcome.kind);
  const { status, headers } = outcome;
  const id = headers["svc-request-id"];
  span.set({
    "http.response.status_code": status,
    // Another server may have sent it.
    "machines.request.id": id !== undefined && /^[\w-]{1,64}$/.test(id) ? id : undefined,
  });
  if (status >= 400) span.fail(String(status));
}
