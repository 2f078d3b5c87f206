// The order of the lines of several Machines: by time as far as lines arrive in time, and none is held back for ever.
import fc from "fast-check";
import { expect, test } from "vitest";
import { inOrder, instantOf, LogOrder, waitMs } from "../../service/http/logOrder.ts";
import type { LogLine } from "../../service/runtime/runtime.ts";

const timeOf = (ms: number): string => new Date(ms).toISOString();

test("times are compared as times, whatever their digits and their zone", () => {
  const times = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.1Z",
    "2026-01-01T00:00:00.12Z",
    "2026-01-01T00:00:00.123456789Z",
    "2026-01-01T02:00:00.2+02:00",
    "2026-01-01T00:00:01Z",
  ];
  expect([...times].reverse().sort((a, b) => (instantOf(a) < instantOf(b) ? -1 : 1))).toEqual(times);
  expect(instantOf("2026-01-01T00:00:00.100Z")).toBe(instantOf("2026-01-01T00:00:00.1Z"));
  // What is no time is before all, and no mistake.
  expect(instantOf("") < instantOf("1970-01-01T00:00:00Z")).toBe(true);
});

interface Written {
  readonly machine: string;
  readonly at: number;
  /** Milliseconds until it arrives. */
  readonly delay: number;
}

/** Lines that Machines write, each with the time until it arrives; the lines of one Machine arrive in their order. */
const written = (longest: number): fc.Arbitrary<readonly (Written & { readonly arrives: number })[]> =>
  fc
    .array(
      fc.record({
        machine: fc.constantFrom("a", "b", "c"),
        at: fc.integer({ min: 0, max: 5000 }),
        delay: fc.integer({ min: 0, max: longest }),
      }),
      { maxLength: 60 },
    )
    .map((all) => {
      const latest = new Map<string, number>();
      return all
        .toSorted((a, b) => a.at - b.at)
        .map((one) => {
          const arrives = Math.max(one.at + one.delay, latest.get(one.machine) ?? 0);
          latest.set(one.machine, arrives);
          return { ...one, arrives };
        })
        .toSorted((a, b) => a.arrives - b.arrives);
    });

interface Shown extends LogLine {
  readonly shown: number;
}

/** Lets the lines arrive, with a look at each moment when something is due. */
function shownOf(lines: readonly (Written & { readonly arrives: number })[]): readonly Shown[] {
  const order = new LogOrder<LogLine>();
  const shown: Shown[] = [];
  let now = 0;
  const take = (): void => {
    for (let line = order.take(now); line; line = order.take(now)) shown.push({ ...line, shown: now });
  };
  const passUntil = (end: number): void => {
    for (;;) {
      const dueIn = order.dueIn(now);
      if (dueIn === undefined || now + dueIn >= end) break;
      now += dueIn;
      take();
    }
    now = Math.max(now, end);
    take();
  };
  for (const [i, { machine, at, arrives }] of lines.entries()) {
    passUntil(arrives);
    order.add({ machine, time: timeOf(at), text: String(i) }, now);
  }
  passUntil(now + 10 * waitMs);
  expect(order.size).toBe(0);
  expect(order.dueIn(now)).toBe(undefined);
  return shown;
}

test("lines that arrive within the wait are in the order of their time over all Machines", () => {
  fc.assert(
    fc.property(written(waitMs - 1), (lines) => {
      const times = shownOf(lines).map(({ time }) => time);
      expect(times).toEqual([...times].sort());
    }),
  );
});

test("whenever lines arrive, each is shown once, within the wait, and those of one Machine in their order", () => {
  fc.assert(
    fc.property(written(20 * waitMs), (lines) => {
      const shown = shownOf(lines);
      expect(shown.map(({ text }) => Number(text)).sort((a, b) => a - b)).toEqual(lines.map((_, i) => i));
      for (const { text, shown: at } of shown) {
        const { arrives = Number.NaN } = lines[Number(text)] ?? {};
        expect(at).toBeGreaterThanOrEqual(arrives);
        expect(at).toBeLessThanOrEqual(arrives + waitMs);
      }
      for (const machine of ["a", "b", "c"]) {
        const own = shown.filter((line) => line.machine === machine).map(({ text }) => Number(text));
        expect(own).toEqual([...own].sort((a, b) => a - b));
      }
    }),
  );
});

test("lines of a Machine whose clock was set back stay in their order", () => {
  const order = new LogOrder<LogLine>();
  for (const [text, at] of Object.entries({ first: 2000, second: 1000, third: 1500 }))
    order.add({ machine: "a", time: timeOf(at), text }, 0);
  order.add({ machine: "b", time: timeOf(1700), text: "other" }, 0);
  const texts = [];
  for (let line = order.take(waitMs); line; line = order.take(waitMs)) texts.push(line.text);
  expect(texts).toEqual(["other", "first", "second", "third"]);
});

test("the lines of a Machine that is alone wait for nothing", () => {
  const order = new LogOrder<LogLine>();
  order.add({ machine: "a", time: timeOf(0), text: "now" }, 0);
  expect(order.take(0)).toBe(undefined);
  expect(order.take(0, true)?.text).toBe("now");
  expect(order.take(0, true)).toBe(undefined);
});

test("past lines of the same time stay as they are", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 5 })), (times) => {
      const sorted = inOrder(times.map((at, i) => ({ machine: "a", time: timeOf(at), text: String(i) })));
      const keys = sorted.map(({ time, text }) => Date.parse(time) * 1000 + Number(text));
      expect(keys).toEqual([...keys].sort((a, b) => a - b));
    }),
  );
});
