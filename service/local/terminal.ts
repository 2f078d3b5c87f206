// The local end of a terminal in a Machine: the keys of this terminal go there, and what the program writes comes here.
import type { IncomingMessage } from "node:http";
import { constants } from "node:os";
import { WebSocket } from "ws";
import { terminalProtocol } from "../http/terminalProtocol.ts";
import type { Running } from "../store/lock.ts";
import { Problem } from "./problem.ts";
import { trust } from "./send.ts";

/** The exit code if the connection ends before the program, as that of ssh. */
const lost = 255;
/** A message to the service may have 64 KiB. */
const longest = 2 ** 14;
/** Bytes that wait for the service. */
const mostWaiting = 2 ** 18;
const signals = ["SIGTERM", "SIGHUP", "SIGINT"] as const;

/** The size of this terminal; an output that is none is as large as usual. */
const sizeOf = ({ columns = 80, rows = 24 }: { readonly columns?: number; readonly rows?: number }) => ({
  columns: Math.max(1, columns),
  rows: Math.max(1, rows),
});

/** What a service says in text messages. */
interface Said {
  readonly opened?: true;
  readonly exit?: number | null;
  readonly problem?: string;
}

/** Finds `~.` at the beginning of a line, with which the user leaves. Returns what is before it. */
export function escapeFinder(): (typed: Buffer) => { readonly rest: Buffer; readonly leaves: boolean } {
  // 0: within a line, 1: at its beginning, 2: after ~ there.
  let state = 1;
  return (typed) => {
    for (const [i, byte] of typed.entries()) {
      const key = String.fromCharCode(byte);
      if (state === 2 && key === ".") return { rest: typed.subarray(0, i), leaves: true };
      state = key === "\r" || key === "\n" ? 1 : state === 1 && key === "~" ? 2 : 0;
    }
    return { rest: typed, leaves: false };
  };
}

/** Opens a terminal, and resolves with the exit code of its program. Throws a Problem if the service refuses. */
export async function connectTerminal(
  { url, certificate }: Running,
  token: string,
  path: string,
  words: readonly string[],
): Promise<number> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}${path}`, [terminalProtocol], {
    headers: { authorization: `Bearer ${token}`, host: "localhost" },
    perMessageDeflate: false,
    ...(certificate === undefined ? {} : trust(certificate)),
  });
  await connected(socket);
  return new Promise((resolve, reject) => follow(socket, words, { resolve, reject }));
}

function connected(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
    socket.once("unexpected-response", (request, response: IncomingMessage) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => (text += part));
      response.once("close", () => {
        request.destroy();
        reject(new Problem(errorIn(text) ?? `the service answered ${response.statusCode}`));
      });
    });
  });
}

function errorIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { readonly error?: string }).error;
  } catch {
    return undefined;
  }
}

interface Outcome {
  readonly resolve: (code: number) => void;
  readonly reject: (error: unknown) => void;
}

function follow(socket: WebSocket, words: readonly string[], { resolve, reject }: Outcome): void {
  const { stdin, stdout } = process;
  const leaves = escapeFinder();
  let code: number | undefined;
  let problem: string | undefined;
  const resize = (): void => socket.send(JSON.stringify(sizeOf(stdout)));
  const type = (typed: Buffer): void => {
    const { rest, leaves: leave } = stdin.isTTY ? leaves(typed) : { rest: typed, leaves: false };
    for (let at = 0; at < rest.length; at += longest) socket.send(rest.subarray(at, at + longest), more);
    if (socket.bufferedAmount > mostWaiting) stdin.pause();
    if (!leave) return;
    code = lost;
    socket.close();
  };
  const more = (): void => {
    if (stdin.isPaused() && socket.bufferedAmount < mostWaiting / 2) stdin.resume();
  };
  // A terminal has no end of its input; programs take this key for it.
  const typeEnd = (): void => socket.send("\x04", { binary: true });
  const end = (signal: NodeJS.Signals): void => {
    code = 128 + constants.signals[signal];
    socket.close();
  };
  // It is also left in raw mode by an error of this program.
  const restore = (): void => void (stdin.isTTY && stdin.setRawMode(false));
  const begin = (): void => {
    if (stdin.isTTY) stdin.setRawMode(true);
    stdin.on("data", type).once("end", typeEnd);
    stdout.on("resize", resize);
  };
  process.once("exit", restore);
  for (const signal of signals) process.once(signal, end);
  socket.on("error", () => {});
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      if (stdout.write(data)) return;
      socket.pause();
      return void stdout.once("drain", () => socket.resume());
    }
    const said = JSON.parse(data.toString()) as Said;
    if (said.opened) begin();
    if (said.exit !== undefined) code = said.exit ?? lost;
    problem = said.problem;
  });
  socket.once("close", () => {
    stdin.off("data", type).off("end", typeEnd).pause();
    stdout.off("resize", resize);
    for (const signal of signals) process.off(signal, end);
    process.off("exit", restore);
    restore();
    if (code !== undefined) return resolve(code);
    reject(new Problem(problem ?? "the connection to the service was lost"));
  });
  socket.send(JSON.stringify({ ...sizeOf(stdout), ...(words.length > 0 ? { command: words } : {}) }));
}
