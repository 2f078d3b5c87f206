// The reconciler with a model of an engine: random sequences of operations, of failures and of time. The engine notes what it should
// never be asked to do; when nothing fails any more, it must have what the service wants. FC_SEED selects other sequences.
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { PowerOperation } from "../../../service/states/machineStates.ts";
import { isThorough } from "../../support/extent.mts";
import { containers, ModelEngine, type Kind } from "./modelEngine.ts";
import { ModelService } from "./modelService.ts";
import { wholeTest } from "../../support/patience.mts";

const seed = Number(process.env["FC_SEED"] ?? 20_260_101);
const runs = isThorough ? 30_000 : 3000;

beforeEach(
  () => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "Date"] }),
);
afterEach(() => void vi.useRealTimers());

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** Engines that keep their instances, as Docker does, and engines with one for each start, as a cluster has. */
const docker: Kind = { ...containers, answerMs: 3 };
const pods: Kind = {
  pauses: false,
  killsOnRemove: false,
  isPerStart: true,
  startsAgain: false,
  drainMs: 100,
  answerMs: 3,
};

const kinds: fc.Arbitrary<Kind> = fc.oneof(
  fc.constantFrom(docker, pods),
  fc.record({
    pauses: fc.boolean(),
    killsOnRemove: fc.boolean(),
    isPerStart: fc.boolean(),
    startsAgain: fc.boolean(),
    drainMs: fc.constantFrom(undefined, 100),
    answerMs: fc.constantFrom(0, 3, 40),
  }),
);

const powers: readonly PowerOperation[] = ["start", "stop", "restart", "suspend", "update", "destroy", "kill"];

/** What may happen, by its name: what it does to the service and its engine. */
const happenings: Readonly<Record<string, (service: ModelService, n: number) => void>> = {
  ...Object.fromEntries(
    powers.map((power) => [power, (service: ModelService, n: number) => service.operate(idOf(service, n), power)]),
  ),
  create: (service, n) => {
    const free = [...service.volumes.values()].filter(({ machine, isDeleted }) => machine === null && !isDeleted);
    if (service.machines.size > 2) return;
    service.create({
      id: `m${++service.count}`,
      isRestarted: n % 2 === 0,
      volume: free[n % 4]?.id,
      stopMs: [0, 50, 400][n % 3] ?? 0,
    });
  },
  volume: (service, n) => {
    if (!service.volumes.has(`v${n}`)) service.copyVolume(`v${n}`, null);
  },
  copy: (service, n) => {
    const sources = [...service.volumes.values()].filter(({ isDeleted }) => !isDeleted);
    const source = sources[n % Math.max(1, sources.length)];
    if (source && !service.volumes.has(`c${n}`)) service.copyVolume(`c${n}`, source.id);
  },
  deleteVolume: (service, n) => service.deleteVolume([...service.volumes.keys()][n] ?? ""),
  cordon: (service, n) => {
    const machine = service.machines.get(idOf(service, n));
    if (!machine) return;
    machine.isCordoned = !machine.isCordoned;
    service.runtime.changed?.(new Set([machine.id]));
  },
  request: (service, n) => service.request(idOf(service, n), 30 * n),
  exits: ({ engine }, n) => {
    const running = engine.made.filter(({ state }) => state === "running");
    const one = running[n % Math.max(1, running.length)];
    if (one) engine.end(one);
  },
  isLost: ({ engine }, n) => {
    const one = engine.made[n % Math.max(1, engine.made.length)];
    if (one) engine.lose(one);
  },
  engineDown: ({ engine }, n) => engine.goDown(100 * n),
  refuses: ({ engine }, n) => void (engine.isRefusing = n % 2 === 0),
  isDeaf: ({ engine }, n) => void (engine.isDeaf = n % 2 === 0),
  serviceKilled: (service) => service.killed(),
  forget: (service, n) => service.forget(idOf(service, n)),
};

const idOf = ({ machines }: ModelService, n: number): string =>
  [...machines.keys()][n % Math.max(1, machines.size)] ?? "";

const steps = fc.array(
  fc.tuple(
    fc.constantFrom(...Object.keys(happenings), "create", "create", "start", "volume"),
    fc.nat(8),
    fc.constantFrom(0, 1, 5, 30, 150, 1000),
  ),
  { minLength: 3, maxLength: 30, size: "max" },
);

