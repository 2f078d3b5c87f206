// Sends a request to the service of a data folder.
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Running } from "../store/lock.ts";

/** A request to a running service. */
export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** Its answer. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Options that trust a certificate: it comes from a file that only its user can write, so its name does not matter. */
export const trust = (certificate: string) => ({
  ca: certificate,
  allowPartialTrustChain: true,
  checkServerIdentity: () => undefined,
});

/** Why a running service accepts no requests; undefined if it does. */
export async function readinessProblem(running: Running): Promise<string | undefined> {
  const request = { method: "GET", path: "/readyz", headers: { host: "localhost" }, body: undefined };
  try {
    const { status, text } = await sendTo(running, request);
    return status === 200 ? undefined : text;
  } catch (error) {
    return error instanceof Error ? error.message : "no answer";
  }
}

/** Sends a request, and reads the whole answer. */
export function sendTo({ url, certificate }: Running, { method, path, headers, body }: Sent): Promise<Received> {
  return new Promise((done, fail) => {
    const request = certificate === undefined ? httpRequest : httpsRequest;
    const options = { method, headers, ...(certificate === undefined ? {} : trust(certificate)) };
    const sent = request(`${url}${path}`, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => (text += part));
      response.once("error", fail);
      response.once("end", () => done({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.once("error", fail);
    sent.end(body);
  });
}
