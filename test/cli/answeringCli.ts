// A Pulumi CLI for tests that gives prepared answers.
/** Answers from `stacks.json`: by stack, the output of a command by its words. Notes what it is asked. */
export const answeringCli = `#!/usr/bin/env node
const { appendFileSync, readFileSync } = require("node:fs");
const { join } = require("node:path");
const args = process.argv.slice(2);
const stacks = JSON.parse(readFileSync(join(__dirname, "stacks.json"), "utf8"));
const name = args.includes("--stack") ? args[args.indexOf("--stack") + 1] : undefined;
const words = args.filter((word) => !word.startsWith("-") && word !== name && word !== "1" && word !== "never").join(" ");
appendFileSync(join(__dirname, "asked"), words + "\\n");
if (words === "version") console.log("v3.259.0");
else if (words === "stack ls") console.log(JSON.stringify(Object.keys(stacks).map((name) => ({ name, current: false, lastUpdate: "2026-01-01T00:00:00.000Z" }))));
else console.log(JSON.stringify(stacks[name][words] ?? {}));
`;