/** Whether the engine has what the service wants. */
function expectConverged({ engine, machines, volumes, reachable, runtime }: ModelService): void {
  const made = engine.made.map(({ machine }) => machine);
  expect(
    made.filter((id) => !machines.has(id)),
    "of Machines that are gone",
  ).toEqual([]);
  for (const { id, state, version, isCordoned } of machines.values()) {
    expect(["started", "stopped", "failed", "suspended"], `${id} is at rest`).toContain(state);
    const alive = engine.aliveOf(id);
    // A paused process that is lost is found missing by the next start.
    const isPaused = state === "suspended" && engine.kind.pauses && alive.length > 0;
    expect(
      alive.map((one) => `${one.version} ${one.state}`),
      `${id} is ${state}`,
    ).toEqual(state === "started" ? [`${version} running`] : isPaused ? [`${version} paused`] : []);
    const endpoint = runtime.reach?.endpoint(id, 8080);
    expect(endpoint, `endpoint of ${id}`).toBe(state === "started" ? `${id}.${alive[0]?.id}:8080` : undefined);
    if (engine.kind.drainMs !== undefined)
      expect(engine.offered.get(id) ?? false, `offer of ${id}`).toBe(state === "started" && !isCordoned);
  }
  const endpoints = [...machines.keys()].flatMap((id) => runtime.reach?.endpoint(id, 8080) ?? []);
  expect([...reachable].sort()).toEqual(endpoints.sort());
  for (const { id, isDeleted, isWritten } of volumes.values()) {
    expect(isDeleted, `${id} is not discarded`).toBe(false);
    expect(isWritten, `${id} is not written`).toBe(true);
  }
  expect([...engine.volumes].filter((id) => !volumes.has(id))).toEqual([]);
}

test(
  "an engine has what the service wants, after any operations, failures and kills",
  { timeout: wholeTest },
  async () => {
    await fc.assert(
      fc.asyncProperty(kinds, steps, async (kind, happens) => {
        const service = new ModelService(new ModelEngine(kind));
        for (const [what, n, ms] of happens) {
          happenings[what]?.(service, n);
          await pass(ms);
        }
        service.engine.isRefusing = false;
        await pass(60_000);
        expect(service.engine.mistakes).toEqual([]);
        expectConverged(service);
        await service.runtime.close?.();
      }),
      { seed, numRuns: runs },
    );
  },
);

async function withMachine(kind: Kind, stopMs = 400) {
  const service = new ModelService(new ModelEngine(kind));
  service.create({ id: "m", isRestarted: false, volume: undefined, stopMs });
  await pass(1000);
  const machine = service.machines.get("m");
  expect(machine?.state).toBe("started");
  return { service, engine: service.engine, state: () => service.machines.get("m")?.state };
}

test("the data of a deleted volume are there until the deletion is durable", async () => {
  const service = new ModelService(new ModelEngine(docker));
  service.copyVolume("v", null);
  await pass(1000);
  expect([...service.engine.volumes]).toEqual(["v"]);
  const writing = (): (() => void) => {
    let end = (): void => {};
    service.durable = new Promise((resolve) => (end = resolve));
    return end;
  };
  const before = writing();
  service.runtime.volumeChanged?.("v");
  await pass(1000);
  const deletion = writing();
  service.deleteVolume("v");
  // The step that waited for what came before the deletion sees it.
  before();
  await pass(1000);
  expect([...service.engine.volumes]).toEqual(["v"]);
  deletion();
  await pass(1000);
  expect([...service.engine.volumes]).toEqual([]);
  expect([...service.volumes]).toEqual([]);
});

test("a Machine is asked to end once its requests have ended", async () => {
  const { service, engine, state } = await withMachine(docker);
  service.request("m", 200);
  service.operate("m", "stop");
  await pass(190);
  expect(engine.made[0]?.asked).toBeUndefined();
  await pass(100);
  expect(state()).toBe("stopped");
});

test("a Machine with a request that does not end is asked to end when the time is over", async () => {
  const { service, engine, state } = await withMachine(docker);
  service.request("m", 100_000);
  service.operate("m", "stop");
  await pass(390);
  expect(engine.made[0]?.asked).toBeUndefined();
  await pass(100);
  expect(state()).toBe("stopped");
});

test.each([
  ["containers", docker],
  ["Pods", pods],
])("a process of %s that ignores the signal is killed when its time is over", async (_name, kind) => {
  const { service, engine, state } = await withMachine(kind);
  engine.isDeaf = true;
  service.operate("m", "stop");
  await pass(390);
  expect(state()).toBe("stopping");
  await pass(200);
  expect(state()).toBe("stopped");
});

test.each([
  ["stop", "containers", docker, "stopped"],
  ["stop", "Pods", pods, "stopped"],
  ["restart", "containers", docker, "started"],
  ["restart", "Pods", pods, "started"],
] as const)(
  "a requested %s of %s keeps its signal and its time when the service is killed meanwhile",
  async (operation, _name, kind, next) => {
    const { service, engine, state } = await withMachine(kind);
    const [made] = engine.made;
    engine.isDeaf = true;
    service.operate("m", operation);
    await pass(190);
    service.killed();
    // Longer than configured, and less than requested.
    await pass(200);
    expect([made?.state, made?.signals]).toEqual(["running", ["SIGTERM"]]);
    await pass(1000);
    expect([made?.state, made?.signals]).toEqual(["ended", ["SIGTERM", "SIGKILL"]]);
    expect(state()).toBe(next);
  },
);

