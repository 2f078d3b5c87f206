// Error messages: the request, its answer, and the next step.
import type { Operation } from "../../api/operation.ts";
import { isObject } from "../../api/schema.ts";
import type { Config } from "./config.ts";
import { ApiError, MachinesError, NetworkError, type ErrorCode } from "./errors.ts";
import { quotable } from "../../api/printable.ts";
import { spellings } from "./spellings.ts";
import type { Answer, Outcome } from "./transport.ts";

/** Maximum characters of an answer that a message quotes. */
const quoted = 200;

/** The beginning of an unreadable answer. JSON is never quoted, because it may have secrets. */
export function excerpt({ text, headers }: Answer): string {
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") return `something encoded with ${encoding}, which was not requested`;
  const isPage = /^\s*</.test(text);
  if (!isPage && /[[{"]/.test(text)) return `${text.length} characters of JSON`;
  const plain = isPage ? (text.split(/[[{]/, 1)[0] ?? "") : text;
  const shown = plain.slice(0, quoted);
  return JSON.stringify(shown.length < text.length ? `${shown}…` : shown);
}

/** The service's text, from any of its error bodies (docs/interface.md#errors). */
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

/** Whether the service says that the request had no effect (docs/interface.md#errors). */
const hadNoEffect = ({ status, text }: Answer): boolean => status === 503 && text.includes("nothing was changed");

/** Whether it is unknown if the request took effect, and it must not be sent twice (docs/interface.md#errors). */
export const isAmbiguous = (operation: Operation, answer: Answer): boolean =>
  operation.repeat === "once" && (answer.status === 408 || answer.status >= 500) && !hadNoEffect(answer);

const mayHaveTakenEffect = "It may have taken effect; check that before you repeat it.";

/** The next step, by status. A more precise one takes precedence. */
const nextSteps: Readonly<Record<number, string>> = {
  404: "Is it still there, and is its name right?",
  408: "The service took too long; try again later.",
  409: "Something else holds its place or is at work on it; try again when that has ended, or choose another name.",
  410: "It was deleted; only existing objects can be requested.",
  412: "It is not in a state for this yet; try again when it is.",
  413: "Make it smaller: put large files into the image or on a volume.",
};

/** Why the service refused, where its own reason does not say it. */
const explanation = (status: number, { tokenSource }: Config): string =>
  status === 401 ? ` The token from ${tokenSource} is not known to the service, or has expired.` : "";

function nextStep(operation: Operation, answer: Answer, reason: string, config: Config): string {
  const { status, headers } = answer;
  if (status === 401) return config.identity ? "Run the command again; it gets another token." : "Set a new one.";
  if (status === 403)
    return `The token from ${config.tokenSource} may not do this: it is for another organization, App or network, or its role is too low (machines:organization is ${config.organization}).`;
  if (status >= 300 && status < 400) return "Redirects are not followed; set the endpoint to where it points.";
  if (status === 429) {
    const after = headers["retry-after"] === undefined ? "" : ` (Retry-After: ${headers["retry-after"].slice(0, 40)})`;
    return `The service still limits requests${after}; try again later, or with a smaller --parallel.`;
  }
  if (reason.includes("volume already claimed"))
    return "A volume is for one Machine: mount another volume, or take it from that Machine first. If no program has that Machine any more, `npx pulumi-machines orphans` shows how to import or delete it.";
  if (reason.includes("insufficient_capacity") || reason.includes("could not find a candidate host"))
    return "Try another region or a smaller guest.";
  if (reason.includes("quota_exceeded"))
    return "Delete what is not needed any more, or ask the operator of the service for a higher quota; a rollout needs room for new Machines beside the old ones.";
  if (isAmbiguous(operation, answer)) return mayHaveTakenEffect;
  if (status >= 500) return "The service failed; try again later.";
  return nextSteps[status] ?? "Correct what it names, and try again.";
}

/** Removes the token, in case the service quotes it. */
const withoutToken = (text: string, { token }: Config): string =>
  spellings(token ?? "").reduce((cleaned, spelling) => cleaned.replaceAll(spelling, "[token]"), text);

function requestIdOf({ headers }: Answer): string | undefined {
  const id = headers["svc-request-id"] ?? headers["fly-request-id"];
  return id === undefined ? undefined : quotable(id, 100);
}

/**
 * The error for an answer without success.
 * @param late the time limit, if that was why the request was not sent again
 */
export function answerError(
  operation: Operation,
  url: string,
  answer: Answer,
  config: Config,
  late?: string,
): ApiError {
  const reason = quotable(withoutToken(reasonOf(answer), config));
  const requestId = requestIdOf(answer);
  const code: ErrorCode = isAmbiguous(operation, answer) ? "ambiguous" : "api";
  const location =
    answer.status >= 300 && answer.status < 400 ? ` to ${quotable(answer.headers["location"] ?? "nowhere", 200)}` : "";
  const where = `${operation.method} ${url}${requestId === undefined ? "" : `, request ${requestId}`}`;
  return new ApiError({
    status: answer.status,
    operation: operation.id,
    reason,
    requestId,
    code,
    problem: `${operation.id} answered ${answer.status}${location}: ${reason} (${where}).${explanation(answer.status, config)}`,
    nextStep: `${endedBy(late)}${nextStep(operation, answer, reason, config)}`,
  });
}

/** The reason for an answer that was no JSON at all. */
export const notJson = "with something that is not JSON";

/** The error for a success with an unusable body; `what` states the reason. */
export function unreadable(
  operation: Operation,
  url: string,
  answer: Answer,
  what: string,
  config: Config,
): NetworkError {
  const ambiguous = operation.repeat === "once";
  const requestId = requestIdOf(answer);
  const found = withoutToken(excerpt(answer), config) + (requestId === undefined ? "" : ` (request ${requestId})`);
  const hint = ambiguous
    ? mayHaveTakenEffect
    : "Is the endpoint the base URL of a Machines Control Service, with nothing in between that changes its answers?";
  return new NetworkError(
    `${operation.id}: ${operation.method} ${url} answered ${answer.status} ${what}: ${found}. ${hint}`,
    { ambiguous, isNotJson: what === notJson },
  );
}

const endedBy = (limit: string | undefined): string =>
  limit === undefined ? "" : `The time limit of ${limit} ended the attempts. `;

/**
 * The error for a request without an answer.
 * @param late the time limit, if that was why the request ended or was not sent again
 */
export function unreachable(
  operation: Operation,
  url: string,
  outcome: Exclude<Outcome, Answer>,
  ambiguous: boolean,
  late: string | undefined,
): MachinesError {
  const { cause, kind, lasting } = outcome;
  const hint = ambiguous ? mayHaveTakenEffect : hintFor(outcome, url);
  const message = `${operation.id}: no answer from ${operation.method} ${url}: ${textOf(cause)}. ${endedBy(late)}${hint}`;
  // No retry of this run can succeed, so no request should wait as it would for a service that is down.
  return kind === "unsent" && lasting
    ? new MachinesError("configuration", message, { cause })
    : new NetworkError(message, { ambiguous, cause });
}

/** OpenSSL's message names its source files; the meaning is in `reason`. */
function textOf(cause: NodeJS.ErrnoException & { readonly reason?: unknown }): string {
  const { code = "", reason, message } = cause;
  if (code.startsWith("ERR_SSL_") && typeof reason === "string") return `${reason} (${code})`;
  const text = (message || code).split(/; if the root CA|\n/, 1)[0] ?? "";
  return code === "" || text.includes(code) || code.startsWith("UND_ERR") ? text : `${text} (${code})`;
}

function hintFor({ cause, proxied }: Exclude<Outcome, Answer>, url: string): string {
  const { code = "", message }: NodeJS.ErrnoException = cause;
  if (/^CERT_(HAS_EXPIRED|NOT_YET_VALID)/.test(code))
    return "Renew the service's certificate; or is the clock of this computer wrong?";
  if (code.startsWith("ERR_TLS_CERT_")) return "Use a name in the endpoint that the service's certificate is for.";
  if (/^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/.test(code))
    return "The service's certificate is not signed by an authority that this computer trusts. To trust your own authority, set NODE_EXTRA_CA_CERTS=<file.pem> in the environment.";
  if (code.startsWith("ERR_SSL_")) return "Does the service speak TLS there? If not, its endpoint begins with http://.";
  if (/speaks TLS/.test(message)) return "Its endpoint begins with https://.";
  const way = proxied
    ? " Requests go by HTTP_PROXY or HTTPS_PROXY, if these are right; NO_PROXY names hosts that are asked directly."
    : "";
  if (["ENOTFOUND", "EAI_AGAIN"].includes(code)) return `Is the host's name in the endpoint right?${way}`;
  const closed = url.startsWith("http:") && code === "UND_ERR_SOCKET";
  return `Is the endpoint right, and does the service run?${closed ? " If it speaks TLS, its endpoint begins with https://." : ""}${way}`;
}
