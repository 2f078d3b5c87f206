// npm test [-- vitest arguments]: the checks and every test. With `unit`, `console`, `e2e`, `engine` or `kubernetes` first, only those tests; with
// `all`, everything instead of the samples (test/support/extent.mts).
import fs from "node:fs";
import path from "node:path";
import { forgetLeftOut, leaveOut, leftOut } from "./lib/leftOut.mjs";
import { bin, cache, inRoot } from "./lib/paths.mjs";
import { foreground, main, quiet, say } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

await main(async () => {
  const [first, ...rest] = process.argv.slice(2);
  const project = ["unit", "console", "e2e", "engine", "kubernetes"].find((name) => name === first);
  const isThorough = first === "all";
  const args = isThorough ? rest : project === undefined ? process.argv.slice(2) : ["--project", project, ...rest];
  const found = await setup({ pulumi: project !== "unit" && project !== "console" });
  const env = {
    ...found.env,
    ...(isThorough ? { PULUMI_MACHINES_TEST_ALL: "1" } : {}),
    ...(project === "kubernetes" ? { PULUMI_MACHINES_TEST_KUBERNETES: "1" } : {}),
  };

  // Beside the tests, whose set-up leaves a processor idle. They only read.
  const checking =
    project === undefined ? quiet("node", [inRoot("tools/check.mjs")], { cwd: inRoot("."), env }) : undefined;
  const results = path.join(cache, "tests.json");
  fs.mkdirSync(cache, { recursive: true });
  fs.rmSync(results, { force: true });
  forgetLeftOut();
  if (project === undefined)
    leaveOut("the Kubernetes runtime", "its cluster takes minutes to build; `npm run test:kubernetes` does it");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${results}`];
  const tests = await foreground(path.join(bin, "vitest"), ["run", ...reporters, ...args], { cwd: inRoot("."), env });
  const { code: checks = 0, output = "" } = (await checking) ?? {};
  // In one piece: lines between those of the tests are overlooked.
  if (output !== "") say(`\nThe checks:\n${output.trim()}`);
  // After the tests: a mutant that they do not find says more when they pass without one.
  const mutants =
    isThorough && rest.length === 0
      ? await foreground("npm", ["run", "-s", "test:mutants"], { cwd: inRoot("."), env })
      : 0;
  if (checks !== 0) say("\nThe checks failed. `npm run fix` repairs what a program can repair.");
  if (leftOut() !== "") console.log(leftOut());
  console.log(summary(results));
  return tests || checks || mutants;
});

/** One line for users and CI systems. A file that could not be loaded counts as a failure. */
function summary(file) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
      fs.readFileSync(file, "utf8"),
    );
    const broken = testResults.filter(
      ({ status, assertionResults }) =>
        status === "failed" && assertionResults.every((test) => test.status !== "failed"),
    );
    const left = (numPendingTests ?? 0) + (numTodoTests ?? 0);
    return `${numPassedTests} passed, ${numFailedTests + broken.length} failed${left > 0 ? `, ${left} not run` : ""}`;
  } catch {
    return "0 passed, 1 failed (the test run ended without results)";
  }
}
