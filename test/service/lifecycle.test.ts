// The life of a Machine, compared with a manual copy of the tables of docs/interface.md#refusals and
// docs/interface.md#machine-states.
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { withApp } from "./client.ts";

type App = Awaited<ReturnType<typeof withApp<ManualClock>>>;
interface Event {
  readonly type: string;
  readonly status: string;
  readonly source: string;
  readonly request: { readonly exit_event?: Readonly<Record<string, unknown>>; readonly restart_count?: number } | null;
}

const stillClock = () => withApp({ clock: new ManualClock(), delays: "believable" });

/** Long enough for any transition, and too short for anything due after minutes. */
const soon = 3000;

/** Brings a new Machine into a state, where the clock stops. */
async function bring(app: App, state: string): Promise<string> {
  const { call, clock, machine, machines } = app;
  const ask = async (id: string, verb: string) => {
    const answer = await call("POST", `${machines}/${id}/${verb}`);
    if (answer.status !== 200) throw new Error(`${verb} gave ${answer.status} ${answer.text}`);
  };
  const { id } = await machine(
    state === "failed" ? { image: "nginx:simulate-crash", restart: { policy: "no" } } : {},
    state === "stopped" ? { skip_launch: true } : {},
  );
  if (state === "created") return id;
  if (state === "starting") {
    clock.advance(200);
    return id;
  }
  clock.advance(soon);
  if (state === "stopping") await ask(id, "stop");
  if (state === "restarting") await ask(id, "restart");
  if (state === "suspending" || state === "suspended") await ask(id, "suspend");
  if (state === "replacing") await call("POST", `${machines}/${id}`, { config: { image: "nginx:2" } });
  if (state === "destroying" || state === "destroyed") await call("DELETE", `${machines}/${id}?force=true`);
  if (state === "suspended" || state === "destroyed") clock.advance(soon);
  return id;
}

const states = [
  "created",
  "starting",
  "started",
  "stopping",
  "stopped",
  "restarting",
  "suspending",
  "suspended",
  "replacing",
  "failed",
  "destroying",
  "destroyed",
];

test.each(states)("a Machine can be brought into the state %s", async (state) => {
  const app = await stillClock();
  expect(await app.state(await bring(app, state))).toBe(state);
});

// The answer of each operation in each state, and the final state of the Machine.
const attempting = [409, "aborted: machine still attempting to start"] as const;
const cannot = (verb: string, state: string) =>
  [412, `failed_precondition: unable to ${verb} machine from current state: '${state}'`] as const;
const running = [
  412,
  "failed_precondition: unable to destroy machine, not currently stopped, suspended, failed or created",
] as const;
const gone = [404, "not_found: machine not found"] as const;

