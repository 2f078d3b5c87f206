// What attacks do: send requests, and open connections that never end.
import { readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";

/** A service under attack. */
export interface Local {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

/** The answer to a request. */
export interface Sent {
  readonly status: number;
  readonly text: string;
}

/** Sends one request; status 0 stands for a connection that broke. */
export function send({ url, token }: Local, method: string, path: string, body = "", agent?: Agent): Promise<Sent> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, "content-length": Buffer.byteLength(body) };
    const sent = request(`${url}${path}`, { method, headers, ...(agent ? { agent } : {}) }, (answer) => {
      let text = "";
      answer.on("data", (part: Buffer) => (text = `${text}${part.toString()}`.slice(0, 200)));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.on("error", (error) => resolve({ status: 0, text: String(error) }));
    sent.end(body);
  });
}

/** Number of descriptors that a process has open. */
export const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** The connections of the attack that runs. */
export const sockets: Socket[] = [];

/** Opens connections that never close by themselves. */
export async function open(url: string, count: number, text: string): Promise<void> {
  const port = Number(new URL(url).port);
  for (let i = 0; i < count; i += 200)
    await Promise.all(
      Array.from({ length: Math.min(200, count - i) }, async () => {
        const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
        sockets.push(socket);
        await new Promise((done) => socket.once("connect", done).on("error", done));
        if (text !== "" && !socket.destroyed) socket.write(text);
      }),
    );
}

/** Sends this many requests over a few connections. */
export async function many(local: Local, count: number, path: (i: number) => string): Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  for (let i = 0; i < count; i += 200)
    await Promise.all(Array.from({ length: 200 }, (_, j) => send(local, "GET", path(i + j), "", agent)));
  agent.destroy();
  return "";
}
