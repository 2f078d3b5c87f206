// npm run bench: measures the real Pulumi CLI with our provider, and with a provider that answers at once. Started by
// tools/bench.mjs. All files are in a temporary folder, which is removed afterwards.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { bindings } from "./bindings.ts";
import { describeFleet, measureFleet } from "./fleet.ts";
import { describeLimited, measureLimited } from "./limited.ts";
import { Pair, type Sample, type Series } from "./measure.ts";
import { readOptions, Stop, usage, type Options } from "./options.ts";
import { describePolicy, measurePolicy, policyPackage } from "./policy.ts";
import { describeMarkdown, describeSeries, describeStartups, figuresOf } from "./report.ts";
import { measureStartups, type Startup } from "./startup.ts";
import { describeWatched, measureWatched } from "./watched.ts";
import { prepareWorkbench, root, type Workbench } from "./workbench.ts";

const results = join(root, "bench/results/latest.json");

/** Progress goes to standard error; standard output is for the figures. */
const say = (line: string): void => void process.stderr.write(`${line}\n`);

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    if (!stop.signal.aborted) say("Ending; this takes a moment …");
    stop.abort();
  });

async function bench(options: Options): Promise<void> {
  const wanted = bindings(options.bindings);
  const about = circumstances(options);
  const tell = options.output === "tables" ? console.log : say;
  tell(`${about.when}: ${about.processors} × ${about.processor}, Node.js ${about.node}, Pulumi ${about.pulumi}`);
  tell(
    `Settings: ${
      Object.entries(about.settings)
        .map(([name, value]) => `${name}=${value}`)
        .join(" ") || "the defaults"
    }\n`,
  );
  say("Packing and installing the packages …");
  const workbench = await prepareWorkbench(
    [...wanted.map(({ real }) => real.module), ...(options.policy === undefined ? [] : [policyPackage])],
    stop.signal,
  );
  const startups: Startup[] = [];
  const series: Series[] = [];
  try {
    if (options.limited !== undefined) {
      for (const binding of wanted)
        tell(describeLimited(await measureLimited(workbench, binding, options.limited, say)));
      return;
    }
    if (options.fleet !== undefined) {
      for (const binding of wanted) tell(describeFleet(await measureFleet(workbench, binding, options.fleet, say)));
      return;
    }
    if (options.watched !== undefined) {
      const { watched: size, rounds } = options;
      for (const binding of wanted)
        tell(describeWatched(await measureWatched(workbench, binding, { size, rounds }, say)));
      return;
    }
    if (options.policy !== undefined) {
      const { policy: size, rounds } = options;
      for (const binding of wanted)
        tell(describePolicy(await measurePolicy(workbench, binding, { size, rounds }, say)));
      return;
    }
    for (const binding of wanted) {
      say(`Preparing the stacks of the ${binding.name} binding …`);
      const pair = await Pair.prepare(workbench, binding, options.profile);
      try {
        await measurePair(workbench, pair, options, startups, series, tell);
      } finally {
        await pair.close();
      }
      write(about, startups, series);
    }
  } finally {
    workbench.remove();
  }
  tell(`${describeStartups(startups)}\n`);
  const all = write(about, startups, series);
  if (options.output === "json") console.log(all);
  if (options.output === "markdown") console.log(describeMarkdown(series));
  say(`All samples are in ${results}.`);
}

async function measurePair(
  workbench: Workbench,
  pair: Pair,
  options: Options,
  startups: Startup[],
  series: Series[],
  tell: (text: string) => void,
): Promise<void> {
  startups.push(...(await measureStartups(workbench, pair)));
  if (options.starts) return;
  const sizes = options.everything ? [pair.runs("everything")] : options.sizes;
  for (const size of sizes) {
    const progress = ({ round, operation, side, seconds }: Sample): void =>
      say(`  ${pair.binding.name} ${size}, round ${round}: ${operation} ${side} ${seconds.toFixed(2)} s`);
    const found = await pair.measure(size, options, progress);
    series.push(found);
    tell(`\n${describeSeries(found)}\n`);
  }
}

function circumstances({ skipCheckpoints }: Options) {
  const settings = Object.entries(process.env).filter(([name]) =>
    /^PULUMI_(PARALLEL|SKIP_CHECK|DIY_|EXPERIMENTAL)|^NODE_OPTIONS$/.test(name),
  );
  return {
    when: new Date().toISOString(),
    processor: cpus()[0]?.model.trim() ?? "unknown",
    processors: availableParallelism(),
    load: loadavg().map((value) => Math.round(value * 100) / 100),
    node: process.versions.node,
    pulumi: pulumiVersion(),
    settings: { ...Object.fromEntries(settings), ...(skipCheckpoints ? { PULUMI_SKIP_CHECKPOINTS: "true" } : {}) },
  };
}

function pulumiVersion(): string {
  try {
    const env = { ...process.env, PULUMI_SKIP_UPDATE_CHECK: "true" };
    return execFileSync("pulumi", ["version"], { encoding: "utf8", env }).trim();
  } catch {
    throw new Stop("The Pulumi CLI is not on PATH; `npm run bench` finds or builds it.");
  }
}

function write(about: object, startups: readonly Startup[], series: readonly Series[]): string {
  const withFigures = series.map((one) => ({ ...one, figures: figuresOf(one) }));
  const text = `${JSON.stringify({ ...about, startups, series: withFigures }, null, 2)}\n`;
  mkdirSync(dirname(results), { recursive: true });
  writeFileSync(results, text);
  return text;
}

void (async () => {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options.help) console.log(usage);
    else await bench(options);
  } catch (error) {
    if (stop.signal.aborted) process.exitCode = 130;
    else if (error instanceof Stop) {
      say(error.message);
      process.exitCode = 1;
    } else throw error;
  }
})();
