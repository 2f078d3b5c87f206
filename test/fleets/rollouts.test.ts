// What every strategy keeps ready when images are good or bad, and when something interferes (F50): the real provider and the
// real service in simulated time, looked at whenever time passes. docs/fleets.md has the results as a table.
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { wantedOf } from "../../provider/fleets/inputs.ts";
import { totalOf } from "../../provider/fleets/placement.ts";
import { promised } from "../../provider/fleets/planner.ts";
import type { ServiceOptions } from "../../service/index.ts";
import { isThorough } from "../support/extent.mts";
import { failures, up, type Report } from "../support/modelEngine.ts";
import { emptyStack, type Declared } from "../support/modelStack.ts";
import { withSimulation, type Death, type Simulation } from "../support/simulation.ts";
import { liveMachines } from "./liveMachines.ts";

const strategies = {
  rolling: { type: "rolling", maxUnavailable: "20%" },
  "rolling, with a surge": { type: "rolling", maxUnavailable: "0", maxSurge: "2" },
  canary: { type: "canary", count: 2, observe: "5s", maxUnavailable: "20%" },
  bluegreen: { type: "bluegreen" },
  immediate: { type: "immediate" },
} as const;
type StrategyName = keyof typeof strategies;
const names = Object.keys(strategies) as StrategyName[];

/** A fleet as the program declares it. */
interface Version {
  readonly tag: string;
  /** What the service simulates. */
  readonly simulate?: string;
  readonly regions?: Readonly<Record<string, number>>;
  readonly strategy?: StrategyName;
}

const usual = { ams: 8, fra: 6, iad: 6 };
const inputsOf = (strategy: StrategyName, { tag, simulate: behaviour = "", regions = usual }: Version) => ({
  app: { $of: "shop", get: "id" },
  regions,
  config: {
    image: `registry.example.com/shop:${tag}`,
    env: { MACHINES_SIMULATE: behaviour },
    checks: { alive: { type: "tcp" as const, port: 8080, interval: "1s", timeout: "1s" } },
    services: [{ protocol: "tcp" as const, internalPort: 8080, ports: [{ port: 80 }] }],
  },
  strategy: strategies[strategy],
  progressDeadline: "20s",
});

/** One run of `up`: what was ready, and how it ended. */
interface Ran {
  readonly ok: boolean;
  readonly wrong: readonly string[];
  readonly died: boolean;
  readonly before: number;
  readonly least: number;
  readonly most: number;
}

class Fleet {
  readonly stack = emptyStack();
  readonly #simulation: Simulation;
  readonly #strategy: StrategyName;

  constructor(simulation: Simulation, strategy: StrategyName) {
    this.#simulation = simulation;
    this.#strategy = strategy;
  }

  ready(tag?: string): number {
    return liveMachines(this.#simulation).filter(
      ({ state, cordoned, checks, tag: on }) =>
        state === "started" && cordoned === 0 && checks === "passing" && (tag === undefined || on === tag),
    ).length;
  }

