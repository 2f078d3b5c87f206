// Sends requests as the page of the console does: with its cookie and its key, from its own origin.
import { request as httpRequest } from "node:http";
import type { Answer } from "../client.ts";

type Headers = Readonly<Record<string, string>>;

/** Sends a request with headers that `fetch` does not allow. */
export function send(
  url: string,
  method: string,
  path: string,
  { body, headers = {} }: { readonly body?: unknown; readonly headers?: Headers } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url + path, { method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.once("error", reject).once("end", () => {
        const json = response.headers["content-type"]?.startsWith("application/json");
        const flat = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        const status = response.statusCode ?? 0;
        resolve({ status, headers: new Headers(flat), text, body: json ? JSON.parse(text) : undefined });
      });
    });
    sent.once("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Opens a session as the page does. */
export const signIn = (url: string, credential: unknown, headers: Headers = {}): Promise<Answer> =>
  send(url, "POST", "/console/session", { body: credential, headers: { origin: url, ...headers } });

/** The cookie that an answer sets, as a browser sends it. */
export const cookieOf = ({ headers }: Answer): string => headers.get("set-cookie")?.split(";", 1).join("") ?? "";

/** What a page sends with every request of the session that an answer has opened. */
export const sessionOf = (answer: Answer) => ({
  cookie: cookieOf(answer),
  "console-page-key": String(answer.body?.page_key),
});

/** Sends requests of a session. */
export const browser =
  (url: string, session: Headers) =>
  (method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer> =>
    send(url, method, path, { body, headers: { ...session, "sec-fetch-site": "same-origin", ...headers } });

/** A page of the console that is signed in with a code of the service, or with a token. */
export async function page(
  { url, service }: { readonly url: string; readonly service: { consoleCode(): string } },
  token?: string,
): Promise<ReturnType<typeof browser>> {
  const answer = await signIn(url, token === undefined ? { code: service.consoleCode() } : { token });
  if (answer.status !== 200) throw new Error(`sign-in was answered with ${answer.status}: ${answer.text}`);
  return browser(url, sessionOf(answer));
}
