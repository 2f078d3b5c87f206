// The last lines of logs: how many lines, and how much text, one reader holds in memory.
import { expect, test } from "vitest";
import { followedLines } from "../../service/http/logLines.ts";
import { inOrder } from "../../service/http/logOrder.ts";
import { LogTail, mostText } from "../../service/http/logTail.ts";
import { ManualClock } from "../../service/index.ts";
import type { LogLine } from "../../service/runtime/runtime.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { withApp } from "./client.ts";

const line = (at: number, text = String(at)): LogLine => ({ machine: "a", time: new Date(at).toISOString(), text });
const timesOf = (tail: LogTail<LogLine>) => tail.lines().map(({ time }) => Date.parse(time));

test("however many lines are read, at most twice as many as requested are in memory", () => {
  const tail = new LogTail<LogLine>(100);
  let most = 0;
  for (let i = 0; i < 100_000; i++) {
    tail.add(line(i));
    most = Math.max(most, tail.size);
  }
  expect(most).toBe(200);
  expect(timesOf(tail)).toEqual(Array.from({ length: 100 }, (_, i) => 99_900 + i));
});

test("lines that arrive in another order are the last ones by their time", () => {
  const tail = new LogTail<LogLine>(3, inOrder);
  for (const start of [5000, 0, 9000, 2000]) for (let i = 0; i < 100; i++) tail.add(line(start + i));
  expect(timesOf(tail)).toEqual([9097, 9098, 9099]);
});

test("long lines leave out older ones, and the last line is always shown", () => {
  const tail = new LogTail<LogLine>(1000);
  const long = "x".repeat(mostText / 4);
  let most = 0;
  for (let i = 0; i < 100; i++) {
    tail.add(line(i, long));
    most = Math.max(most, tail.size);
  }
  expect(most).toBe(8);
  expect(timesOf(tail)).toEqual([96, 97, 98, 99]);
  tail.add(line(100, "y".repeat(mostText + 1)));
  expect(timesOf(tail)).toEqual([100]);
});

test("no lines are kept if none are requested", () => {
  const tail = new LogTail<LogLine>(0);
  tail.add(line(0));
  expect(tail.size).toBe(0);
  expect(tail.lines()).toEqual([]);
});

test("an engine waits while a client that follows does not read, after a few long lines already", async () => {
  const { service, machine } = await withApp({ clock: new ManualClock() });
  const { id } = await machine();
  const long = "x".repeat(mostText / 4);
  let read = 0;
  const gone = new AbortController();
  afterThisTest(() => gone.abort());
  async function* logs(): AsyncGenerator<LogLine> {
    while (!gone.signal.aborted) yield line(read++, long);
  }
  const query = { since: undefined, lines: 0, follow: true, signal: gone.signal };
  const followed = followedLines({ context: service.context, logs, sources: () => [{ id, name: "one" }], query });
  const next = async () => Date.parse((await followed.next()).value?.time ?? "");
  expect(await next()).toBe(0);
  // The engine has no pause of its own: it would have sent everything before this turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  expect(read).toBeLessThan(10);
  // It continues when the client reads again.
  for (let i = 1; i < 20; i++) expect(await next()).toBe(i);
});
