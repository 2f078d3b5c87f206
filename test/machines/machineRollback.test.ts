// Rolling back to the previous configuration when a new version fails.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { InitializationFailed } from "../../provider/core/verbs/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, send } from "../support/around.ts";
import { bind, bindings, type Bound } from "../support/binding.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";
const crashing = { image, env: { MACHINES_SIMULATE: "crash" } };

describe.each(bindings)("onUpdateFailure of a Machine, $name binding", ({ start }) => {
  let service: TestService;
  let machine: Bound;
  let close: () => Promise<void>;
  beforeAll(async () => {
    service = await startService();
    // One Machine that fails must not keep the next tests from theirs.
    ({ bound: machine, close } = await start("Machine", service, { maxUnavailable: "100%" }));
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await close();
    await service.close();
  });
  afterEach(() => service.service.faults.clear());

  const at = (state: Values, rest = "") => `/v1/apps/app/machines/${String(state["machineId"])}${rest}`;
  const checked = async (inputs: Values, olds: Values = {}) => {
    const { inputs: next, failures } = await machine.check(olds, {
      app: "app",
      onUpdateFailure: "rollback",
      ...inputs,
    });
    expect(failures).toEqual([]);
    return next;
  };
  const make = async (given: Values) => {
    const inputs = await checked({ config: { image }, ...given });
    return { inputs, ...(await machine.create(inputs)) };
  };
  const live = (state: Values) =>
    send<{ state: string; version: string; cordoned: boolean; config: Values }>(service, "GET", at(state));
  const failing = async (work: Promise<unknown>): Promise<Error & Partial<InitializationFailed>> => {
    const error: unknown = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof Error)) throw new Error("it did not fail");
    return error;
  };

  test("the previous configuration runs again, the error has both versions, and the change is not saved", async () => {
    const { id, inputs, state } = await make({ config: { image, env: { A: "1" }, metadata: { ours: "1" } } });
    await send(service, "POST", at(state, "/metadata/theirs"), { value: "kept" });
    const config = { ...crashing, metadata: { ours: "2", more: "x" } };
    const next = await checked({ ...inputs, config, cordoned: true }, inputs);
    const failed = await failing(machine.update(id, state, next));
    expect(failed.message).toMatch(
      /new version of Machine app\/\w+ failed, and the previous configuration runs again, as version \w{26}: .*exited \(code 1/,
    );
    // An ordinary failure: the engine keeps the old state, so the change shows again.
    expect(failed.properties).toBeUndefined();
    const now = await live(state);
    expect(now).toMatchObject({ state: "started", cordoned: false, config: { image, env: { A: "1" } } });
    expect(now.config["metadata"]).toMatchObject({ ours: "1", theirs: "kept" });
    expect(now.config["metadata"]).not.toHaveProperty("more");
    expect(now.version).not.toBe(state["version"]);
    expect(await machine.diff(id, state, next)).toBe("update");
    // The rollback's own version is not an outside change: up continues, with or without a refresh.
    const found = await machine.read(id, state);
    expect(found?.inputs).toEqual(inputs);
    const good = await checked({ ...inputs, config: { image: "registry.example.com/web:2" } }, inputs);
    for (const before of [state, found?.state ?? {}])
      expect(await machine.update(id, before, good)).toMatchObject({ state: "started", config: good["config"] });
  });

  test.each(["before", "after"] as const)(
    "an answer to the rollback that is lost %s it was applied is settled by a read (F19)",
    async (when) => {
      const { id, inputs, state } = await make({});
      service.fail({ operation: "machines.update", when, status: 503, nth: 2 });
      const failed = await failing(machine.update(id, state, await checked({ ...inputs, config: crashing }, inputs)));
      expect(failed.message).toMatch(/the previous configuration runs again/);
      expect(await live(state)).toMatchObject({ state: "started", config: { image } });
    },
  );

  test("checks that do not pass within two thirds of the time count as a failure", async () => {
    const checks = { alive: { type: "tcp", port: 80 } };
    const { id, inputs, state } = await make({ config: { image, checks } });
    const config = { image, checks, env: { MACHINES_SIMULATE: "checks:critical" } };
    const next = await checked({ ...inputs, config, __context: { timeouts: { update: "6s" } } }, inputs);
    const failed = await failing(machine.update(id, state, next));
    expect(failed.message).toMatch(/runs again, .*checks of Machine .* did not pass within 4s: alive is/);
    const { config: back } = await live(state);
    expect(back).toMatchObject({ image, checks });
    expect(back).not.toHaveProperty("env");
  });

  test("a Machine that was stopped is stopped again", async () => {
    const { id, inputs, state } = await make({ state: "stopped" });
    const next = await checked({ ...inputs, config: crashing, state: "started" }, inputs);
    expect((await failing(machine.update(id, state, next))).message).toMatch(
      /previous configuration is in place again/,
    );
    expect(await live(state)).toMatchObject({ state: "stopped", config: { image } });
  });

  test("if the rollback fails too, the error has both failures, and the state has the live configuration", async () => {
    const { id, inputs, state } = await make({});
    service.fail({ operation: "machines.update", nth: 2, when: "before", status: 409, body: { error: "aborted: no" } });
    const failed = await failing(machine.update(id, state, await checked({ ...inputs, config: crashing }, inputs)));
    expect(failed.message).toMatch(
      /exited \(code 1.*The rollback to the previous configuration also failed: .*aborted: no/,
    );
    expect(failed.properties).toMatchObject({ version: (await live(state)).version, config: crashing });
    // A Machine that had failed before the update is not rolled back.
    const worse = { ...crashing, env: { ...crashing.env, B: "1" } };
    const next = await checked({ ...inputs, config: worse }, inputs);
    const again = await failing(machine.update(id, failed.properties ?? {}, next));
    expect(again.message).not.toMatch(/previous configuration/);
    expect(again.properties).toMatchObject({ config: worse });
  });

  test("only the failed version is rolled back, under the lease of the update", async () => {
    const { id, inputs, state } = await make({});
    const before = service.requests.length;
    service.fail({
      operation: "machines.update",
      when: "after",
      rewrite: (body) => ({ ...(body as Values), version: "0".repeat(26), instance_id: "0".repeat(26) }),
    });
    const failed = await failing(machine.update(id, state, await checked({ ...inputs, config: crashing }, inputs)));
    expect(failed.message).not.toMatch(/runs again/);
    const leases = service.requests.slice(before).filter(({ path }) => path.endsWith("/lease"));
    expect(leases.map(({ method }) => method)).toEqual(["POST", "DELETE"]);
  });

  test("the default is keep: the failed version stays, and the next update repairs it", async () => {
    const { id, inputs, state } = await make({ onUpdateFailure: "keep" });
    const next = await checked({ ...inputs, config: crashing, onUpdateFailure: "keep" }, inputs);
    const failed = await failing(machine.update(id, state, next));
    expect(failed.message).not.toMatch(/previous configuration/);
    expect(failed.properties).toMatchObject({ config: crashing });
  });
});

