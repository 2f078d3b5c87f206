// Requests through the proxy.
import { Agent, request as sendHttp } from "node:http";
import { Agent as SecureAgent, request as sendHttps } from "node:https";

/** The answer to a request. */
export interface Got {
  readonly status: number;
  readonly text: string;
}

/** Sends a request to an App through the proxy at a port; by HTTPS with the certificate `ca` of its authority. */
export const fetchFrom = (
  port: number,
  path: string,
  {
    app = "web",
    host = `${app}.localhost`,
    method = "GET",
    body,
    agent = false,
    ca,
  }: { app?: string; host?: string; method?: string; body?: string; agent?: Agent | false; ca?: string } = {},
): Promise<Got> =>
  new Promise((resolve, reject) => {
    const headers = { host, ...(body === undefined ? {} : { "content-length": body.length }) };
    const options = { host: "127.0.0.1", port, path, method, headers, agent };
    const request = ca === undefined ? sendHttp(options) : sendHttps({ ...options, servername: host, ca });
    request.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => (text += part));
      response.once("error", reject);
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    request.once("error", reject);
    request.end(body);
  });

/** What a load has met. */
export interface Load {
  answered: number;
  /** What was not an answer with status 200. */
  readonly lost: string[];
  /** The bodies of the answers, and how often each came. */
  readonly texts: Map<string, number>;
}

/** Sends requests to an App or a hostname from several clients until it is stopped; by HTTPS with the certificate `ca`. */
export function load(
  port: number,
  path: string,
  to: { readonly app?: string; readonly host?: string; readonly ca?: string },
  clients = 8,
): { readonly seen: Load; stop(): Promise<Load> } {
  const seen: Load = { answered: 0, lost: [], texts: new Map() };
  const agent = new (to.ca === undefined ? Agent : SecureAgent)({ keepAlive: true });
  const over = new AbortController();
  const client = async (): Promise<void> => {
    while (!over.signal.aborted) {
      try {
        const { status, text } = await fetchFrom(port, path, { ...to, agent });
        if (status === 200) {
          seen.answered++;
          seen.texts.set(text, (seen.texts.get(text) ?? 0) + 1);
        } else seen.lost.push(`${status} ${text}`);
      } catch (error) {
        seen.lost.push(String(error));
      }
    }
  };
  const all = Promise.all(Array.from({ length: clients }, client));
  return {
    seen,
    async stop() {
      over.abort();
      await all;
      agent.destroy();
      return seen;
    },
  };
}
