// How the console reads lines of logs, and keeps them in bounds.
import fc from "fast-check";
import { expect, test } from "vitest";
import { added, empty, paused, resumed, type Buffer } from "../../../service/console/app/logBuffer.ts";
import { isAtLeast, levels, readLine } from "../../../service/console/app/logLine.ts";
import { hueOf } from "../../../service/console/hue.ts";

const json = (value: object) => readLine(JSON.stringify(value));

test.each([
  [
    { level: "error", msg: "lost" },
    { level: "error", message: "lost", fields: "" },
  ],
  [
    { level: 30, time: 1, pid: 7, msg: "up", port: 80 },
    { level: "info", message: "up", fields: "pid=7 port=80" },
  ],
  [
    { level: 60, message: "dead" },
    { level: "error", message: "dead", fields: "" },
  ],
  [
    { level: 40, msg: "w" },
    { level: "warn", message: "w", fields: "" },
  ],
  [
    { level: 20, msg: "d" },
    { level: "debug", message: "d", fields: "" },
  ],
  [
    { severity: "WARNING", message: "low", a: { b: [1] } },
    { level: "warn", message: "low", fields: 'a={"b":[1]}' },
  ],
  [
    { lvl: "dbug", msg: "x" },
    { level: undefined, message: "x", fields: "lvl=dbug" },
  ],
  // Programs that count from 0 to 7 do so in either direction.
  [
    { level: 3, msg: "x" },
    { level: undefined, message: "x", fields: "level=3" },
  ],
  [
    { level: "toString", msg: "x" },
    { level: undefined, message: "x", fields: "level=toString" },
  ],
  [
    { event: "paid", n: null },
    { level: undefined, message: "", fields: "event=paid n=null" },
  ],
])("the fields of JSON are read: %j", (line, read) => {
  expect(json(line)).toEqual(read);
});

test.each([
  ["ERROR cannot connect", "error"],
  ["[warn] low on memory", "warn"],
  ["[ERROR]: failed", "error"],
  ["error: failed", "error"],
  ["WARN  cache is cold", "warn"],
  ["2026-01-01T00:00:00.123Z INFO listening", "info"],
  ["2026-01-01 00:00:00,123 DEBUG query", "debug"],
  ["2026/01/01 00:00:00 [error] 12#0: upstream timed out", "error"],
  ["2026-01-01 00:00:00.000 UTC [42] LOG:  ready", "info"],
  ["2026-01-01 00:00:00.000 UTC [42] FATAL:  no such role", "error"],
  ['time=2026-01-01T00:00:00Z level=warn msg="slow"', "warn"],
  ["TypeError: x is not a function", "error"],
  ["\u001b[31mERROR\u001b[0m in red", "error"],
  ["<info> hello", "info"],
  ["info about the error", undefined],
  ["Errors are rare", undefined],
  ["listening on 8080", undefined],
  ["[12:00] lunch", undefined],
  ["INFORMAL talk", undefined],
  ['{"broken": ', undefined],
  ["{}", undefined],
  ["", undefined],
])("the level of %j is %s", (text, level) => {
  expect(readLine(text).level).toBe(level);
});

test("every line can be read, and a line that is no JSON stays as it is", () => {
  const texts = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.json(),
    fc.object().map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const { level, message, fields } = readLine(text);
      if (level !== undefined) expect(levels).toContain(level);
      if (fields === undefined && !text.includes("\u001b")) expect(message).toBe(text);
    }),
  );
  // With a line this long, a pattern that looks at each character more than a few times does not end within the test's limit.
  for (const part of ["[", "{", " ", "2026-01-01 00:00:00 ", "A", "level=", "\u001b["])
    readLine(part.repeat(2_000_000));
});

test("a level leaves those that are worse, and no line without a level", () => {
  expect(levels.filter((level) => isAtLeast(level, "warn"))).toEqual(["error", "warn"]);
  expect(levels.filter((level) => isAtLeast(level, "debug"))).toEqual([...levels]);
  expect(isAtLeast(undefined, "debug")).toBe(false);
});

test("lines wait in bounds while the page is paused, and none is lost without being counted", () => {
  const most = 10;
  const step = fc.oneof(fc.nat(8), fc.constantFrom("pause" as const, "resume" as const));
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      let buffer: Buffer<number> = empty;
      let next = 0;
      let shownBefore: readonly number[] = [];
      for (const one of steps) {
        const before = buffer;
        if (one === "pause") buffer = paused(buffer);
        else if (one === "resume") buffer = resumed(buffer, most);
        else
          buffer = added(
            buffer,
            Array.from({ length: one }, () => next++),
            most,
          );
        const { shown, waiting, lost } = buffer;
        expect(shown.length).toBeLessThanOrEqual(most);
        expect(waiting?.length ?? 0).toBeLessThanOrEqual(most);
        if (before.waiting !== undefined && one !== "resume") expect(shown).toEqual(shownBefore);
        // The latest lines are without a gap.
        const kept = [...(waiting ?? shown)];
        expect(kept).toEqual(kept.map((_, i) => next - kept.length + i));
        if (waiting !== undefined) expect((shown.at(-1) ?? -1) + 1 + lost + waiting.length).toBe(next);
        shownBefore = shown;
      }
    }),
  );
});

test("the colour of a Machine is the same for the same id, and several are in use", () => {
  const ids = Array.from({ length: 100 }, (_, i) => (i * 7919).toString(16).padStart(14, "0"));
  expect(ids.map((id) => hueOf(id, 8))).toEqual(ids.map((id) => hueOf(id, 8)));
  expect(new Set(ids.map((id) => hueOf(id, 8))).size).toBe(8);
});
