// Requests over kept connections. `fetch` would add more than the service takes.
import { Agent, request } from "node:http";
import type { Local } from "./command.ts";

const agent = new Agent({ keepAlive: true });

/** Sends a request and returns the text of its answer. Throws if the answer is an error. */
export const ask = (
  { url, token }: Pick<Local, "url" | "token">,
  path: string,
  method = "GET",
  body?: object,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = request(url + path, { method, agent, headers: { authorization: `Bearer ${token}` } }, (answer) => {
      const parts: Buffer[] = [];
      answer
        .on("data", (part: Buffer) => parts.push(part))
        .once("error", reject)
        .once("end", () => {
          const text = Buffer.concat(parts).toString();
          const { statusCode = 0 } = answer;
          if (statusCode < 300) resolve(text);
          else reject(new Error(`${method} ${path} answered ${statusCode}: ${text.slice(0, 200)}`));
        });
    });
    sent.once("error", reject).end(body && JSON.stringify(body));
  });
