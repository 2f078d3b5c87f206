// The last lines of a program as a runtime reads them.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { lastLinesOf } from "../../service/runtime/lastLines.ts";
import type { LogLine } from "../../service/runtime/runtime.ts";

const lineOf = (text: string): LogLine => ({ machine: "m", time: "2026-01-01T00:00:00.000000000Z", text });

async function* written(...texts: readonly string[]): AsyncGenerator<LogLine> {
  for (const text of texts) yield await Promise.resolve(lineOf(text));
}

async function* unreadable(error?: Error): AsyncGenerator<LogLine> {
  yield lineOf("first");
  if (error) throw error;
  await new Promise(() => {});
}

const closed = new AbortController();
const read = async (logs: AsyncIterable<LogLine>) =>
  (await lastLinesOf(() => logs, closed.signal))?.map(({ text }) => text);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("lines that cannot be read are not waited for", async () => {
  expect(await read(unreadable(new Error("gone")))).toBeUndefined();
  const slow = read(unreadable());
  await vi.advanceTimersByTimeAsync(2000);
  expect(await slow).toBeUndefined();
});

test("the reading ends when the service closes, so that the next run reports the exit", async () => {
  const ending = new AbortController();
  const reading = lastLinesOf(async function* ({ signal }) {
    yield lineOf("first");
    ending.abort();
    signal.throwIfAborted();
  }, ending.signal);
  await expect(reading).rejects.toThrow();
});

test("a line whose beginning may be missing is left out", async () => {
  const few = Array.from({ length: 99 }, (_, i) => `line ${i}`);
  expect(await read(written(...few))).toEqual(few);
  expect(await read(written("rest of a longer line", ...few))).toEqual(few);
  const long = "x".repeat(200_000);
  expect(await read(written("rest", long, long, "last"))).toEqual([long, long, "last"]);
});
