// The output of containers, as the engine keeps it.
import { Readable } from "node:stream";
import type Dockerode from "dockerode";
import type { LogLine, LogQuery } from "../runtime.ts";

const headerBytes = 8;
const longestLine = 2 ** 20;

/** The output without the frames in which an engine mixes the two streams; a terminal's has none. */
async function* contents(stream: AsyncIterable<Buffer>, isTerminal: boolean): AsyncGenerator<string> {
  if (isTerminal) {
    for await (const chunk of stream) yield chunk.toString();
    return;
  }
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const end = rest.length < headerBytes ? Infinity : headerBytes + rest.readUInt32BE(4);
      if (rest.length < end) break;
      yield rest.subarray(headerBytes, end).toString();
      rest = rest.subarray(end);
    }
  }
}

/** The lines that a container wrote, oldest first; with `follow`, until it ends. */
export async function* containerLogs(
  container: Dockerode.Container,
  machine: string,
  { since, lines, follow, signal }: LogQuery,
): AsyncGenerator<LogLine> {
  const { Config } = await container.inspect();
  const asked = {
    stdout: true,
    stderr: true,
    timestamps: true,
    abortSignal: signal,
    ...(since === undefined ? {} : { since: since / 1000 }),
    ...(lines === undefined ? {} : { tail: lines }),
  };
  const stream = follow
    ? await container.logs({ ...asked, follow: true })
    : Readable.from([await container.logs({ ...asked, follow: false })]);
  let rest = "";
  for await (const text of contents(stream as AsyncIterable<Buffer>, Config.Tty)) {
    const parts = `${rest}${text}`.split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) yield lineOf(machine, part);
    // Output may have no line breaks at all.
    if (rest.length > longestLine) {
      yield lineOf(machine, rest);
      rest = "";
    }
  }
  if (rest !== "") yield lineOf(machine, rest);
}

// Engines keep a longer line in parts of this size, each with its time.
const partBytes = 2 ** 14;
const timeOfPart = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z /g;

function lineOf(machine: string, text: string): LogLine {
  const [, time = "", line = ""] = /^(\S+) ?(.*?)\r?$/s.exec(text) ?? [];
  return { machine, time, text: line.length > partBytes / 4 ? line.replace(timeOfPart, "") : line };
}
