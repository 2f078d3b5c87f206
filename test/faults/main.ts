// Runs of the fault campaign from a shell; see tools/faultRuns.mjs.
import { parseArgs } from "node:util";
import { campaign, told } from "./campaign.ts";

const { values } = parseArgs({
  options: { runs: { type: "string", default: "200" }, seed: { type: "string" }, path: { type: "string" } },
});
const number = (name: "runs" | "seed", standard: number): number => {
  const given = Number(values[name] ?? standard);
  if (!Number.isInteger(given)) throw new Error(`--${name} takes a whole number`);
  return given;
};
const seed = number("seed", Date.now() % 2 ** 31);
const runs = values.path === undefined ? number("runs", 200) : 1;
void make();

async function make(): Promise<void> {
  const sum = { requests: 0, steps: 0, failed: 0, died: 0, refreshed: 0, simulatedMs: 0 };
  const began = performance.now();
  const { runs: made, failure } = await campaign({
    runs,
    seed,
    path: values.path,
    played: (played) => {
      for (const [name, value] of Object.entries(played)) sum[name as keyof typeof sum] += Number(value);
    },
  });
  const ms = performance.now() - began;
  const hours = Math.round(sum.simulatedMs / 3600_000);
  console.log(
    `${made} runs, seed ${seed}: ${Math.round(ms / 1000)} s, ${(ms / made).toFixed(1)} ms a run; ${sum.steps} steps, ${sum.failed} of them failed, ` +
      `${sum.requests} requests, ${sum.died} processes died, ${sum.refreshed} runs needed a refresh, ${hours} simulated hours`,
  );
  if (failure) {
    console.log(`\n${told(seed, failure)}`);
    process.exitCode = 1;
  }
}