test("the dynamic binding stores no removed secret after a rollback that also failed (F33)", async () => {
  const service = await startService();
  try {
    const machine = bind("Machine", service);
    const app = await makeApp(service, "secrets");
    const wanted = async (given: Values) =>
      (await machine.check({}, { app, onUpdateFailure: "rollback", ...given })).inputs;
    const env = { OLD_TOKEN: "canary" };
    const { id, state } = await machine.create(await wanted({ config: { image, env }, memoryLimitMb: 128 }));
    // The last step of the rollback.
    service.fail({ operation: "machines.setMemory", status: 422, body: { error: "no" }, times: "always" });
    const next = await wanted({ config: crashing });
    const failed = await machine.update(id, state, next).catch((error: unknown) => error as InitializationFailed);
    expect(String(failed["message"])).toMatch(/rollback to the previous configuration also failed: .*no/);
    const properties = failed["properties"] as Values;
    const live = await send<Values>(service, "GET", `/v1/apps/${id.replace("/", "/machines/")}`);
    expect(live).toMatchObject({ version: properties["version"], config: { env } });
    // The host marks only what is secret in the inputs of the program, which has no secret any more.
    expect(JSON.stringify(properties)).not.toMatch(/canary/);
    service.service.faults.clear();
    const good = await wanted({ config: { image, env: { PLAIN: "1" } } });
    expect(await machine.update(id, properties, good)).toMatchObject({ state: "started", config: good["config"] });
  } finally {
    await service.close();
  }
});
