// Runs the fault campaign from a shell; see tools/faultRuns.mjs.
import { parseArgs } from "node:util";
import { campaign, describeFailure } from "./campaign.ts";
import { kindNames } from "./kinds.ts";
import { features } from "./ways.ts";

/** The number of runs from which on every rare state must be reached. */
const enough = 2000;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "200" },
    seed: { type: "string" },
    path: { type: "string" },
    only: { type: "string" },
    kinds: { type: "string" },
  },
});
const number = (name: "runs" | "seed", standard: number): number => {
  const given = Number(values[name] ?? standard);
  if (!Number.isInteger(given)) throw new Error(`--${name} takes a whole number`);
  return given;
};
const seed = number("seed", Date.now() % 2 ** 31);
const runs = values.path === undefined ? number("runs", 200) : 1;
const some = <T extends string>(name: "only" | "kinds", allowed: readonly T[]): readonly T[] | undefined => {
  const given = values[name]?.split(",").filter(Boolean);
  const unknown = given?.filter((one) => !allowed.some((other) => other === one)) ?? [];
  if (unknown.length > 0) throw new Error(`--${name} takes some of ${allowed.join(",")}; got ${unknown.join(",")}`);
  return given && allowed.filter((one) => given.includes(one));
};
const only = some("only", features);
const kinds = some("kinds", kindNames);
void make();

async function make(): Promise<void> {
  const sum = { requests: 0, steps: 0, failed: 0, died: 0, refreshed: 0, simulatedMs: 0 };
  const states = new Map<string, number>();
  const began = performance.now();
  const {
    runs: made,
    missed,
    failure,
  } = await campaign({
    runs,
    seed,
    only,
    kinds,
    path: values.path,
    played: ({ states: seen, ...played }) => {
      for (const [name, value] of Object.entries(played)) sum[name as keyof typeof sum] += Number(value);
      for (const state of seen) states.set(state, (states.get(state) ?? 0) + 1);
    },
  });
  const ms = performance.now() - began;
  const hours = Math.round(sum.simulatedMs / 3600_000);
  console.log(
    `${made} runs, seed ${seed}: ${Math.round(ms / 1000)} s, ${(ms / made).toFixed(1)} ms a run; ${sum.steps} steps, ${sum.failed} of them failed, ` +
      `${sum.requests} requests, ${sum.died} processes died, ${sum.refreshed} runs needed a refresh, ${hours} simulated hours`,
  );
  for (const [state, count] of [...states].sort(([, a], [, b]) => b - a)) console.log(`${count} runs: ${state}`);
  if (failure) {
    console.log(`\n${describeFailure({ seed, only, kinds }, failure)}`);
    process.exitCode = 1;
  } else if (made >= enough && (only ?? kinds) === undefined && missed.length > 0) {
    console.log(`\nNo run came by these, so that they were not tested:\n${missed.join("\n")}`);
    process.exitCode = 1;
  }
}
