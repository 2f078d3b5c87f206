// Whole runs in the model of the engine, in simulated time: what test/e2e tests with the real CLI in `npm run test:all`.
import type { ResourceName } from "../../provider/registry.ts";
import { describe, expect, test } from "vitest";
import { send } from "../support/around.ts";
import { allOr } from "../support/extent.mts";
import { changes, failures, refresh, up, type Host, type Report } from "../support/modelEngine.ts";
import { emptyStack, type Declared } from "../support/modelStack.ts";
import { withSimulation, type Death, type Simulation } from "../support/simulation.ts";
import { isWrite } from "../support/startService.ts";
import { inState, onService } from "./inventory.ts";

const image = (tag: string): string => `registry.example.com/shop:${tag}`;
const app: Declared = { type: "App", name: "app", inputs: { name: "shop" } };
const inApp = { app: { $of: "app", get: "id" } };

const simulated = (work: (simulation: Simulation) => Promise<void>): Promise<void> =>
  withSimulation("whole runs", work);

/** One run in a process of its own, and what it said. */
async function ran(
  simulation: Simulation,
  work: (host: Host) => Promise<Report>,
  { parallel = 1, ...how }: { parallel?: number; death?: Death; settings?: Readonly<Record<string, string>> } = {},
) {
  const process = simulation.start(how);
  const host: Host = { bound: (type) => process.bound(type), configuration: process.configuration, parallel };
  const report = await process.run(() => work(host));
  return { report: report === "died" ? undefined : report, said: process.said.map(({ text }) => text) };
}

const stepsOf = (report: Report = []): string[] => report.map(({ verb, name }) => `${verb} ${name}`);
/** Every object of the service, one line for each. */
const there = ({ service }: Simulation): string[] => onService(service.service);

describe("F18: a run of a Machine with a volume that is killed at a request", () => {
  const volume: Declared = { type: "Volume", name: "data", inputs: { ...inApp, region: "ams" } };
  const store = (name: string, greeting: string): Declared => ({
    type: "Machine",
    name: "store",
    inputs: {
      ...inApp,
      name,
      region: "ams",
      config: {
        image: image("1"),
        env: { GREETING: greeting },
        mounts: [{ volume: { $of: "data", get: "id" }, path: "/data" }],
      },
    },
  });
  const stages: readonly (readonly [string, readonly Declared[]])[] = [
    ["its create", [app, volume, store("one", "hello")]],
    ["its update", [app, volume, store("one", "hi")]],
    ["its replacement", [app, volume, store("two", "hi")]],
    ["its deletion", [app, volume]],
  ];
  /** One more than the longest stage sends. */
  const longest = 15;
  const requests = Array.from({ length: longest }, (_, i) => i + 1);
  const deaths = requests.flatMap((request) => (["before", "after"] as const).map((when) => ({ request, when })));

  // A kill after a request is the harder case: the request took effect, and its answer was lost.
  const sample = deaths.filter(({ when }) => when === "after");
  test.each(allOr(deaths, sample))("$when request $request of each run is applied: the next up converges", (death) =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      await ran(simulation, (host) => up(stack, [app, volume], host));
      for (const [what, program] of stages) {
        const { report } = await ran(simulation, (host) => up(stack, program, host), { death });
        if (report || death.request === longest) expect(report && failures(report), what).toEqual([]);
        const next = await ran(simulation, (host) => up(stack, program, host));
        expect(failures(next.report ?? []), what).toEqual([]);
        const { report: last } = await ran(simulation, (host) => up(stack, program, host));
        expect(changes(last ?? []), what).toEqual([]);
        expect(there(simulation), what).toEqual(inState(stack));
        expect(stack.resources, what).toHaveLength(program.length);
      }
    }),
  );
});

