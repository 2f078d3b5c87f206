// A terminal in a container. An engine opens one and connects it; it has no request to end the program in it. So a small script begins
// the program: it tells its process id first, with which another script ends everything that belongs to the terminal.
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { Refusal } from "../refusal.ts";
import type { TerminalRequest, TerminalSession } from "./runtime.ts";

/** A terminal as an engine connects it. */
export interface Connected {
  readonly output: Readable;
  readonly input: Writable;
  resize(columns: number, rows: number): Promise<void>;
  /** The exit code, once the output has ended; undefined if the engine does not say. */
  exitCode(): Promise<number | undefined>;
  /** Runs another command in the same container, until it ends or ten seconds have passed. */
  run(words: readonly string[]): Promise<unknown>;
  /** Gives up the connection. */
  close(): void;
}

// It waits for a line before the program begins, so that the terminal has its size by then. The user's line follows, so `read`
// leaves it to the program.
const begin = `
TERM=xterm-256color
export TERM
printf '%s\\n' "$$"
read -r go
unset go
if [ $# -gt 0 ]; then exec "$@"; fi
if command -v bash >/dev/null 2>&1; then exec bash; fi
exec sh
`;

/** The command that begins a terminal. */
export const terminalWords = ({ words }: TerminalRequest): string[] => ["sh", "-c", begin, "sh", ...words];

// Programs get the signal of a terminal that is gone, and have a second. The session of a process is the fourth word after its name,
// which is in parentheses.
const hangUp = `
session=$1
each() {
  for process in /proc/[0-9]*; do
    { read -r line < "$process/stat"; } 2>/dev/null || continue
    line=\${line##*) }
    line=\${line#* * * }
    [ "\${line%% *}" = "$session" ] && kill -s "$1" "\${process#/proc/}" 2>/dev/null
  done
}
each HUP
sleep 1
each KILL
`;

const hangUpWords = (session: string): string[] => ["sh", "-c", hangUp, "sh", session];

// ASSUMED: a shell begins within 20 seconds.
const beginMs = 20_000;
/** No line of the script is longer; an engine's reason may be. */
const longestLine = 4096;

/** Begins the program of a terminal. Throws a Refusal if the image has no shell. */
export async function beginTerminal(connected: Connected, request: TerminalRequest): Promise<TerminalSession> {
  const { output, input } = connected;
  const late = AbortSignal.timeout(beginMs);
  try {
    const session = await lineOf(output, late);
    if (!/^\d+$/.test(session)) throw noShell(session);
    await connected.resize(request.columns, request.rows);
    input.write("\n");
    // The terminal shows what is typed.
    await lineOf(output, late);
    return sessionOf(connected, session);
  } catch (error) {
    connected.close();
    throw error;
  }
}

function noShell(said: string): Refusal {
  const why = /not found|no such file|OCI runtime|exec/i.test(said) || said === "" ? "" : `: ${said}`;
  return new Refusal(412, {
    error: `failed_precondition: a terminal needs sh, which the image of the machine does not have${why}`,
  });
}

function sessionOf(connected: Connected, session: string): TerminalSession {
  const { output, input } = connected;
  let hasEnded = false;
  const exited = ended(output).then(() => {
    hasEnded = true;
    return connected.exitCode().catch(() => undefined);
  });
  let ending: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    // Also after the shell: a program in the background belongs to the terminal.
    await connected.run(hangUpWords(session)).catch(() => undefined);
    connected.close();
  };
  return {
    output,
    input,
    exited,
    resize(columns, rows) {
      // A program that has just ended has no size.
      if (!hasEnded) connected.resize(columns, rows).catch(() => undefined);
    },
    end: () => (ending ??= end()),
  };
}

/** Resolves when a stream has ended, however. */
export const ended = (stream: Readable): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => resolve();
    if (stream.destroyed || stream.readableEnded) return done();
    stream.once("end", done).once("close", done).once("error", done);
  });

/** The next line of a stream, without its end; the rest if the stream ends before. */
async function lineOf(stream: Readable, signal: AbortSignal): Promise<string> {
  let read: Buffer = Buffer.alloc(0);
  const over = ended(stream).then(() => "over");
  for (;;) {
    signal.throwIfAborted();
    const part = stream.read() as Buffer | null;
    if (part === null) {
      const more = await Promise.race([over, once(stream, "readable", { signal })]);
      if (more === "over" && stream.readableLength === 0) return textOf(read);
      continue;
    }
    read = Buffer.concat([read, part]);
    const at = read.indexOf("\n");
    if (at < 0 && read.length < longestLine) continue;
    const rest = at < 0 ? read.subarray(read.length) : read.subarray(at + 1);
    if (rest.length > 0) stream.unshift(rest);
    return textOf(at < 0 ? read : read.subarray(0, at));
  }
}

const textOf = (bytes: Buffer): string => bytes.toString().trim();