const table: Readonly<Record<string, Readonly<Record<string, readonly [number, string]>>>> = {
  start: {
    created: cannot("start", "created"),
    starting: attempting,
    started: attempting,
    stopping: cannot("start", "stopping"),
    stopped: [200, "started"],
    restarting: attempting,
    suspending: cannot("start", "suspending"),
    suspended: [200, "started"],
    replacing: cannot("start", "replacing"),
    failed: [200, "failed"], // it crashes again
    destroying: cannot("start", "destroying"),
    destroyed: gone,
  },
  stop: {
    created: cannot("stop", "created"),
    starting: [200, "stopped"],
    started: [200, "stopped"],
    stopping: [200, "stopped"],
    stopped: [200, "stopped"],
    restarting: [200, "stopped"],
    suspending: cannot("stop", "suspending"),
    suspended: [200, "stopped"],
    replacing: cannot("stop", "replacing"),
    failed: [200, "stopped"],
    destroying: cannot("stop", "destroying"),
    destroyed: gone,
  },
  suspend: {
    created: cannot("suspend", "created"),
    starting: cannot("suspend", "starting"),
    started: [200, "suspended"],
    stopping: cannot("suspend", "stopping"),
    stopped: cannot("suspend", "stopped"),
    restarting: cannot("suspend", "restarting"),
    suspending: [200, "suspended"],
    suspended: [200, "suspended"],
    replacing: cannot("suspend", "replacing"),
    failed: cannot("suspend", "failed"),
    destroying: cannot("suspend", "destroying"),
    destroyed: gone,
  },
  restart: {
    created: cannot("restart", "created"),
    starting: cannot("restart", "starting"),
    started: [200, "started"],
    stopping: cannot("restart", "stopping"),
    stopped: [200, "started"],
    restarting: [200, "started"],
    suspending: cannot("restart", "suspending"),
    suspended: [200, "started"],
    replacing: cannot("restart", "replacing"),
    failed: [200, "failed"],
    destroying: cannot("restart", "destroying"),
    destroyed: gone,
  },
  destroy: {
    created: [200, "destroyed"],
    starting: running,
    started: running,
    stopping: running,
    stopped: [200, "destroyed"],
    restarting: running,
    suspending: running,
    suspended: [200, "destroyed"],
    replacing: running,
    failed: [200, "destroyed"],
    destroying: [200, "destroyed"],
    destroyed: [200, "destroyed"],
  },
  "destroy?force=true": Object.fromEntries(states.map((state) => [state, [200, "destroyed"]])),
  "destroy?kill=true": Object.fromEntries(states.map((state) => [state, [200, "destroyed"]])),
  update: {
    ...Object.fromEntries(states.map((state) => [state, [200, "started"]])),
    destroying: cannot("update", "destroying"),
    destroyed: gone,
  },
  "update, skip_launch": {
    ...Object.fromEntries(states.map((state) => [state, [200, "stopped"]])),
    destroying: cannot("update", "destroying"),
    destroyed: gone,
  },
};

function send({ call, machines }: App, id: string, operation: string) {
  const one = `${machines}/${id}`;
  if (operation.startsWith("update"))
    return call("POST", one, { config: { image: "nginx:3" }, skip_launch: operation.includes("skip") });
  return operation.startsWith("destroy")
    ? call("DELETE", one + operation.slice("destroy".length))
    : call("POST", `${one}/${operation}`);
}

const rows = Object.entries(table).flatMap(([operation, row]) =>
  Object.entries(row).map(([state, [status, outcome]]) => ({ operation, state, status, outcome })),
);

test.each(rows)("$operation of a $state Machine: $status $outcome", async ({ operation, state, status, outcome }) => {
  const app = await stillClock();
  const id = await bring(app, state);
  const answer = await send(app, id, operation);
  expect(answer.status).toBe(status);
  if (status !== 200) {
    expect(answer.body).toEqual({ error: outcome });
    expect(await app.state(id)).toBe(state);
    return;
  }
  app.clock.advance(soon);
  expect(await app.state(id)).toBe(outcome);
});

// --- what happens on the way ---

async function statesSeen(app: App, id: string, ms: number): Promise<string[]> {
  const seen: string[] = [];
  for (let passed = 0; passed <= ms; passed += 50) {
    const state = await app.state(id);
    if (seen.at(-1) !== state) seen.push(state);
    app.clock.advance(50);
  }
  return seen;
}

test("a launch is created, starting, started in about half a second", async () => {
  const app = await stillClock();
  const { id } = await app.machine();
  expect(await statesSeen(app, id, 600)).toEqual(["created", "starting", "started"]);
});

test("skip_launch rests stopped once the image is there; start is refused until then", async () => {
  const app = await stillClock();
  const { id, state } = await app.machine({}, { skip_launch: true });
  expect(state).toBe("created");
  expect(await send(app, id, "start")).toMatchObject({
    status: 412,
    body: { error: "failed_precondition: unable to start machine from current state: 'created'" },
  });
  expect(await statesSeen(app, id, 600)).toEqual(["created", "stopped"]);
  expect(await send(app, id, "start")).toMatchObject({
    status: 200,
    body: { previous_state: "stopped", migrated: false, new_host: "" },
  });
  expect(await statesSeen(app, id, 600)).toEqual(["starting", "started"]);
});

