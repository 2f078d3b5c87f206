// Runs the universe from a shell; see tools/universe.mjs.
import { realNow } from "./sameTurn.ts";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { bugs, everyBug, type Bug } from "./bugs.ts";
import { replay } from "./replay.ts";
import { play } from "./play.ts";
import { describeFound, search } from "./search.ts";
import type { Story } from "./story.ts";

/** Seconds between two lines about the progress. */
const everySeconds = 30;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "200" },
    seed: { type: "string" },
    story: { type: "string" },
    bug: { type: "string" },
    bugs: { type: "boolean", default: false },
    console: { type: "boolean", default: false },
  },
});
const number = (name: "runs" | "seed", standard: number): number => {
  const given = Number(values[name] ?? standard);
  if (!Number.isInteger(given) || given < 0)
    throw new Error(`--${name} takes a whole number, got ${String(values[name])}`);
  return given;
};
const seed = number("seed", Date.now() % 2 ** 31);
const runs = number("runs", 200);
/** Where the story of a failure is written. */
const file = "node_modules/.cache/pulumi-machines/story.json";
const bug = everyBug.find((one) => one === values.bug);

void main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});

async function main(): Promise<void> {
  if (values.bug !== undefined && bug === undefined)
    throw new Error(`--bug takes one of these, got ${values.bug}:\n${everyBug.join("\n")}`);
  if (values.console && values.story === undefined) throw new Error("--console needs --story, as a failure prints it");
  if (values.story !== undefined) {
    const story = JSON.parse(readFileSync(values.story, "utf8")) as Story;
    if (values.console) return replay(story, bug);
    await play(story, { bug, onNote: (line) => console.log(line) });
    return console.log("No invariant is broken.");
  }
  if (values.bugs) return findBugs();
  const sum = { requests: 0, takeovers: 0, steps: 0, failed: 0, died: 0, simulatedMs: 0 };
  const began = realNow();
  let [played, saidAt] = [0, began];
  const summary = (): string => {
    const ms = realNow() - began;
    return (
      `${played} stories, seed ${seed}: ${Math.round(ms / 1000)} s, ${(ms / Math.max(1, played)).toFixed(0)} ms each; ` +
      `${sum.requests} requests, ${sum.steps} steps, ${sum.failed} of them failed, ${sum.died} runs were killed, ` +
      `${sum.takeovers} leaders, ${Math.round(sum.simulatedMs / 3600_000)} simulated hours`
    );
  };
  const found = await search({
    ...{ runs, seed, bug },
    passed: (result) => {
      played++;
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += result[name];
      if (realNow() < saidAt + everySeconds * 1000) return;
      saidAt = realNow();
      console.log(summary());
    },
  });
  console.log(summary());
  if (!found) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(found.shortest));
  console.log(`\n${describeFound(seed, found, file)}`);
  process.exitCode = 1;
}

/** Plants each mistake, or the given one, and prints how long it took to find it. */
async function findBugs(): Promise<void> {
  console.log("| part | mistake | stories | seconds |\n|---|---|---|---|");
  for (const [part, names] of Object.entries(bugs))
    for (const one of (names as readonly Bug[]).filter((name) => bug === undefined || name === bug)) {
      const began = realNow();
      const found = await search({ runs, seed, bug: one, shorteningMs: 0 });
      const seconds = ((realNow() - began) / 1000).toFixed(1);
      console.log(`| ${part} | ${one} | ${found?.after ?? "not found"} | ${seconds} |`);
      if (process.env["PULUMI_MACHINES_VERBOSE"] === "1" && found) console.log(found.text.split("\n\n", 1)[0]);
      if (!found) process.exitCode = 1;
    }
}
