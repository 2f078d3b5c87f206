// npm run test:mutants [-- --only Volume.delete]: breaks every function of every resource type on purpose, and runs the tests
// that must find it: the lifecycle suite, runs of the fault campaign, and then the tests of the type's family. Fails if a
// mutant survives. test/support/mutants.ts has the mutants.
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { forTests } from "./lib/environment.mjs";
import { bin, cache, inRoot } from "./lib/paths.mjs";
import { main, quiet, say } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

/** The campaign must find these itself, where it counts the objects of the type. */
const ofCampaign = /\.(delete|create)\.nothing$/;

const details = path.join(cache, "mutants.md");

await main(async () => {
  const { only = "" } = parseArgs({ options: { only: { type: "string" } } }).values;
  const found = await setup({ pulumi: false });
  const { equivalents, verbs } = await import("../test/support/mutants.ts"); // imported only after its dependencies are installed
  const { isCounted } = await import("../test/faults/inventory.ts");
  const mustPlay = (name) => ofCampaign.test(name) && isCounted(name.split(".")[0]);
  const env = forTests(found.env);
  const files = testFiles();
  const began = Date.now();

  say("The lifecycle suite, with each mutant of its type …");
  const lives = await lifecycle([...files.keys()], only, env);
  const isAlive = (name) => lives.get(name).hasActed && lives.get(name).foundBy === undefined;
  const played = [...lives.keys()].filter((name) => mustPlay(name) || isAlive(name));
  say(`Runs of the fault campaign, with ${played.length} of the ${lives.size} mutants …`);
  const runs = await campaign(played, env);
  const left = [...lives.keys()].filter(
    (name) => equivalents[name] === undefined && isAlive(name) && runs.get(name)?.foundBy === undefined,
  );
  say(`The tests of the family, with each of ${left.length} mutants that are left …`);
  const families = new Map();
  for (const name of left) families.set(name, await family(name, files, env));

  const verdicts = [...lives.keys()].map((name) =>
    verdictOn(name, {
      life: lives.get(name),
      run: runs.get(name),
      familyTest: families.get(name),
      equivalent: equivalents[name],
      mustPlay: mustPlay(name),
    }),
  );
  fs.mkdirSync(cache, { recursive: true });
  fs.writeFileSync(details, [...table(verdicts, verbs), "", ...lines(verdicts)].join("\n"));
  console.log(table(verdicts, verbs).join("\n"));
  const survivors = verdicts.filter(({ how }) => how === "survived");
  for (const { name, by } of survivors) say(`SURVIVED ${name}: ${by}`);
  const seconds = Math.round((Date.now() - began) / 1000);
  say(`${verdicts.length} mutants, ${survivors.length} survived, ${seconds} s; what found each: ${details}`);
  return survivors.length > 0 || verdicts.length === 0 ? 1 : 0;
});

/** The files that run the lifecycle suite, with its types. */
function testFiles() {
  const all = fs.readdirSync(inRoot("test"), { recursive: true, encoding: "utf8" });
  const types = (file) =>
    [...fs.readFileSync(inRoot(file), "utf8").matchAll(/lifecycle\("(\w+)"/g)].map(([, type]) => type);
  return new Map(
    all
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => [`test/${name}`, types(`test/${name}`)])
      .filter(([, found]) => found.length > 0),
  );
}

/** Runs a program that writes a verdict on each line of a file, and returns them by mutant. */
async function verdictsOf(command, argsFor, env) {
  const file = path.join(cache, "mutants.jsonl");
  fs.mkdirSync(cache, { recursive: true });
  fs.writeFileSync(file, "");
  const found = () => fs.readFileSync(file, "utf8").split("\n").filter(Boolean);
  const options = {
    cwd: inRoot("."),
    env: { ...env, PULUMI_MACHINES_MUTANTS: file },
    alive: () => `${found().length} mutants`,
  };
  const { output } = await quiet(command, argsFor(file), options);
  if (found().length === 0) say(output);
  return new Map(found().map((line) => [JSON.parse(line).mutant, JSON.parse(line)]));
}

function lifecycle(files, only, env) {
  return verdictsOf(
    path.join(bin, "vitest"),
    () => ["run", "--project", "unit", "--testTimeout", "30000", "-t", "life of a", ...files],
    { ...env, PULUMI_MACHINES_ONLY_MUTANTS: only },
  );
}

function campaign(names, env) {
  if (names.length === 0) return new Map();
  return verdictsOf(
    "node",
    (file) => ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", inRoot("test/faults/mutants.ts"), file, ...names],
    env,
  );
}

/** Runs the tests in the folder of a type, up to the first one that fails, and returns that. */
async function family(name, files, env) {
  const type = name.slice(0, name.indexOf("."));
  const [file] = [...files].find(([, types]) => types.includes(type));
  const args = ["run", "--project", "unit", "--bail", "1", path.dirname(file)];
  const options = { cwd: inRoot("."), env: { ...env, PULUMI_MACHINES_MUTANT: name }, alive: name };
  const { code, output } = await quiet(path.join(bin, "vitest"), args, options);
  if (code === 0) return undefined;
  const [, failed = "a test of the family"] =
    / FAIL .*?(test\/.*)/.exec(output.replaceAll(/\u001b\[[\d;]*m/g, "")) ?? [];
  return failed;
}

function verdictOn(name, { life, run, familyTest, equivalent, mustPlay }) {
  const byCampaign = run?.foundBy && `campaign: ${run.foundBy}`;
  const by = life.foundBy ? `lifecycle suite: ${life.foundBy}` : (byCampaign ?? familyTest);
  if (equivalent !== undefined)
    return by
      ? { name, how: "survived", by: `it is no equivalent, because it is found by ${by}` }
      : { name, how: "n/a", by: equivalent };
  if (!life.hasActed && !run?.hasActed) return { name, how: "n/a", by: "there is nothing to leave out" };
  if (by === undefined) return { name, how: "survived", by: "no test found it" };
  if (mustPlay && run.hasActed && !byCampaign)
    return { name, how: "survived", by: `the campaign did not find it, only the ${by}` };
  return { name, how: "found", by: mustPlay && byCampaign ? `${by}; ${byCampaign}` : by };
}

/** One row for each type: how many of the mutants of each function were found. */
function table(all, verbs) {
  const types = [...new Set(all.map(({ name }) => name.split(".")[0]))].sort();
  const cell = (type, verb) => {
    const these = all.filter(({ name }) => name.startsWith(`${type}.${verb}.`));
    const count = (how) => these.filter((one) => one.how === how).length;
    if (count("survived") > 0) return `${count("survived")} SURVIVED`;
    return count("found") === 0 ? "n/a" : `${count("found")} found`;
  };
  return [
    `| type | ${verbs.join(" | ")} |`,
    `|---|${verbs.map(() => "---|").join("")}`,
    ...types.map((type) => `| ${type} | ${verbs.map((verb) => cell(type, verb)).join(" | ")} |`),
  ];
}

/** One row for each mutant. */
function lines(all) {
  const rows = all.map(({ name, how, by }) => `| ${name} | ${how === "found" ? "" : `${how}: `}${by} |`);
  return ["| mutant | found by |", "|---|---|", ...rows];
}
