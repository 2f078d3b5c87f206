// Failures in words: what was asked, what came back, and what to do next.
import type { Operation } from "../../api/operation.ts";
import { isObject } from "../../api/schema.ts";
import type { Config } from "../core/config.ts";
import { ApiError, NetworkError, type ErrorCode, type MachinesError } from "../core/errors.ts";
import type { Deadline } from "./clock.ts";
import type { Outcome } from "./transport.ts";

type Answer = Extract<Outcome, { kind: "answer" }>;

/** The beginning of an answer nobody could read. Of JSON, whole or cut off, nothing: it may hold what is secret. */
export const excerpt = ({ text }: Answer): string =>
  /^\s*[[{"]/.test(text)
    ? `${text.length} characters of JSON`
    : JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** The service's own text, in any of the shapes it comes in (bodies 1.1). */
function reasonOf(answer: Answer): string {
  let json: unknown;
  try {
    json = JSON.parse(answer.text);
  } catch {
    if (answer.text === "") return "no text";
    return /^\s*</.test(answer.text)
      ? "an HTML page; is the endpoint the base URL of a Machines Control Service?"
      : excerpt(answer);
  }
  if (isObject(json)) {
    for (const name of ["message", "error"]) {
      const text = json[name];
      if (typeof text === "string" && text !== "")
        return typeof json["status"] === "string" && name === "error" && !["unknown", "error"].includes(json["status"])
          ? `${text} (${json["status"]})`
          : text;
    }
  }
  return excerpt(answer);
}

function nextStep(operation: Operation, status: number, reason: string, config: Config): string {
  if (status === 401) return ` The token from ${config.tokenSource} is missing, wrong or expired; set a new one.`;
  if (status === 403)
    return ` The token from ${config.tokenSource} may not do this; is the organization (${config.organization}) right?`;
  if (status >= 300 && status < 400) return " Redirects are not followed; set the endpoint to where it points.";
  if (status === 429) return " The service's rate limit held on; try again later, or with a smaller --parallel.";
  if (reason.includes("insufficient_capacity") || reason.includes("could not find a candidate host"))
    return " Try another region or a smaller guest.";
  if (operation.repeat === "once" && (status === 408 || status >= 500)) {
    return " It may have taken effect all the same; look before it is repeated.";
  }
  return "";
}

/** The error for an answer that is no success. */
export function answerError(operation: Operation, url: string, answer: Answer, config: Config): ApiError {
  const reason = reasonOf(answer);
  const requestId = answer.headers["svc-request-id"] ?? answer.headers["fly-request-id"];
  const code: ErrorCode =
    operation.repeat === "once" && (answer.status === 408 || answer.status >= 500) ? "ambiguous" : "api";
  const location = answer.status >= 300 && answer.status < 400 ? ` to ${answer.headers["location"] ?? "nowhere"}` : "";
  const where = `${operation.method} ${url}${requestId === undefined ? "" : `, request ${requestId}`}`;
  return new ApiError({
    status: answer.status,
    operation: operation.id,
    reason,
    requestId,
    code,
    message: `${operation.id} answered ${answer.status}${location}: ${reason} (${where}).${nextStep(operation, answer.status, reason, config)}`,
  });
}

/** The error for a request without an answer. */
export function unreachable(
  operation: Operation,
  url: string,
  outcome: Exclude<Outcome, Answer>,
  ambiguous: boolean,
  deadline: Deadline,
): MachinesError {
  const { cause } = outcome;
  const code = (cause as NodeJS.ErrnoException).code ?? "";
  const hint = ambiguous
    ? "It may have taken effect all the same; look before it is repeated."
    : /CERT|TLS|SSL|EPROTO|SIGNATURE/.test(code)
      ? "Check the endpoint's certificate, or NODE_EXTRA_CA_CERTS for an authority of your own."
      : "Is the endpoint right, and does the service run?";
  const late = deadline.at !== Number.POSITIVE_INFINITY ? ` (allowed ${deadline.allowed})` : "";
  return new NetworkError(
    `${operation.id}: no answer from ${operation.method} ${url}: ${cause.message || code}${late}. ${hint}`,
    { ambiguous, cause },
  );
}
