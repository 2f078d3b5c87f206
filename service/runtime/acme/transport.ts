// The HTTP of the ACME client. The client's own forgets why a request has failed, and waits inside a request when it is limited.
import type acme from "acme-client";
import { request } from "undici";
import { codeOf } from "../errorCode.ts";

/** The authority did not answer, or with a fault of its own: why. */
export class Unreachable extends Error {}

/** The authority refused a request. */
export class AcmeRefusal extends Error {
  /** The kind of the error, without the prefix of ACME. */
  readonly kind: string;
  /** Whether there were too many requests. */
  readonly isLimit: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, kind: string, isLimit: boolean, retryAfterMs: number | undefined) {
    super(message);
    this.kind = kind;
    this.isLimit = isLimit;
    this.retryAfterMs = retryAfterMs;
  }
}

const timeout = 30_000;

interface Problem {
  readonly type?: string;
  readonly detail?: string;
}

/** Lets the client send by this transport. */
export function setTransport({ defaults }: typeof acme.axios): void {
  defaults.adapter = async (config) => {
    const { url = "", method = "get", data } = config;
    const response = await request(url, {
      method: method.toUpperCase(),
      headers: { ...(config.headers.toJSON() as Record<string, string>) },
      ...(data === undefined ? {} : { body: data as string }),
      headersTimeout: timeout,
      bodyTimeout: timeout,
    }).catch((error: unknown) => {
      throw new Unreachable(codeOf(error));
    });
    const text = await response.body.text().catch(() => "");
    const { statusCode: status, headers } = response;
    requireSuccess(status, text, headers["retry-after"]);
    return { data: text, status, statusText: String(status), headers: headers as Record<string, string>, config };
  };
}

function requireSuccess(status: number, text: string, retryAfter: string | string[] | undefined): void {
  if (status < 400) return;
  const { type = "", detail = `status ${status}` } = problemIn(text);
  const kind = type.replace(/^urn:ietf:params:acme:error:/, "");
  // The client gets a new nonce, and sends the request again.
  if (kind === "badNonce") return;
  if (status >= 500) throw new Unreachable(detail);
  throw new AcmeRefusal(detail, kind, status === 429 || kind === "rateLimited", pauseOf(retryAfter));
}

function problemIn(text: string): Problem {
  try {
    return JSON.parse(text) as Problem;
  } catch {
    return {};
  }
}

/** The milliseconds of a header `Retry-After`, which has seconds or a time. */
function pauseOf(header: string | string[] | undefined): number | undefined {
  const text = String(header ?? "");
  const pause = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(pause) && pause > 0 ? pause : undefined;
}
