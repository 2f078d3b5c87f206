// A client of terminals, for tests: it types, and waits for what the program shows.
import { once } from "node:events";
import { expect } from "vitest";
import { WebSocket, type ClientOptions } from "ws";
import { terminalProtocol } from "../../service/http/terminalProtocol.ts";
import { afterThisTest } from "./leftovers.ts";

/** A service, as a client reaches it. */
export interface Reached {
  readonly url: string;
  readonly token: string;
}

/** What a client says of itself. */
export interface Asked extends ClientOptions {
  readonly protocols?: readonly string[];
}

/** The address of the terminal of a Machine. */
export const terminalPath = (machine: string, app = "web"): string => `/local/apps/${app}/machines/${machine}/terminal`;

/** Connects. Resolves with the connection, or with the status and the error of the refusal. */
export async function connectTo(
  { url, token }: Reached,
  path: string,
  { protocols = [terminalProtocol], ...options }: Asked = {},
): Promise<{ readonly socket: WebSocket } | { readonly status: number; readonly error: string }> {
  const headers = { ...(options.headers ? {} : { authorization: `Bearer ${token}` }), ...options.headers };
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}${path}`, [...protocols], { ...options, headers });
  afterThisTest(() => socket.terminate());
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve({ socket }));
    socket.once("error", reject);
    socket.once("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (part: Buffer) => (text += part.toString()));
      response.once("close", () =>
        resolve({ status: response.statusCode ?? 0, error: (JSON.parse(text) as { error: string }).error }),
      );
    });
  });
}

/** Opens a terminal. */
export async function openTerminal(service: Reached, path: string, first: object = {}, options: Asked = {}) {
  const connected = await connectTo(service, path, options);
  if (!("socket" in connected)) throw new Error(`${connected.status} ${connected.error}`);
  const { socket } = connected;
  let shown = "";
  let bytes = 0;
  const said: Record<string, unknown>[] = [];
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      bytes += data.length;
      shown = (shown + data.toString()).slice(-100_000);
    } else said.push(JSON.parse(data.toString()) as Record<string, unknown>);
  });
  const closed = once(socket, "close") as Promise<[number]>;
  socket.send(JSON.stringify({ columns: 80, rows: 24, ...first }));
  return {
    socket,
    said,
    shown: () => shown,
    bytes: () => bytes,
    type: (text: string) => socket.send(text, { binary: true }),
    resize: (columns: number, rows: number) => socket.send(JSON.stringify({ columns, rows })),
    /** Waits until the program has shown this, and forgets what was shown. */
    async shows(what: string | RegExp): Promise<void> {
      await expect.poll(() => shown, { interval: 10 }).toMatch(what);
      shown = "";
    },
    /** Waits until the connection is closed, and returns the last thing that the service said. */
    async ended() {
      const [code] = await closed;
      return { code, last: said.at(-1) };
    },
  };
}
