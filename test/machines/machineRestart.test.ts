// Restarting and reloading a Machine when triggers change, without a new version.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InitializationFailed } from "../../provider/core/verbs/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { ManualClock } from "../../service/index.ts";
import { makeApp, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";

describe("triggers of a Machine", () => {
  let service: TestService;
  let machine: Bound;
  beforeAll(async () => {
    service = await startService();
    machine = bind("Machine", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const at = (state: Values, rest = "") => `/v1/apps/app/machines/${String(state["machineId"])}${rest}`;
  const checked = async (inputs: Values, olds: Values = {}) => {
    const { inputs: next, failures } = await machine.check(olds, { app: "app", config: { image }, ...inputs });
    expect(failures).toEqual([]);
    return next;
  };
  const make = async (given: Values) => {
    const inputs = await checked(given);
    return { inputs, ...(await machine.create(inputs)) };
  };
  /** The writes that were sent meanwhile, except those about leases. */
  const writes = async (work: () => Promise<unknown>): Promise<string[]> => {
    const before = service.requests.length;
    await work();
    return service.requests
      .slice(before)
      .filter((seen) => isWrite(seen) && !seen.path.includes("/lease"))
      .map(({ method, path }) => `${method} ${path.replace(/.*machines\/[0-9a-f]+/, "")}`);
  };
  const version = async (state: Values) =>
    (await send<{ version: string; state: string }>(service, "GET", at(state))).version;

  /** Changes inputs in sequence and returns what each change sent. */
  const changed = async (first: Values, ...changes: readonly Values[]): Promise<string[][]> => {
    let { id, inputs, state } = await make(first);
    const sent: string[][] = [];
    for (const change of changes) {
      const next = await checked({ ...inputs, ...change }, inputs);
      expect(await machine.diff(id, state, next)).toBe("update");
      sent.push(await writes(async () => (state = await machine.update(id, state, next))));
      inputs = next;
      expect(await machine.diff(id, state, inputs)).toBe("same");
      expect((await machine.read(id, state))?.state).toEqual(state);
    }
    return sent;
  };

  test("an added, changed or removed trigger restarts the Machine, with signal and timeout, without a new version", async () => {
    let { id, inputs, state } = await make({ restart: { triggers: { a: "1" } } });
    const before = await version(state);
    expect(
      (await send<{ type: string }[]>(service, "GET", at(state, "/events"))).map(({ type }) => type),
    ).not.toContain("restart");
    for (const triggers of [{ a: "2" }, { a: "2", b: "1" }, { b: "1" }]) {
      const next = await checked({ ...inputs, restart: { triggers, signal: "SIGTERM", timeout: "7s" } }, inputs);
      const sent = await writes(async () => (state = await machine.update(id, state, next)));
      expect(sent).toEqual(["POST /restart"]);
      expect(state["state"]).toBe("started");
      inputs = next;
    }
    expect(await version(state)).toBe(before);
  });

  test("restart: its signal and timeout are sent to the service", async () => {
    const still = await startService({ clock: new ManualClock() });
    try {
      await makeApp(still, "app");
      const deaf = bind("Machine", still);
      const inputs = await checked({ config: { image, env: { MACHINES_SIMULATE: "deaf" } } });
      const { id, state } = await deaf.create(inputs);
      const triggers = { a: "1" };
      const next = await checked({ ...inputs, restart: { triggers, timeout: "100ms", signal: "SIGUSR2" } }, inputs);
      const updating = deaf.update(id, state, next);
      await expect.poll(() => send(still, "GET", at(state))).toMatchObject({ state: "restarting" });
      // If omitted, it would be the service's default of five seconds.
      still.clock.advance(100);
      await updating;
      // The process reacts only to this signal, so no time passes.
      const fatal = { ...next, restart: { triggers: { a: "2" }, timeout: "1h", signal: "SIGKILL" } };
      await deaf.update(id, state, await checked(fatal, next));
    } finally {
      await still.close();
    }
  });

  test("changing only the restart options, or removing all triggers, sends nothing", async () => {
    const triggers = { a: "1" };
    expect(
      await changed(
        { restart: { triggers }, reload: { triggers } },
        { restart: { triggers, signal: "SIGHUP" } },
        { restart: { triggers, signal: "SIGHUP", timeout: "9s" }, reload: { triggers, signal: "SIGUSR2" } },
        { restart: { signal: "SIGHUP" }, reload: {} },
        { restart: { triggers: {} } },
      ),
    ).toEqual([[], [], [], []]);
  });

  test("reload signals the main process: SIGHUP unless the program says otherwise", async () => {
    expect(
      await changed(
        { reload: { triggers: { a: "1" } } },
        { reload: { triggers: { a: "2" } } },
        { reload: { triggers: { a: "3" }, signal: "SIGUSR1" } },
      ),
    ).toEqual([["POST /signal"], ["POST /signal"]]);
    const { id, inputs, state } = await make({ reload: { triggers: { a: "1" }, signal: "SIGKILL" } });
    // A signal that ends the process shows that the requested one is sent.
    await machine.update(id, state, await checked({ ...inputs, reload: { triggers: {}, signal: "SIGKILL" } }, inputs));
    const next = await checked({ ...inputs, reload: { triggers: { a: "2" }, signal: "SIGKILL" } }, inputs);
    await machine.update(id, state, next);
    const exits = await send<{ type: string; request: unknown }[]>(service, "GET", at(state, "/events"));
    expect(exits.find(({ type }) => type === "exit")?.request).toMatchObject({ exit_event: { guest_signal: 9 } });
  });

  test("a restart replaces a reload", async () => {
    const triggers = { a: "1" };
    expect(await changed({}, { restart: { triggers }, reload: { triggers } })).toEqual([["POST /restart"]]);
  });

  test("a new version or a start replaces a restart", async () => {
    const triggers = { a: "1" };
    const config = { image: "registry.example.com/web:2" };
    expect(
      await changed(
        {},
        { config, restart: { triggers }, reload: { triggers } },
        { state: "stopped" },
        { state: "started", restart: { triggers: { a: "2" } }, reload: { triggers: { a: "2" } } },
      ),
    ).toEqual([["POST "], ["POST /stop"], ["POST /start"]]);
  });

  test("a Machine that does not run is neither restarted nor signalled (R10)", async () => {
    const triggers = { a: "1" };
    expect(await changed({ state: "stopped" }, { restart: { triggers }, reload: { triggers } })).toEqual([[]]);
  });

  test("the restart is done under the lease, and waits for the checks", async () => {
    const inputs = { config: { image, checks: { alive: { type: "tcp", port: 80 } } } };
    const { id, inputs: first, state } = await make(inputs);
    const { data } = await send<{ data: { nonce: string } }>(service, "POST", at(state, "/lease"), { ttl: 600 });
    const change = { restart: { triggers: { a: "1" } }, __context: { timeouts: { update: "3s" } } };
    const next = await checked({ ...first, ...change }, first);
    await expect(machine.update(id, state, next)).rejects.toThrow(/lease .* was not released/);
    await send(service, "DELETE", at(state, "/lease"), undefined, { "svc-machine-lease-nonce": data.nonce });
    service.fail({
      operation: "machines.get",
      when: "after",
      times: 1000,
      rewrite: (body) => ({ ...(body as Values), checks: [{ name: "alive", status: "critical" }] }),
    });
    await expect(machine.update(id, state, next)).rejects.toThrow(/checks of Machine .* did not pass within 3s/);
    service.service.faults.clear();
  });

  test.each(["restart", "reload"] as const)(
    "a %s whose answer was lost is repeated by the next update",
    async (name) => {
      const { id, inputs, state } = await make({ [name]: { triggers: { a: "1" } } });
      const operation = name === "restart" ? "machines.restart" : "machines.signal";
      service.fail({ operation, when: "after", status: 503, body: { error: "not now" } });
      const next = await checked({ ...inputs, [name]: { triggers: { a: "2" } } }, inputs);
      const failed: unknown = await machine.update(id, state, next).catch((error: unknown) => error);
      if (!(failed instanceof InitializationFailed)) throw failed;
      expect(failed.properties[name]).toEqual({ triggers: { a: "1" } });
      const sent = await writes(() => machine.update(id, failed.properties, next));
      expect(sent).toEqual([name === "restart" ? "POST /restart" : "POST /signal"]);
      // A refused restart did nothing and changed nothing.
      service.fail({ operation, when: "before", status: 400, body: { error: "no" } });
      await expect(machine.update(id, state, next)).rejects.not.toBeInstanceOf(InitializationFailed);
    },
  );
});
