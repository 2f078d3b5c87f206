// The command line of the demo, and the hints at its end.
import { expect, test } from "vitest";
import { readArguments } from "../../tools/lib/demoArguments.mjs";
import { consoleHint, demoFor, hintAfterFailure, hintsAfter, isUnchanged } from "../../tools/lib/demoHints.mjs";

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

test("options of Pulumi follow the word, and the runtime can be anywhere", () => {
  const read = (line: string) => readArguments(line.split(" ").filter((word) => word !== ""));
  const simulated = { runtime: "simulated", problem: undefined };
  expect(read("")).toEqual({ command: "up", options: [], ...simulated });
  expect(read("preview --diff")).toEqual({ command: "preview", options: ["--diff"], ...simulated });
  expect(read("--diff")).toEqual({ command: "up", options: ["--diff"], ...simulated });
  const docker = { command: "up", runtime: "docker", options: ["--target", "urn"], problem: undefined };
  for (const line of ["up --runtime docker --target urn", "--runtime=docker up --target urn"])
    expect(read(line)).toEqual(docker);
});

test("what the demo does not take is named", () => {
  const problem = (...args: string[]) => readArguments(args).problem;
  const takes =
    "npm run demo takes one word, up, preview, refresh, destroy, stop (up when left out), then options of Pulumi such as --diff, and --runtime";
  expect(problem("previw")).toBe(`${takes}; not "previw".`);
  expect(problem("up", "preview")).toBe(`${takes}; not "preview" after up.`);
  expect(problem("up", "--runtime", "podman")).toBe('--runtime is simulated or docker; not "podman".');
  expect(problem("stop", "--diff")).toBe('npm run demo -- stop takes no options; not "--diff".');
  for (const option of ["--stack", "--stack=dev", "-s", "--cwd", "--config-file=x"])
    expect(problem("up", option)).toBe(`npm run demo has a stack of its own, so it does not take ${option}.`);
});

test("after a failure, only a command that changes something can be continued", () => {
  const hint = (command: string) => hintAfterFailure(command, 255, demoFor("docker"));
  expect(hint("preview")).toBe(
    "\npulumi preview ended with exit code 255. Nothing was changed. Correct what it names, then run npm run demo -- preview --runtime docker again.",
  );
  expect(hint("up")).toContain("Run npm run demo -- --runtime docker again to continue.");
  expect(hint("destroy")).toContain("Run npm run demo -- destroy --runtime docker again to continue");
});
