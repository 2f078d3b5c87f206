// The order in which a run interrupts the Machines of one App: what waits, what may never wait, and what is sent for it.
import { beforeEach, describe, expect, test } from "vitest";
import type { Api } from "../../provider/client/api.ts";
import type { Clock } from "../../provider/client/clock.ts";
import type { MaxUnavailable } from "../../provider/client/config.ts";
import type { RunInfo } from "../../provider/core/resource.ts";
import { Interruptions } from "../../provider/machines/interruptions.ts";
import { makeApp } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { startService } from "../support/startService.ts";

const ids = Array.from({ length: 10 }, (_, i) => `m${i}`);
const key = (id: string) => ({ appName: "shop", machineId: id });
/** Long enough for everything that does not wait for another update. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 200; i++) await new Promise((turn) => setImmediate(turn));
};

let now: number;
let lists: number;
let app: Interruptions;
let begun: string[];
let refused: Record<string, string>;
let said: string[];
let failing: readonly string[];
beforeEach(() => {
  [now, lists, app, begun, refused, said, failing] = [0, 0, new Interruptions(), [], {}, [], []];
});

/** A clock that advances at once when code sleeps. */
const clock = {
  now: () => now,
  async sleep(milliseconds: number, signal?: AbortSignal) {
    await new Promise((turn) => setImmediate(turn));
    signal?.throwIfAborted();
    now += milliseconds;
  },
} as Clock;

function call(maxUnavailable: MaxUnavailable = { percent: 100 / 3 }, signal?: AbortSignal) {
  const list = () => {
    lists++;
    const machineOf = (id: string) => ({ id, state: failing.includes(id) ? "failed" : "started" });
    return Promise.resolve(ids.map(machineOf));
  };
  const api = { clock, config: { maxUnavailable }, deadline: { signal }, machines: { list } } as unknown as Api;
  Object.assign(api, { within: () => api });
  return { api, progress: (message: string) => said.push(message), run: { program: { size: 10 } } as RunInfo };
}

const begin = (id: string, given = call(), isReplacement = false): void =>
  void app.begin(key(id), given, isReplacement).then(
    () => begun.push(id),
    (error: Error) => (refused[id] = error.message),
  );

describe("updates of one App", () => {
  test("the only one begins without a request", async () => {
    begin("m0");
    await turns();
    expect([begun, lists]).toEqual([["m0"], 0]);
    app.end(key("m0"), false, call());
    begin("m1");
    await turns();
    expect([begun, lists]).toEqual([["m0", "m1"], 0]);
  });

  test("three updates of ten that come together begin, and each end lets another one begin", async () => {
    for (const id of ids) begin(id);
    await turns();
    expect(begun).toEqual(["m0", "m1", "m2"]);
    expect(said).toContain("waiting: 3 of 10 Machines of shop are being updated");
    app.end(key("m1"), false, call());
    await turns();
    expect(begun).toEqual(["m0", "m1", "m2", "m3"]);
    expect(lists).toBeLessThanOrEqual(2);
  });

  test("after a failure, those that wait and those that come later are refused, but not the failed one itself", async () => {
    for (const id of ids.slice(0, 5)) begin(id);
    await turns();
    app.end(key("m1"), true, call());
    begin("m7");
    begin("m1");
    await turns();
    expect(Object.keys(refused).sort()).toEqual(["m3", "m4", "m7"]);
    expect(refused["m7"]).toMatch(
      /^Machine shop\/m7 was not changed, because the update of Machine shop\/m1 has failed/,
    );
    expect(begun).toEqual(["m0", "m1", "m2", "m1"]);
    // Repaired in the same run.
    app.end(key("m1"), false, call());
    begin("m8");
    await turns();
    expect(begun).toContain("m8");
  });

  test("failing Machines go first, even if their updates come later", async () => {
    failing = ["m8", "m9"];
    begin("m0");
    begin("m1");
    await turns();
    begin("m8");
    begin("m9");
    await turns();
    expect(begun.slice(0, 1)).toEqual(["m0"]);
    expect(begun.slice(1)).toEqual(["m8", "m9"]);
  });

  test("with 100%, nothing waits and nothing is refused", async () => {
    for (const id of ids) begin(id, call({ percent: 100 }));
    await turns();
    app.end(key("m0"), true, call({ percent: 100 }));
    begin("m0", call({ percent: 100 }));
    await turns();
    expect([begun.length, lists, refused]).toEqual([11, 0, {}]);
  });

  test("a cancelled run ends the wait", async () => {
    const cancelled = new AbortController();
    for (const id of ids.slice(0, 4)) begin(id, call(undefined, cancelled.signal));
    await turns();
    cancelled.abort(new Error("cancelled"));
    await turns();
    expect(refused).toEqual({ m3: "cancelled" });
  });
});

describe("replacements that delete first", () => {
  const one = () => call({ machines: 1 });
  beforeEach(async () => {
    begin("m0", one(), true);
    await turns();
    app.deleted(key("m0"), one());
  });

  test("the next update waits until the replacement runs", async () => {
    app.recreating("m0");
    begin("m1", one());
    await turns();
    expect(begun).toEqual(["m0"]);
    app.end(key("m0"), false, one());
    await turns();
    expect(begun).toEqual(["m0", "m1"]);
  });

  test("a Machine that the deleted one depends on does not wait for it", async () => {
    begin("m1", one(), true);
    await turns();
    expect(begun).toEqual(["m0", "m1"]);
  });

  test("one that is never created again does not keep the others for ever", async () => {
    begin("m1", one());
    await turns();
    expect(begun).toEqual(["m0", "m1"]);
    expect(now).toBeGreaterThanOrEqual(60_000);
  });
});

test("an update that waits while a Machine is deleted does not wait for a replacement that is never created", async () => {
  const one = () => call({ machines: 1 });
  begin("m0", one(), true);
  await turns();
  begin("m1", one());
  await turns();
  expect(begun).toEqual(["m0"]);
  app.deleted(key("m0"), one());
  await turns();
  expect(begun).toEqual(["m0", "m1"]);
  expect(now).toBeGreaterThanOrEqual(60_000);
});

test("a failed job stops no other update, a failed Machine that serves does", async () => {
  const service = await startService();
  try {
    await makeApp(service, "app");
    const machine = bind("Machine", service);
    const image = "registry.example.com/web:1";
    const serves = { image, env: { MACHINES_SIMULATE: "" } };
    const job = { ...serves, env: { MACHINES_SIMULATE: "exit:0" }, schedule: "daily" };
    const make = async (config: object) => {
      const { inputs } = await machine.check({}, { app: "app", config });
      return { inputs, ...(await machine.create(inputs)) };
    };
    const made = { web: await make(serves), other: await make(serves), job: await make(job) };
    const update = async (name: keyof typeof made, config: object) => {
      const { inputs } = await machine.check(made[name].inputs, { ...made[name].inputs, config, state: "started" });
      return machine.update(made[name].id, made[name].state, inputs);
    };
    const exits = (from: object) => ({ ...from, env: { MACHINES_SIMULATE: "exit:1" } });
    await expect(update("job", exits(job))).rejects.toThrow(/exited \(code 1/);
    await expect(update("web", exits(serves))).rejects.toThrow(/exited \(code 1/);
    await expect(update("other", { ...serves, image: "registry.example.com/web:2" })).rejects.toThrow(
      `the update of Machine ${made.web.id} has failed`,
    );
    await machine.nextRun();
    expect(await update("other", { ...serves, image: "registry.example.com/web:2" })).toMatchObject({
      state: "started",
    });
  } finally {
    await service.close();
  }
});