test("a process whose time was over while no service ran is killed without another signal", async () => {
  const { service, engine, state } = await withMachine(docker);
  engine.isDeaf = true;
  service.operate("m", "stop");
  await pass(100);
  if (engine.driver) engine.driver.isDead = true;
  await pass(1000);
  expect(engine.made[0]?.signals).toEqual(["SIGTERM"]);
  service.killed();
  await pass(50);
  expect([state(), engine.made[0]?.signals]).toEqual(["stopped", ["SIGTERM", "SIGKILL"]]);
});

test("a service that is killed before the signal was sent sends the requested one, and gives all of the time", async () => {
  const { service, engine, state } = await withMachine(docker);
  engine.isDeaf = true;
  service.operate("m", "stop");
  service.killed();
  await pass(390);
  expect([state(), engine.made[0]?.signals]).toEqual(["stopping", ["SIGTERM"]]);
  await pass(100);
  expect([state(), engine.made[0]?.signals]).toEqual(["stopped", ["SIGTERM", "SIGKILL"]]);
});

test("a Machine that the engine refuses to start has failed, and is not started again", async () => {
  const { service, engine, state } = await withMachine(docker);
  service.operate("m", "stop");
  await pass(1000);
  engine.isRefusing = true;
  service.operate("m", "start");
  await pass(1000);
  engine.isRefusing = false;
  await pass(10_000);
  expect([state(), service.machines.get("m")?.reports.at(-1)]).toEqual(["stopped", "failed stopped"]);
});

test("a process that a killed service has started against what is stored now is killed", async () => {
  const { service, engine, state } = await withMachine(docker);
  service.operate("m", "stop");
  await pass(1000);
  const [made] = engine.made;
  if (made) made.state = "running";
  service.killed();
  await pass(1000);
  expect([state(), engine.aliveOf("m")]).toEqual(["stopped", []]);
});

test("without pauses, a suspended Machine is stopped and starts again", async () => {
  const { service, engine, state } = await withMachine(pods);
  service.operate("m", "suspend");
  await pass(1000);
  expect([state(), engine.aliveOf("m")]).toEqual(["suspended", []]);
  service.operate("m", "start");
  await pass(1000);
  expect(state()).toBe("started");
});

test("a Machine waits for a volume that the engine refuses to write, and says why it cannot be mounted", async () => {
  const engine = new ModelEngine(docker);
  const service = new ModelService(engine);
  engine.isRefusing = true;
  service.copyVolume("v", null);
  await pass(1000);
  service.create({ id: "m", isRestarted: false, volume: "v", stopMs: 0 });
  await pass(1000);
  expect(service.machines.get("m")?.state).toBe("failed");
  engine.isRefusing = false;
  await pass(10_000);
  service.operate("m", "start");
  await pass(1000);
  expect(service.machines.get("m")?.state).toBe("started");
  // Another program has removed it.
  service.operate("m", "stop");
  await pass(1000);
  engine.volumes.delete("v");
  service.operate("m", "start");
  await pass(1000);
  expect(service.machines.get("m")?.state).not.toBe("started");
});

test("logs follow a Machine through all of its runs, each once", async () => {
  const { service } = await withMachine(docker);
  vi.useRealTimers();
  const over = new AbortController();
  const read: string[] = [];
  const subject = { id: "m" } as Parameters<NonNullable<typeof service.runtime.logs>>[0];
  const reading = (async () => {
    const query = { since: undefined, lines: undefined, follow: true, signal: over.signal };
    for await (const { text } of service.runtime.logs?.(subject, query) ?? []) read.push(text);
  })();
  await expect.poll(() => read).toEqual(["made-1 1"]);
  service.operate("m", "restart");
  await expect.poll(() => read).toEqual(["made-1 1", "made-2 1"]);
  over.abort();
  await reading;
  expect(read).toEqual(["made-1 1", "made-2 1"]);
});

test("a stop that comes while a start looks at what is there keeps its signal and its time", async () => {
  const { service, engine, state } = await withMachine({ ...docker, answerMs: 40 });
  service.operate("m", "stop");
  await pass(1000);
  expect(state()).toBe("stopped");
  engine.isDeaf = true;
  service.operate("m", "start");
  // The engine has been asked, and has not answered.
  await pass(20);
  service.operate("m", "stop");
  const again = engine.made.length;
  // Longer than its configuration would give it.
  await pass(420);
  const made = engine.made[again];
  expect([state(), made?.state, made?.signals]).toEqual(["stopping", "running", ["SIGTERM"]]);
});

test.each([
  ["containers", docker],
  ["Pods", pods],
])("a restart of a suspended Machine of %s ends its process", async (_name, kind) => {
  const { service, engine, state } = await withMachine(kind);
  const [process] = engine.made;
  service.operate("m", "suspend");
  await pass(1000);
  expect(state()).toBe("suspended");
  service.operate("m", "restart");
  await pass(1000);
  expect([state(), process?.state, engine.aliveOf("m").length]).toEqual(["started", "ended", 1]);
  expect(engine.mistakes).toEqual([]);
});
