// Every fault that the provider and the service have to stand has a test that names it.
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Faults by which users lose most: they are tried with the real CLI as well. */
const decisive = [
  "F01",
  "F03",
  "F08",
  "F10",
  "F17",
  "F18",
  "F21",
  "F33",
  "F37",
  "F39",
  "F40",
  "F41",
  "F42",
  "F44",
  "F45",
];
const all = Array.from({ length: 49 }, (_, i) => `F${String(i + 1).padStart(2, "0")}`);

/** What tests in a folder are called, and what their files say they are about. */
const namedIn = (pattern: string): string =>
  globSync(pattern)
    .flatMap((file) => readFileSync(file, "utf8").split("\n"))
    .filter((line) => /^\/\/|\b(describe|test)\b|^\s+\[?["'`]/.test(line))
    .join("\n");

test.each([
  ["a test", all, "test/**/*.test.ts"],
  ["a test with the real CLI", decisive, "test/e2e/*.test.ts"],
])("every fault has %s", (_, faults, pattern) => {
  const named = namedIn(pattern);
  expect(faults.filter((id) => !new RegExp(`\\b${id}\\b`).test(named))).toEqual([]);
});
