// npm run check: all automatic checks of the code. npm run fix (--fix): repairs what can be repaired automatically.
import path from "node:path";
import { checkCitations } from "./lib/citations.mjs";
import { forCompilers } from "./lib/environment.mjs";
import { checkLayers } from "./lib/layers.mjs";
import { bin, inRoot } from "./lib/paths.mjs";
import { main, quiet, say, Stop } from "./lib/process.mjs";
import { completeLock } from "./lib/packageLock.mjs";
import { sdkChecks } from "./lib/sdkChecks.mjs";
import { checkWords } from "./lib/words.mjs";
import { checkWorkflows } from "./lib/workflows.mjs";
import { setup } from "./setup/index.mjs";

const GENERATE = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "tools/generate/main.ts"];
const fix = process.argv.includes("--fix");

const fixes = {
  lint: { command: "oxlint", args: ["--type-aware", "--fix"] },
  format: { command: "oxfmt", args: [] },
  generated: { command: "node", args: GENERATE },
};

const checks = {
  // Of every file by the tsconfig.json next to it, so also of the console and of the examples.
  "types and lint": { command: "oxlint", args: ["--type-aware", "--type-check", "--deny-warnings"] },
  format: { command: "oxfmt", args: ["--check"] },
  unused: { command: "knip", args: ["--no-progress"] },
  "package pulumi-machines": { command: "publint", args: ["run", "sdk/nodejs", "--strict"] },
  "package pulumi-machines-policy": { command: "publint", args: ["run", "policy", "--strict"] },
  "package machines-service": { command: "publint", args: ["run", "service", "--strict"] },
  generated: { command: "node", args: [...GENERATE, "--check"] },
  citations: { check: checkCitations },
  layers: { check: checkLayers },
  words: { check: checkWords },
  workflows: { check: checkWorkflows },
  ...Object.fromEntries(Object.entries(sdkChecks).map(([name, check]) => [name, { check }])),
};

await main(async () => {
  const found = await setup({ build: !fix });
  const env = forCompilers(found.env);
  const failed = [];
  const lock = completeLock(inRoot("package-lock.json"), { write: fix });
  if (lock.length > 0 && !fix) {
    say(`FAILED  lock file: package-lock.json lacks ${lock.join(", ")}; npm ci refuses it. \`npm run fix\` adds them.`);
    failed.push("lock file");
  }
  // Fixes change the same files and run in sequence. Checks only read: two run at a time, because each uses several cores.
  const queue = Object.entries(fix ? fixes : checks);
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      if (!(await run(next, env))) failed.push(next[0]);
  };
  await Promise.all(Array.from({ length: fix ? 1 : 2 }, worker));
  return failed.length > 0 ? 1 : 0;
});

async function run([name, { command, args, check }], env) {
  const started = Date.now();
  const { code, output = "", reason } = await (check ? check(env).catch(stopped) : start(name, command, args, env));
  const note = /^not checked: .*$/m.exec(output);
  const time = `${((Date.now() - started) / 1000).toFixed(1)} s`;
  // Checks that need a missing language are skipped with a message: CI has all languages.
  if (reason !== undefined) say(`SKIPPED ${name}: ${reason}`);
  else if (code === 0) say(`OK      ${name} (${time})${note ? `; ${note[0]}` : ""}`);
  else say(`FAILED  ${name} (${time})${command ? `: ${command} ${args.join(" ")}` : ""}\n${output.trim()}\n`);
  return code === 0 || reason !== undefined;
}

function stopped(error) {
  if (error instanceof Stop) return { code: 1, output: error.message };
  throw error;
}

function start(name, command, args, env) {
  const program = command === "node" ? "node" : path.join(bin, command);
  return quiet(program, args, { cwd: inRoot("."), env, alive: `still checking ${name}` });
}
