// A rollout whose process is killed at any of its requests, before or after the service has received it (F18, F50): the next
// run, of another computer, finishes it. `npm run test:all` tries every request, `npm test` some.
import { describe, expect, test } from "vitest";
import { isThorough } from "../support/extent.mts";
import { destroy, failures, up, type Host } from "../support/modelEngine.ts";
import { emptyStack, type Declared } from "../support/modelStack.ts";
import { withSimulation, type Death, type Simulation } from "../support/simulation.ts";
import { liveMachines } from "./liveMachines.ts";
import { Shop } from "./shop.ts";

const checks = { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s" } };
const fleet = (tag: string, more: object = {}): Declared => ({
  type: "Fleet",
  name: "web",
  inputs: {
    ...{ app: { $of: "shop", get: "id" }, name: "web", regions: { ams: 2, fra: 1 } },
    config: { image: `registry.example.com/shop:${tag}`, checks },
    ...more,
  },
});
const app: Declared = { type: "App", name: "shop", inputs: { name: "shop" } };
const volume = { path: "/data", sizeGb: 1 };

interface Case {
  readonly before: Declared | undefined;
  /** Undefined: the fleet is deleted. */
  readonly after: Declared | undefined;
  /** Machines afterwards, by region. */
  readonly machines: Readonly<Record<string, number>>;
  /** Volumes afterwards. */
  readonly volumes: number;
  /** Whether those of an interrupted run may be left, if the next one reports them. */
  readonly mayKeep?: true;
}

const usual = { machines: { ams: 2, fra: 1 }, volumes: 0 };
const cases: Readonly<Record<string, Case>> = {
  "a create": { ...usual, before: undefined, after: fleet("2") },
  "a create after a release command": { ...usual, before: undefined, after: fleet("2", { releaseCommand: ["true"] }) },
  "a rolling update": { ...usual, before: fleet("1"), after: fleet("2") },
  "a rolling update after a release command": {
    ...{ ...usual, before: fleet("1"), after: fleet("2", { releaseCommand: ["true"] }) },
  },
  "a rolling update with a surge": {
    ...{ ...usual, before: fleet("1") },
    after: fleet("2", { strategy: { type: "rolling", maxUnavailable: "0", maxSurge: "1" } }),
  },
  "a canary rollout": {
    ...{ ...usual, before: fleet("1"), after: fleet("2", { strategy: { type: "canary", observe: "1s" } }) },
  },
  "a blue/green rollout": {
    ...{ ...usual, before: fleet("1"), after: fleet("2", { strategy: { type: "bluegreen" } }) },
  },
  "an update at once, in other regions": {
    ...{ before: fleet("1"), after: fleet("2", { strategy: { type: "immediate" }, regions: { iad: 2 } }) },
    ...{ machines: { iad: 2 }, volumes: 0 },
  },
  "a create with volumes": { ...usual, before: undefined, after: fleet("2", { volume }), volumes: 3 },
  "a move of a Machine with a volume": {
    ...{ before: fleet("1", { volume }), after: fleet("2", { volume, regions: { ams: 1, fra: 2 } }) },
    ...{ machines: { ams: 1, fra: 2 }, volumes: 4 },
  },
  "a blue/green rollout with copies of volumes": {
    before: fleet("1", { volume, deleteVolumes: true }),
    after: fleet("2", { volume: { ...volume, copy: true }, deleteVolumes: true, strategy: { type: "bluegreen" } }),
    ...{ machines: { ams: 2, fra: 1 }, volumes: 3, mayKeep: true },
  },
  "a deletion": { before: fleet("1", { volume }), after: undefined, machines: {}, volumes: 3 },
  "a deletion with the volumes": {
    ...{ before: fleet("1", { volume, deleteVolumes: true }), after: undefined, machines: {}, volumes: 0 },
  },
  "a reduction with the volumes": {
    before: fleet("2", { volume, deleteVolumes: true }),
    after: fleet("2", { volume, deleteVolumes: true, regions: { ams: 1 } }),
    ...{ machines: { ams: 1 }, volumes: 1, mayKeep: true },
  },
};

const volumesOf = ({ service }: Simulation) =>
  service.service.context.store.all<{ id: string }>(
    "SELECT id FROM volumes WHERE state IN ('created', 'hydrating', 'creating')",
  );

/** Runs up in a process, which may die. */
async function runUp(
  simulation: Simulation,
  stack: ReturnType<typeof emptyStack>,
  wanted: Declared | undefined,
  death?: { readonly death: Death },
) {
  const process = simulation.start(death);
  const report = await process.run(() => up(stack, [app, ...(wanted ? [wanted] : [])], process));
  /** The volumes that it reported. */
  const kept = new Set(
    process.said.flatMap(({ text }) => /^volume shop\/(\w+) .* is kept with its data/.exec(text)?.[1] ?? []),
  );
  return { report, kept };
}

type Report = Awaited<ReturnType<typeof runUp>>["report"];
const failed = (report: Report) => (report === "died" ? ["died"] : failures(report));

describe.each(Object.entries(cases))(
  "F18, F50: kill -9 during %s",
  (name, { before, after, machines, volumes, mayKeep }) => {
    test.each(["before", "after"] as const)(
      "a run that is killed %s a request is completed by the next one",
      async (when) => {
        // Some of the requests, other ones in each case.
        const every = isThorough ? 1 : 53;
        const killedAt = async (request: number, simulation: Simulation): Promise<boolean> => {
          const stack = emptyStack();
          expect(failed((await runUp(simulation, stack, before)).report)).toEqual([]);
          const { report: first } = await runUp(simulation, stack, after, { death: { request, when } });
          const died = first === "died";
          simulation.moveAway();
          const { report, kept } = await runUp(simulation, stack, after);
          const at = `${when} request ${request}`;
          expect(failed(report), at).toEqual([]);
          const live = liveMachines(simulation);
          const counts: Record<string, number> = {};
          for (const { region } of live) counts[region] = (counts[region] ?? 0) + 1;
          expect(counts, at).toEqual(machines);
          for (const one of live)
            expect(one, at).toMatchObject({ state: "started", cordoned: 0, checks: "passing", tag: "2" });
          const found = volumesOf(simulation).length;
          expect(found, at).toBe(volumes + (mayKeep ? kept.size : 0));
          const last = simulation.start();
          const end = await last.run(() => destroy(stack, last as Host));
          // An App with volumes is not deleted.
          const wrong = failures(end as never).filter(({ type }) => type !== "App" || found === 0);
          expect(wrong, at).toEqual([]);
          expect(liveMachines(simulation), at).toEqual([]);
          expect(simulation.mistakes).toEqual([]);
          return died;
        };
        for (let request = 1 + (name.length % every); ; request += every) {
          const died = await withSimulation(`${name}/${when}/${request}`, (simulation) =>
            killedAt(request, simulation),
          );
          if (!died) return;
        }
      },
    );
  },
);

test("F18: a create that was killed in a run of the fleet alone is continued by the next run", async () => {
  await withSimulation("alone", async (simulation) => {
    const stack = emptyStack();
    expect(failed((await runUp(simulation, stack, undefined)).report)).toEqual([]);
    // The run sees no other resource of the state, so it does not know the id of the state.
    for (const request of [4, 6]) {
      const process = simulation.start({ death: { request, when: "after" } });
      const targets = { targets: ["web"] };
      expect(await process.run(() => up(stack, [app, fleet("2")], process, targets))).toBe("died");
    }
    expect(liveMachines(simulation).length).toBeGreaterThan(0);
    expect(failed((await runUp(simulation, stack, fleet("2"))).report)).toEqual([]);
    expect(liveMachines(simulation)).toHaveLength(3);
    expect(stack.resources.map(({ name }) => name).sort()).toEqual(["shop", "web"]);
  });
});

test("F18: the Machines of a create that was killed are reported if the fleet has another name since", async () => {
  await withSimulation("renamed", async (simulation) => {
    const shop = new Shop(simulation, { regions: { ams: 1 } });
    await shop.succeed(undefined);
    const ofMachine = (operation: string): boolean => operation === "machines.create";
    const death = { request: 1, when: "after" as const, of: ofMachine };
    expect(await shop.killed(shop.fleet("1"), death)).toBe("died");
    const [left] = shop.machines();
    const { warnings } = await shop.succeed(shop.fleet("1", { name: "api" }));
    expect(warnings).toEqual([
      `an interrupted run was creating Fleet shop/web, which the program no longer has: Machine ${left?.id ?? ""} is left. npx pulumi-machines orphans shows it, and how to delete it.`,
    ]);
    expect(shop.machines().map(({ name }) => name)).toEqual(["api-ams-1", "web-ams-1"]);
    // It is said once.
    expect((await shop.succeed(shop.fleet("2", { name: "api" }))).warnings).toEqual([]);
  });
});

test("F18: a create that was killed before its first Machine is not reported if the fleet has another name since", async () => {
  await withSimulation("renamed early", async (simulation) => {
    const shop = new Shop(simulation, { regions: { ams: 1 } });
    await shop.succeed(undefined);
    const ofMachine = (operation: string): boolean => operation === "machines.create";
    expect(await shop.killed(shop.fleet("1"), { request: 1, when: "before", of: ofMachine })).toBe("died");
    expect((await shop.succeed(shop.fleet("1", { name: "api" }))).warnings).toEqual([]);
  });
});
