// The hints at the end of the demo.
import { expect, test } from "vitest";
import { consoleHint, demoFor, hintsAfter, isUnchanged } from "../../tools/lib/demoHints.mjs";

const service = (word: string) => `npm run -s service -- ${word} --data .machines/service`;
const ended = (...changes: readonly object[]): string =>
  [{ preludeEvent: {} }, ...changes.map((resourceChanges) => ({ summaryEvent: { resourceChanges } }))]
    .map((event) => JSON.stringify(event))
    .join("\n");

test("changes are offered to be applied only if there are some", () => {
  expect(isUnchanged(ended({ same: 5 }))).toBe(true);
  expect(isUnchanged(ended({ same: 4, update: 1 }))).toBe(false);
  expect(isUnchanged(ended({ same: 4, update: 1 }, { same: 5 }))).toBe(true);
  expect(isUnchanged('{"summaryEvent":{"resou')).toBe(false);
  expect([false, true].map((is) => hintsAfter("preview", is, service))).toEqual([
    "To apply these changes: npm run demo",
    "There is nothing to apply: edit examples/quickstart/index.ts, then npm run demo -- preview",
  ]);
  expect([false, true].map((is) => hintsAfter("refresh", is, service))).toEqual([
    "To bring back what differs: npm run demo",
    "The service has what the stack has: there is nothing to bring back.",
  ]);
});

test("commands for the service name the folder of the demo's data", () => {
  expect(hintsAfter("up", false, service)).toContain("npm run -s service -- ls --data .machines/service   lists");
});

test("the last line is the address to open; the line before says how to get another", () => {
  const url = "http://127.0.0.1:4280/#code=abc";
  expect(consoleHint(url, service).split("\n").slice(-2)).toEqual([
    "See it in the browser, within five minutes (later with npm run -s service -- console --data .machines/service):",
    url,
  ]);
});

test("with containers, the hints name the runtime", () => {
  const hints = hintsAfter("up", false, service, demoFor("docker"));
  expect(hints).toContain("  npm run demo -- --runtime docker           again");
  expect(hints).toContain("  npm run demo -- destroy --runtime docker   deletes");
  expect(hintsAfter("preview", false, service, demoFor("docker"))).toBe(
    "To apply these changes: npm run demo -- --runtime docker",
  );
});
