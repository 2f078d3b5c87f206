// Which failed requests are sent again, and when. A request that may have taken effect is never repeated.
import type { Operation } from "../../api/operation.ts";
import { growingPause } from "../../api/growingPause.ts";
import { inSpan } from "../../api/tracing.ts";
import { answerError, isAmbiguous, unreachable } from "./errorMessages.ts";
import type { Deadline } from "./clock.ts";
import type { ClientParts, Handler } from "./handler.ts";
import type { Session } from "./session.ts";
import type { Answer, Outcome } from "./transport.ts";

/** The decision after an outcome. */
export type Verdict =
  | { readonly kind: "done" }
  | { readonly kind: "again"; readonly afterMs: number }
  /** Not applied; the service demands fewer requests. */
  | { readonly kind: "limited"; readonly afterMs: number }
  /** A failure whose effect is known: none. */
  | { readonly kind: "failed" }
  /** A failure that may have taken effect and must not be repeated. */
  | { readonly kind: "ambiguous" };

/** Statuses after which it is unknown whether the request took effect (docs/interface.md#errors). */
const unclear = (status: number): boolean => status === 408 || status >= 500;

/** Judges the outcome of attempt number `attempt` (from 0). */
export function judge(
  operation: Operation,
  outcome: Outcome,
  attempt: number,
  options: { retries: number; longest: () => number; random: () => number; now: () => number },
): Verdict {
  const again = (afterMs = backoff(options)): Verdict =>
    attempt < options.retries ? { kind: "again", afterMs } : { kind: "failed" };
  if (outcome.kind === "unsent") return outcome.lasting ? { kind: "failed" } : again();
  const repeatable = operation.repeat !== "once";
  if (outcome.kind === "lost") {
    if (!repeatable) return { kind: "ambiguous" };
    return outcome.lasting ? { kind: "failed" } : again();
  }
  const { status, headers } = outcome;
  if (status === 429) {
    const verdict = again(retryAfter(headers["retry-after"], options.now()));
    return verdict.kind === "again" ? { ...verdict, kind: "limited" } : verdict;
  }
  if (unclear(status) && !(operation.held && status === 408)) {
    if (isAmbiguous(operation, outcome)) return { kind: "ambiguous" };
    return again(retryAfter(headers["retry-after"], options.now()));
  }
  return status >= 200 && status < 300 ? { kind: "done" } : { kind: "failed" };
}

/** Full jitter, so that clients which failed together do not come back together. */
const backoff = ({ longest, random }: { readonly longest: () => number; readonly random: () => number }): number =>
  Math.round(random() * longest()) + 50;

/** Milliseconds that a `Retry-After` header requires, in seconds or as an HTTP date; undefined without a usable one. */
export function retryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  // A date must have the form of one, because `Date.parse` accepts "-5" too.
  const date = /^[A-Za-z]{3},/.test(header.trim()) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Milliseconds by which a timer may be early. */
const earlyTimer = 10;

/** Whether the deadline ended the request, or leaves no time for the next one. */
function endedByDeadline(verdict: Verdict, outcome: Outcome, now: number, { at }: Deadline): boolean {
  const again = verdict.kind === "again" || verdict.kind === "limited";
  if (!again && (outcome.kind === "answer" || outcome.lasting)) return false;
  return now + (again ? verdict.afterMs : 0) >= at - earlyTimer;
}

/** Sends a request again while that is safe and can help. @throws ApiError or NetworkError with the last failure. */
export const withRetries =
  (
    { config, clock }: Pick<ClientParts, "config" | "clock">,
    { circuitBreaker, rateLimiter }: Pick<Session, "circuitBreaker" | "rateLimiter">,
    next: Handler<Outcome>,
  ): Handler<Answer> =>
  async (request) => {
    const { operation, url, deadline, token } = request;
    const longest = growingPause(200, 5000);
    const options = { retries: config.retries, longest, random: () => clock.random(), now: () => clock.now() };
    const isInTime = (milliseconds: number): boolean => clock.now() + milliseconds < deadline.at;
    const attempting = {};
    try {
      for (let attempt = 0; ; attempt++) {
        const outcome = await next({ ...request, attempt });
        const verdict = judge(operation, outcome, attempt, options);
        if (verdict.kind === "limited") {
          rateLimiter.limit(request, verdict.afterMs);
          if (isInTime(verdict.afterMs)) continue;
        }
        if (verdict.kind === "again" && isInTime(verdict.afterMs)) {
          const { afterMs } = verdict;
          const mayRepeat = () => circuitBreaker.mayRepeat(attempting, afterMs, deadline);
          if (await inSpan("pause before the next attempt", {}, mayRepeat)) continue;
        }
        if (verdict.kind === "done" && outcome.kind === "answer") return outcome;
        const late = endedByDeadline(verdict, outcome, clock.now(), deadline) ? deadline.allowed : undefined;
        if (outcome.kind === "answer") throw answerError(operation, url, outcome, { ...config, token }, late);
        throw unreachable(operation, url, outcome, verdict.kind === "ambiguous", late);
      }
    } finally {
      circuitBreaker.ended(attempting);
    }
  };