  async up(version: Version, death?: Death): Promise<Ran> {
    const { time } = this.#simulation;
    const strategy = version.strategy ?? this.#strategy;
    const program: Declared[] = [
      { type: "App", name: "shop", inputs: { name: "shop" } },
      { type: "Fleet", name: "web", inputs: { name: "web", ...inputsOf(strategy, version) } },
    ];
    const before = this.ready();
    let [least, most] = [before, liveMachines(this.#simulation).length];
    time.beforeStep = () => {
      least = Math.min(least, this.ready());
      most = Math.max(most, liveMachines(this.#simulation).length);
    };
    const process = this.#simulation.start(death ? { death } : {});
    const report: Report | "died" = await process.run(() => up(this.stack, program, process));
    time.beforeStep = () => undefined;
    const wrong = report === "died" ? [] : failures(report);
    // A refusal of the program itself would prove nothing.
    for (const { error } of wrong) expect(JSON.stringify(error)).toMatch(/the rollout of Fleet/);
    const messages = wrong.map(({ error }) => JSON.stringify(error));
    const ok = wrong.length === 0 && report !== "died";
    const ran = { ok, wrong: messages, died: report === "died", before, least, most };
    expect(least).toBeGreaterThanOrEqual(this.promise(ran, version));
    return ran;
  }

  /** What a rollout promises, if as many were ready before it. */
  promise({ before }: Ran, version: Version): number {
    const strategy = version.strategy ?? this.#strategy;
    const wanted = wantedOf({ ...inputsOf(strategy, version), app: "shop" }, true);
    if (strategy === "immediate") return 0;
    const regions = strategy === "bluegreen" ? totalOf(wanted.regions) : promised(wanted);
    return Math.min(before, regions);
  }
}

interface Scenario {
  readonly options?: ServiceOptions;
  /** Returns the last run. */
  readonly play: (fleet: Fleet, simulation: Simulation) => Promise<readonly [Ran, Version]>;
  /** Whether the last run succeeds. */
  readonly succeeds: boolean;
}

const good = (tag: string): Version => ({ tag });
const bad = (tag: string): Version => ({ tag, simulate: "checks:critical" });
const last = async (fleet: Fleet, version: Version): Promise<readonly [Ran, Version]> => [
  await fleet.up(version),
  version,
];
/** The rollout dies in the middle. */
const half = async (fleet: Fleet, simulation: Simulation, version: Version): Promise<void> => {
  const { died } = await fleet.up(version, { request: 60, when: "after" });
  expect(died).toBe(true);
  // What it has sent takes effect.
  await simulation.wait(200);
};

const scenarios: Readonly<Record<string, Scenario>> = {
  "good image": { play: (fleet) => last(fleet, good("2")), succeeds: true },
  "image whose checks never pass": { play: (fleet) => last(fleet, bad("2")), succeeds: false },
  "image that never starts": { play: (fleet) => last(fleet, { tag: "2", simulate: "hang" }), succeeds: false },
  "good image after a bad one": {
    play: async (fleet) => {
      expect((await fleet.up(bad("2"))).ok).toBe(false);
      return last(fleet, good("3"));
    },
    succeeds: true,
  },
  "bad image after a bad one": {
    play: async (fleet) => {
      await fleet.up(bad("2"));
      return last(fleet, bad("3"));
    },
    succeeds: false,
  },
  "the bad image again": {
    play: async (fleet) => {
      await fleet.up(bad("2"));
      return last(fleet, bad("2"));
    },
    succeeds: false,
  },
  "good image and other counts": {
    play: (fleet) => last(fleet, { tag: "2", regions: { ams: 5, fra: 6, iad: 9 } }),
    succeeds: true,
  },
  "other counts during a rollout": {
    play: async (fleet, simulation) => {
      await half(fleet, simulation, good("2"));
      return last(fleet, { tag: "2", regions: { ams: 10, fra: 8 } });
    },
    succeeds: true,
  },
  "another strategy during a rollout": {
    play: async (fleet, simulation) => {
      await half(fleet, simulation, good("2"));
      return last(fleet, { tag: "2", strategy: "rolling" });
    },
    succeeds: true,
  },
  "killed, and run again": {
    play: async (fleet, simulation) => {
      await half(fleet, simulation, good("2"));
      return last(fleet, good("2"));
    },
    succeeds: true,
  },
  "another client's lease for 10 s": {
    play: async (fleet, { service }) => {
      const [machine] = service.service.context.store.all<{ id: string }>("SELECT id FROM machines LIMIT 1");
      const { port } = new URL(service.url);
      const answer = await fetch(`http://127.0.0.1:${port}/v1/apps/shop/machines/${machine?.id ?? ""}/lease`, {
        method: "POST",
        headers: { authorization: `Bearer ${service.token}`, "content-type": "application/json" },
        body: JSON.stringify({ ttl: 10, description: "another client" }),
      });
      expect(answer.status).toBe(201);
      return last(fleet, good("2"));
    },
    succeeds: true,
  },
  "a region without room": {
    options: { capacity: { iad: 6 } },
    play: (fleet) => last(fleet, { tag: "2", regions: { ams: 8, fra: 5, iad: 7 } }),
    succeeds: false,
  },
  "rate limits": { options: { rateLimits: "documented" }, play: (fleet) => last(fleet, good("2")), succeeds: true },
};

const page = "docs/fleets.md";
const [begin, end] = ["<!-- rollouts -->\n", "<!-- /rollouts -->\n"];
/** By scenario and strategy, what a run has found. */
const cells = new Map<string, string>();

const rowOf = (name: string, columns: readonly string[]): string => `| ${[name, ...columns].join(" | ")} |\n`;
function tableOf(): string {
  const rows = Object.keys(scenarios).map((name) =>
    rowOf(
      name,
      names.map((strategy) => cells.get(`${name}/${strategy}`) ?? ""),
    ),
  );
  return rowOf("20 Machines in 3 regions", names) + `${"|---".repeat(names.length + 1)}|\n` + rows.join("");
}

describe.each(names)("F50: a fleet of 20 Machines, %s", (strategy) => {
  const sample = ["good image", "good image after a bad one"];
  const all = Object.entries(scenarios);
  const chosen = isThorough ? all : all.filter(([name]) => sample.includes(name));
  test.each(chosen)("%s", async (name, { options, play, succeeds }) => {
    const measure = async (simulation: Simulation): Promise<void> => {
      const fleet = new Fleet(simulation, strategy);
      const first = await fleet.up(good("1"));
      expect([first.ok, fleet.ready()]).toEqual([true, 20]);
      const [ran, version] = await play(fleet, simulation);
      expect(ran.ok, ran.wrong.join("; ")).toBe(succeeds);
      const total = totalOf(version.regions ?? usual);
      if (ran.ok) expect([fleet.ready(version.tag), fleet.ready()]).toEqual([total, total]);
      // Other counts create Machines in one region before they destroy those of another.
      const extra = { bluegreen: 2 * Math.max(20, total) + 4, "rolling, with a surge": Math.max(20, total) + 4 };
      expect(ran.most).toBeLessThanOrEqual({ ...extra }[strategy as string] ?? 24);
      expect(simulation.mistakes).toEqual([]);
      cells.set(`${name}/${strategy}`, `${ran.least} of ${ran.before}`);
    };
    await withSimulation(`${strategy}/${name}`, measure, options);
  });
});

describe("the page about fleets", () => {
  test("the page about fleets has a row for every situation", () => {
    const text = readFileSync(page, "utf8");
    const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    if (isThorough && process.env["UPDATE_DOCS"] === "1")
      writeFileSync(page, text.slice(0, from) + tableOf() + text.slice(to));
    const shown = readFileSync(page, "utf8")
      .split("\n")
      .map((line) => line.split(" | ")[0]?.slice(2));
    expect(shown).toEqual(expect.arrayContaining(Object.keys(scenarios)));
  });
});
