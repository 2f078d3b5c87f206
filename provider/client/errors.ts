// The errors that users see. A message says what failed, on what, and what to do next; none ever quotes a secret.
import { docsUrl } from "../../api/docsUrl.ts";
import { printable } from "../../api/printable.ts";

/** The kinds of failures; each has a section in docs/troubleshooting.md, which the message names. */
export const errorCodes = [
  "configuration",
  "invalid-input",
  "api",
  "network",
  "ambiguous",
  "lease-held",
  "stale-version",
  "stale-plan",
  "wait-timeout",
  "machine-failed",
  "missing-apps",
  "cancelled",
  "refused",
] as const;

/** Kinds of failure. */
export type ErrorCode = (typeof errorCodes)[number];

/** Base of every error this package throws on purpose. */
export class MachinesError extends Error {
  readonly code: ErrorCode;
  /** The last lines that a failed program wrote; the text for the user ends with them. */
  lastLines: readonly string[] = [];
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(printable(message), options);
    this.code = code;
    this.name = "MachinesError";
  }
  /** The error to report if this one left work that another failure prevents from being repeated. */
  replacedBy(failed: MachinesError): MachinesError {
    return failed;
  }
}

/** The service answered, but not with success. */
export class ApiError extends MachinesError {
  readonly status: number;
  readonly operation: string;
  /** The service's own text. */
  readonly reason: string;
  readonly requestId: string | undefined;
  /** What failed and why, without the next step. */
  readonly problem: string;
  constructor(details: {
    status: number;
    operation: string;
    reason: string;
    requestId: string | undefined;
    problem: string;
    nextStep: string;
    code?: ErrorCode;
  }) {
    super(details.code ?? "api", `${details.problem} ${details.nextStep}`);
    this.name = "ApiError";
    this.problem = details.problem;
    this.status = details.status;
    this.operation = details.operation;
    this.reason = details.reason;
    this.requestId = details.requestId;
  }
}

/** No answer, or an unreadable one. `ambiguous` means that the request may have been applied. */
export class NetworkError extends MachinesError {
  readonly ambiguous: boolean;
  /** Whether there was an answer that is not JSON, such as a page. */
  readonly isNotJson: boolean;
  constructor(message: string, details: { ambiguous: boolean; isNotJson?: boolean; cause?: unknown }) {
    super(details.ambiguous ? "ambiguous" : "network", message, { cause: details.cause });
    this.name = "NetworkError";
    this.ambiguous = details.ambiguous;
    this.isNotJson = details.isNotJson ?? false;
  }
}

/** Whether an answer was a 404, or the 410 of a cluster that is gone. */
export const isNotFound = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 404 || error.status === 410);

/** Whether a failed request may have been applied. */
export const isAmbiguous = (error: unknown): boolean => error instanceof MachinesError && error.code === "ambiguous";

/** The message of any thrown value. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A message with the address of the section about its kind. */
export const withDocs = (message: string, code: ErrorCode): string =>
  `${message} (${docsUrl(`troubleshooting.md#${code}`)})`;

/** Text of any thrown value for the user, with a link to the docs and the last lines of the program that failed. */
export function messageForUser(error: unknown): string {
  if (!(error instanceof MachinesError)) return messageOf(error);
  const lines = lastLinesOf(error);
  const output = lines.length === 0 ? "" : `\nIts program wrote last:${lines.map((line) => `\n  ${line}`).join("")}`;
  return `${withDocs(error.message, error.code)}${output}`;
}

/** The lines of the failed program that an error is about, also where it was reported by another error. */
function lastLinesOf(error: unknown): readonly string[] {
  if (!(error instanceof MachinesError)) return [];
  return error.lastLines.length > 0 ? error.lastLines : lastLinesOf(error.cause);
}
