// What a program wrote before it ended, for its exit event.
import type { LogLine, LogQuery } from "./runtime.ts";

/** Lines to read: more than are shown, because a long line is kept in parts that count as lines. */
const read = 100;
/** The shortest part of a line that is kept in parts. */
const shortestPart = 4096;
// ASSUMED: an exit is reported without the last lines if they cannot be read within two seconds.
const longestMs = 2000;

/** The last lines of a log, oldest first; undefined if they cannot be read soon. The first may be missing if there are many. */
export async function lastLinesOf(
  logs: (query: LogQuery) => AsyncIterable<LogLine>,
  closed: AbortSignal,
): Promise<readonly LogLine[] | undefined> {
  const late = new AbortController();
  const signal = AbortSignal.any([closed, late.signal]);
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      late.abort();
      resolve(undefined);
    }, longestMs);
  });
  try {
    const found = await Promise.race([
      collected(logs({ since: undefined, lines: read, follow: false, signal })),
      tooLate,
    ]);
    // The next run of the service reports the exit, with its lines.
    closed.throwIfAborted();
    return found;
  } finally {
    clearTimeout(timer);
  }
}

async function collected(lines: AsyncIterable<LogLine>): Promise<readonly LogLine[] | undefined> {
  const all: LogLine[] = [];
  try {
    for await (const line of lines) all.push(line);
  } catch {
    return undefined; // they may be gone already, and the exit is reported without them
  }
  const parts = all.reduce((sum, { text }) => sum + Math.ceil(text.length / shortestPart || 1), 0);
  // The first one may be the end of a longer line, where a secret may begin in the middle.
  return parts < read ? all : all.slice(1);
}