test("F08: after a kill with a lease, the next up says until when it waits, and asks for the lease only then", () =>
  simulated(async (simulation) => {
    const { service } = simulation;
    const stack = emptyStack();
    const program = (greeting: string): Declared[] => [
      app,
      {
        type: "Machine",
        name: "web",
        inputs: { ...inApp, config: { image: image("1"), env: { GREETING: greeting } } },
      },
    ];
    await ran(simulation, (host) => up(stack, program("hello"), host));
    const before = there(simulation);
    const death: Death = { request: 1, when: "before", of: (operation) => operation === "machines.update" };
    expect((await ran(simulation, (host) => up(stack, program("hi"), host), { death })).report).toBeUndefined();
    const since = service.service.audit.last;
    const { report, said } = await ran(simulation, (host) => up(stack, program("hi"), host));
    expect([stepsOf(report), failures(report ?? [])]).toEqual([["same app", "update web"], []]);
    const [, expires = ""] =
      /waiting for the lease of Machine [0-9a-f]{14}: .*lease currently held by .*, expires at (\S+Z)/.exec(
        said.join("\n"),
      ) ?? [];
    const leases = service.service.audit.after(since).filter(({ operation }) => operation === "machines.acquireLease");
    // The time is printed in whole seconds, and the lease is acquired by the first attempt after that.
    expect(leases.filter(({ at, status }) => at > Date.parse(expires) + 1000 && status === 409)).toEqual([]);
    expect(leases.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(there(simulation)).toEqual(before);
  }));

describe("ten Machines of one App", () => {
  const program = (tag: string, { simulated: how = "", region = "ams" } = {}): Declared[] => [
    app,
    ...Array.from({ length: 10 }, (_, i): Declared => ({
      type: "Machine",
      name: `web${i}`,
      inputs: {
        ...inApp,
        name: `web-${i}`,
        region,
        config: {
          image: image(tag),
          env: { MACHINES_SIMULATE: how },
          checks: { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s", gracePeriod: "1s" } },
        },
      },
    })),
  ];
  const parallel = 16;
  const onImage = async ({ service }: Simulation, tag: string): Promise<number> => {
    const found = await send<{ config: { image: string } }[]>(service, "GET", "/v1/apps/shop/machines");
    return found.filter(({ config }) => config.image === image(tag)).length;
  };

  test("an image that never passes stops at the first third, and the same image again takes down no more", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      await ran(simulation, (host) => up(stack, program("1"), host), { parallel });
      for (const attempt of ["first", "second"]) {
        const bad = program("2", { simulated: "checks:critical" });
        const { report = [] } = await ran(simulation, (host) => up(stack, bad, host), { parallel });
        expect(failures(report).length, attempt).toBeGreaterThan(0);
        expect([await onImage(simulation, "1"), await onImage(simulation, "2")], attempt).toEqual([7, 3]);
      }
      const { report = [] } = await ran(simulation, (host) => up(stack, program("3"), host), { parallel });
      expect(failures(report)).toEqual([]);
      expect(await onImage(simulation, "3")).toBe(10);
    }));

  test("at most a third of an App's Machines is gone at a time, when replacements delete first", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      await ran(simulation, (host) => up(stack, program("1"), host), { parallel });
      const since = simulation.service.service.audit.last;
      const moved = program("1", { region: "fra" });
      const { report = [] } = await ran(simulation, (host) => up(stack, moved, host), { parallel });
      expect(failures(report)).toEqual([]);
      let [gone, most] = [0, 0];
      for (const { operation } of simulation.service.service.audit.after(since)) {
        if (operation === "machines.destroy") gone++;
        if (operation === "machines.create") gone--;
        most = Math.max(most, gone);
      }
      expect([gone, most, there(simulation)]).toEqual([0, 3, inState(stack)]);
    }));
});

describe("F41: children deleted with a parent that is replaced under its name", () => {
  const inDb = { cluster: { $of: "db", get: "id" } };
  const one = (type: ResourceName, name: string, inputs: Declared["inputs"]): Declared => ({ type, name, inputs });
  const program = (network: string): Declared[] => [
    one("App", "app", { name: "shop", network, forceDestroy: true }),
    one("Secret", "key", { ...inApp, name: "KEY", value: "v" }),
    one("AppSecrets", "keys", { ...inApp, values: { A: "1" } }),
    one("PostgresCluster", "db", { region: "fra", plan: "basic", deletionProtection: false }),
    {
      ...one("PostgresDatabase", "orders", { ...inDb, name: "orders", allowDataLoss: true }),
      deleteBeforeReplace: true,
    },
    one("PostgresExtension", "vector", { ...inDb, database: { $of: "orders", get: "name" }, name: "vector" }),
    one("PostgresAttachment", "attached", { ...inDb, ...inApp, secretName: "DATABASE_URL" }),
  ];

  test("children that were deleted with a parent are created again", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      await ran(simulation, (host) => up(stack, program("one"), host));
      const before = there(simulation);
      for (const kind of ["Secret shop/A", "Secret shop/DATABASE_URL", "Secret shop/KEY"])
        expect(before).toContain(kind);
      expect(before.join()).toMatch(/PostgresAttachment .*PostgresExtension \w+\/extension\/orders\/vector/);
      const { report = [] } = await ran(simulation, (host) => up(stack, program("two"), host, { replace: ["orders"] }));
      expect(failures(report)).toEqual([]);
      expect(stepsOf(report)).toEqual(expect.arrayContaining(["create app", "create orders"]));
      expect(there(simulation)).toEqual(before);
      const { report: read = [] } = await ran(simulation, (host) => refresh(stack, host));
      expect([read.length, failures(read)]).toEqual([7, []]);
      const { report: last = [] } = await ran(simulation, (host) => up(stack, program("two"), host));
      expect([last.length, changes(last)]).toEqual([7, []]);
    }));
});

test("F42: the same service at another address changes nothing, also after a refresh", () =>
  simulated(async (simulation) => {
    const stack = emptyStack();
    const program: Declared[] = [
      app,
      { type: "Machine", name: "web", inputs: { ...inApp, config: { image: image("1") } } },
      { type: "Volume", name: "data", inputs: { ...inApp, region: "ams" } },
    ];
    await ran(simulation, (host) => up(stack, program, host));
    const since = simulation.service.requests.length;
    const settings = { endpoint: simulation.service.url.replace("127.0.0.1", "localhost") };
    const { report } = await ran(simulation, (host) => up(stack, program, host), { settings });
    expect(stepsOf(report)).toEqual(["same app", "same web", "same data"]);
    const { report: read = [] } = await ran(simulation, (host) => refresh(stack, host), { settings });
    expect([read.length, failures(read)]).toEqual([3, []]);
    expect(changes((await ran(simulation, (host) => up(stack, program, host), { settings })).report ?? [])).toEqual([]);
    expect(simulation.service.requests.slice(since).filter(isWrite)).toEqual([]);
  }));
