// The innermost handler: sends a request once, within its deadline, and reports it.
import { MachinesError } from "./errors.ts";
import { isRead, type ClientParts, type Handler } from "./handler.ts";
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
        `${operation.id}: the ${deadline.allowed} this operation may take were over before ${operation.method} ${url} was sent. ${deadline.advice ?? "The next up goes on from here."}`,
      );
    countRequest();
    const outcome = await transport({
      method: operation.method,
      url,
      headers,
      body,
      timeout: operation.held
        ? Math.min(remaining, longestHold) + holdMargin
        : Math.min(config.requestTimeout, Math.max(remaining, 1000)),
      held: operation.held ?? false,
      signal: isRead(request) ? deadline.signal : undefined,
    });
    const status = outcome.kind === "answer" ? outcome.status : undefined;
    onRequest?.({ operation: operation.id, method: operation.method, path, status, attempt });
    if (deadline.signal?.aborted && isRead(request)) throw deadline.signal.reason;
    return outcome;
  };