test.each([
  ["restart", ["restarting", "starting", "started"]],
  ["suspend", ["suspending", "suspended"]],
  ["stop", ["stopping", "stopped"]],
  ["update", ["replacing", "starting", "started"]],
  ["destroy?force=true", ["destroying", "destroyed"]],
])("%s goes through %j", async (operation, expected) => {
  const app = await stillClock();
  const id = await bring(app, "started");
  expect((await send(app, id, operation)).status).toBe(200);
  expect(await statesSeen(app, id, 1000)).toEqual(expected);
});

test("a slow Machine takes longer", async () => {
  const app = await stillClock();
  const { id } = await app.machine({ env: { MACHINES_SIMULATE: "slow:5s" } });
  app.clock.advance(4900);
  expect(await app.state(id)).toBe("starting");
  app.clock.advance(300);
  expect(await app.state(id)).toBe("started");
});

test("an unknown sentinel is refused, not ignored", async () => {
  const { call, machines } = await withApp();
  const answer = await call("POST", machines, { config: { image: "nginx", env: { MACHINES_SIMULATE: "crsh" } } });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toMatch(/got "crsh", allowed are crash, exit:<code>/);
});

test("a destroyed Machine can be read by id for 60 s, then it is gone", async () => {
  const app = await stillClock();
  const id = await bring(app, "destroyed");
  app.clock.advance(50_000);
  expect((await app.call("GET", `${app.machines}/${id}`)).body.state).toBe("destroyed");
  app.clock.advance(10_000);
  expect(await app.call("GET", `${app.machines}/${id}`)).toMatchObject({
    status: 404,
    body: { error: "not_found: machine not found" },
  });
  const deleted = async () => (await app.call("GET", `${app.machines}?include_deleted=true`)).body;
  expect(await deleted()).toHaveLength(1);
  app.clock.advance(24 * 3600_000);
  expect(await deleted()).toHaveLength(0);
});

// --- processes that end ---

const eventsOf = async ({ call, machines }: Pick<App, "call" | "machines">, id: string): Promise<Event[]> =>
  (await call("GET", `${machines}/${id}/events?limit=50`)).body;

test("a process that crashes at the start is restarted until the retries are used up, then the Machine is failed", async () => {
  const app = await stillClock();
  const { id } = await app.machine({
    env: { MACHINES_SIMULATE: "crash" },
    restart: { policy: "on-failure", max_retries: 2 },
  });
  expect(await statesSeen(app, id, soon)).toEqual([
    "created",
    "starting",
    "stopped",
    "starting",
    "stopped",
    "starting",
    "failed",
  ]);
  const exits = (await eventsOf(app, id)).filter(({ type }) => type === "exit");
  expect(
    exits.map(({ status, request }) => [
      status,
      request?.exit_event?.["exit_code"],
      request?.exit_event?.["restarting"],
      request?.restart_count,
    ]),
  ).toEqual([
    ["failed", 1, false, 2],
    ["stopped", 1, true, 1],
    ["stopped", 1, true, 0],
  ]);
});

test("a crash causes ten retries by default", async () => {
  const app = await withApp();
  const { id } = await app.machine({ image: "nginx:simulate-crash" });
  expect(await app.state(id)).toBe("failed");
  expect((await eventsOf(app, id)).filter(({ type }) => type === "restart")).toHaveLength(10);
});

test("a stop between two attempts ends the retries", async () => {
  const app = await stillClock();
  const { id } = await app.machine({ image: "nginx:simulate-crash" });
  app.clock.advance(450);
  expect(await app.state(id)).toBe("stopped");
  expect((await send(app, id, "stop")).status).toBe(200);
  app.clock.advance(soon);
  expect(await app.state(id)).toBe("stopped");
});

test.each([
  ["exit:0", "on-failure", "stopped", 0],
  ["exit:3", "no", "stopped", 0],
  ["exit:3", "on-failure", "failed", 1],
  ["oom", "no", "stopped", 0],
  ["crash", "no", "failed", 0],
])("%s under the policy %s ends %s after %i restarts", async (simulate, policy, state, restarts) => {
  const app = await withApp();
  const { id } = await app.machine({ env: { MACHINES_SIMULATE: simulate }, restart: { policy, max_retries: 1 } });
  expect(await app.state(id)).toBe(state);
  const events = await eventsOf(app, id);
  expect(events.filter(({ type }) => type === "restart")).toHaveLength(restarts);
  expect(events.some(({ status }) => status === "started")).toBe(simulate !== "crash");
  expect(events[0]).toMatchObject({
    type: "exit",
    source: "flyd",
    request: { exit_event: { oom_killed: simulate === "oom", requested_stop: false } },
  });
});

