// The model engine, with core in simulated time and with the dynamic binding in real time.
import { describe, expect, test } from "vitest";
import { runs } from "../../provider/dynamic/run.ts";
import { bind } from "../support/binding.ts";
import {
  changes,
  destroy,
  failures,
  importResource,
  refresh,
  up,
  type Host,
  type Report,
} from "../support/modelEngine.ts";
import { emptyStack, type Declared } from "../support/modelStack.ts";
import { withSimulation, type Simulation, type Slow } from "../support/simulation.ts";
import { startService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
const app: Declared = { type: "App", name: "web", inputs: {} };
const inApp = { app: { $of: "web", get: "id" } };
const volume = (inputs: object = {}): Declared => ({
  type: "Volume",
  name: "data",
  inputs: { ...inApp, region: "ams", sizeGb: 1, ...inputs },
});
const machine = (config: object = {}, inputs: object = {}): Declared => ({
  type: "Machine",
  name: "one",
  inputs: {
    ...inApp,
    region: "ams",
    config: { image, mounts: [{ volume: { $of: "data", get: "id" }, path: "/data" }], ...config },
    ...inputs,
  },
});

const stepsOf = (report: Report): string[] =>
  report.map(({ verb, name, error }) => `${verb} ${name}${error ? "!" : ""}`);

const simulated = (work: (simulation: Simulation) => Promise<void>): Promise<void> => withSimulation("engine", work);

/** Runs in a process of its own, which must not exit early. */
async function ran(
  simulation: Simulation,
  work: (host: Host) => Promise<Report>,
  slow: readonly Slow[] = [],
): Promise<Report> {
  const process = simulation.start({ slow });
  const report = await process.run(() => work(process));
  if (report === "died") throw new Error("the process died");
  return report;
}

const live = ({ service }: Simulation): string[] =>
  service.service.context.store
    .all<{ id: string }>("SELECT id FROM machines WHERE destroyed_at IS NULL")
    .map(({ id }) => id);

describe("the model of the engine", () => {
  test("the model runs up, a second up, a change, a replacement, a removal and destroy", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const with_ = (...program: Declared[]) => ran(simulation, (host) => up(stack, program, host));
      expect(stepsOf(await with_(app, volume(), machine()))).toEqual(["create web", "create data", "create one"]);
      expect(changes(await with_(app, volume(), machine()))).toEqual([]);
      expect(stepsOf(await with_(app, volume({ sizeGb: 2 }), machine({ env: { A: "1" } })))).toEqual([
        "same web",
        "update data",
        "update one",
      ]);
      expect(
        stepsOf(await with_(app, volume({ sizeGb: 2 }), machine({}, { region: "fra", config: { image } }))),
      ).toEqual(["same web", "same data", "create one", "delete one"]);
      expect(live(simulation)).toHaveLength(1);
      expect(stepsOf(await ran(simulation, (host) => refresh(stack, host)))).toEqual([
        "read web",
        "read data",
        "read one",
      ]);
      expect(stepsOf(await with_(app, machine({}, { region: "fra", config: { image } })))).toEqual([
        "same web",
        "same one",
        "delete data",
      ]);
      expect(stepsOf(await ran(simulation, (host) => destroy(stack, host)))).toEqual(["delete one", "delete web"]);
      expect(stack.resources).toEqual([]);
      expect(live(simulation)).toEqual([]);
    }));

  test("a resource that must be deleted before its replacement is deleted first", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const named = (region: string) => [app, machine({ mounts: [] }, { name: "fixed", region })];
      await ran(simulation, (host) => up(stack, named("ams"), host));
      expect(stepsOf(await ran(simulation, (host) => up(stack, named("fra"), host)))).toEqual([
        "same web",
        "delete one",
        "create one",
      ]);
    }));

  test("the replacement of a Machine with a volume waits until the volume is released", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const program = (name: string) => [app, volume(), machine({}, { name })];
      await ran(simulation, (host) => up(stack, program("first"), host));
      expect(stepsOf(await ran(simulation, (host) => up(stack, program("second"), host)))).toEqual([
        "same web",
        "same data",
        "delete one",
        "create one",
      ]);
    }));

  test("a failure blocks dependents, and the next up continues; a resource created in part is updated", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const program = [app, volume(), machine()];
      simulation.service.fail({ operation: "volumes.create", status: 422 });
      const first = await ran(simulation, (host) => up(stack, program, host));
      expect(stepsOf(first)).toEqual(["create web", "create data!"]);
      simulation.service.fail({ operation: "machines.wait", status: 400 });
      expect(stepsOf(await ran(simulation, (host) => up(stack, program, host)))).toEqual([
        "same web",
        "create data",
        "create one!",
      ]);
      expect(stack.resources.find(({ name }) => name === "one")?.failed).toHaveLength(1);
      expect(stepsOf(await ran(simulation, (host) => up(stack, program, host)))).toEqual([
        "same web",
        "same data",
        "update one",
      ]);
      expect(live(simulation)).toHaveLength(1);
    }));

  test("a killed process leaves a state and pending creates; the next run adopts its objects", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const program = [app, machine({ mounts: [] })];
      const dying = simulation.start({
        death: { request: 1, when: "after", of: (operation) => operation === "machines.create" },
      });
      expect(await dying.run(() => up(stack, program, dying))).toBe("died");
      expect(stack.resources.map(({ name }) => name)).toEqual(["web"]);
      expect(stack.pending).toEqual([{ verb: "create", type: "Machine", name: "one" }]);
      const [made] = live(simulation);
      expect(stepsOf(await ran(simulation, (host) => up(stack, program, host)))).toEqual(["same web", "create one"]);
      expect(live(simulation)).toEqual([made]);
      expect(stack.pending).toEqual([]);
    }));

  test("a forgotten resource is imported by its id", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const program = [app, volume(), machine()];
      await ran(simulation, (host) => up(stack, program, host));
      const [forgotten] = stack.resources.splice(2);
      if (!forgotten) throw new Error("nothing was made");
      expect(stepsOf(await ran(simulation, (host) => importResource(stack, forgotten, host)))).toEqual(["import one"]);
      const after = await ran(simulation, (host) => up(stack, program, host));
      expect(stepsOf(after).filter((step) => step.startsWith("create"))).toEqual([]);
      expect(failures(after)).toEqual([]);
    }));

  test("waiting takes no real time, and a lease is renewed meanwhile", () =>
    simulated(async (simulation) => {
      const stack = emptyStack();
      const checks = { web: { type: "http", port: 80, interval: "15s", timeout: "2s" } };
      await ran(simulation, (host) => up(stack, [app, machine({ mounts: [] })], host));
      const from = simulation.time.now();
      const report = await ran(simulation, (host) => up(stack, [app, machine({ mounts: [], checks })], host), [
        { operation: "machines.wait", nth: 1, times: 1, ms: 40_000, when: "before" },
      ]);
      expect(stepsOf(report)).toEqual(["same web", "update one"]);
      expect(simulation.time.now() - from).toBeGreaterThanOrEqual(40_000);
      const leases = simulation.service.requests.filter(({ operation }) => operation === "machines.acquireLease");
      expect(leases.length).toBeGreaterThan(5);
    }));

  test("the model runs with the dynamic binding, in real time", async () => {
    const service = await startService();
    try {
      const host: Host = { bound: (type) => bind(type, service), parallel: 4 };
      const stack = emptyStack();
      const program = [app, volume(), machine()];
      expect(failures(await up(stack, program, host))).toEqual([]);
      // Each run is a process of its own, with no memory of the previous one.
      runs.begin();
      expect(changes(await up(stack, program, host))).toEqual([]);
      runs.begin();
      expect(failures(await refresh(stack, host))).toEqual([]);
      runs.begin();
      expect(failures(await destroy(stack, host))).toEqual([]);
      expect(stack.resources).toEqual([]);
    } finally {
      await service.close();
    }
  });
});