test("under the policy always an exited process is always restarted, even without delays", async () => {
  const app = await withApp({ clock: new ManualClock() });
  const { id } = await app.machine({ env: { MACHINES_SIMULATE: "exit:0" }, restart: { policy: "always" } });
  app.clock.advance(20_000);
  expect((await eventsOf(app, id)).filter(({ type }) => type === "restart").length).toBeGreaterThan(12);
});

test("a requested stop is shown in the exit event", async () => {
  const app = await withApp();
  const { id } = await app.machine();
  await send(app, id, "stop");
  expect((await eventsOf(app, id))[0]).toMatchObject({
    type: "exit",
    status: "stopped",
    request: { exit_event: { exit_code: 0, requested_stop: true } },
  });
});

test.each(["exit:0", "exit:3", "crash"])("auto_destroy destroys after %s", async (simulate) => {
  const app = await stillClock();
  const { id } = await app.machine({ env: { MACHINES_SIMULATE: simulate }, auto_destroy: true });
  expect((await statesSeen(app, id, soon)).slice(-2)).toEqual(["destroying", "destroyed"]);
});

test("a scheduled Machine is started at every scheduled time, until the schedule is removed", async () => {
  const app = await stillClock();
  const { id } = await app.machine({ schedule: "hourly", env: { MACHINES_SIMULATE: "exit:0" } });
  const starts = async () => (await eventsOf(app, id)).filter(({ status }) => status === "started").length;
  app.clock.advance(soon);
  expect([await app.state(id), await starts()]).toEqual(["stopped", 1]);
  app.clock.advance(3 * 3600_000);
  expect([await app.state(id), await starts()]).toEqual(["stopped", 4]);
  await app.call("POST", `${app.machines}/${id}`, { config: { image: "nginx" }, skip_launch: true });
  app.clock.advance(3 * 3600_000);
  expect([await app.state(id), await starts()]).toEqual(["stopped", 4]);
});

test("an update keeps the next scheduled time, unless it changes the schedule", async () => {
  const app = await stillClock();
  const config = { schedule: "daily", env: { MACHINES_SIMULATE: "exit:0" } };
  const { id } = await app.machine(config, { skip_launch: true });
  const hours = (count: number) => app.clock.advance(count * 3600_000);
  const update = (more: object = {}) =>
    app.call("POST", `${app.machines}/${id}`, { config: { image: "nginx", ...config, ...more }, skip_launch: true });
  const starts = async () => (await eventsOf(app, id)).filter(({ status }) => status === "started").length;
  hours(23);
  await update();
  hours(1);
  app.clock.advance(soon);
  expect(await starts()).toBe(1);
  hours(23);
  await update({ schedule: "hourly" });
  app.clock.advance(soon);
  expect(await starts()).toBe(1);
  hours(1);
  expect(await starts()).toBe(2);
});

test("restart accepts a duration, a number of seconds and a signal, and nothing else", async () => {
  const app = await withApp();
  const { id } = await app.machine();
  for (const [query, status] of [
    ["timeout=30s", 200],
    ["timeout=30", 200],
    ["signal=SIGTERM", 200],
    ["timeout=soon", 400],
    ["signal=SIGWHAT", 400],
  ] as const) {
    expect([query, (await app.call("POST", `${app.machines}/${id}/restart?${query}`)).status]).toEqual([query, status]);
  }
});

test("stop accepts an optional body, and refuses a list", async () => {
  const app = await withApp();
  const { id } = await app.machine();
  expect((await app.call("POST", `${app.machines}/${id}/stop`, [])).status).toBe(400);
  expect((await app.call("POST", `${app.machines}/${id}/stop`, { signal: "SIGKILL", timeout: "30s" })).status).toBe(
    200,
  );
});
