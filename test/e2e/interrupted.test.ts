// Runs that are ended from outside while they wait or write, with the real CLI: ^C (F17), and a provider killed while it
// holds a lease (F08).
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { gate } from "../support/gate.ts";
import { expectEmptied, expectSettled } from "../support/invariants.ts";
import { kill, providersOf } from "../support/processes.ts";
import { bindings, counts, Stack, type Ran, type Running } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const up = ["up", "--yes", "--skip-preview"];

describe.each(bindings)("interrupted on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "interrupted", binding);
    stack.program('import * as machines from "pulumi-machines";\nnew machines.App("shop", { name: "cut-shop" });\n');
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.up();
  });
  afterAll(() => service.close());

  const program = (env: Readonly<Record<string, string>>, checks = true): void =>
    stack.program(`
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "cut-shop" });
new machines.Machine("web", { app: app.id, config: ${JSON.stringify({
      image: "registry.example.com/a:1",
      env,
      ...(checks ? { checks: { up: { type: "tcp", port: 80, interval: "5s", timeout: "1s" } } } : {}),
    })} });`);
  const machines = () => send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/cut-shop/machines");
  const idInState = () => stack.state()["web"]?.id;

  /** Starts up, and returns once the condition is met. */
  async function upUntil(when: () => boolean): Promise<Running> {
    const running = stack.start(up);
    await expect.poll(when).toBe(true);
    return running;
  }
  /** Presses ^C in the terminal of a run; returns its result. */
  function interrupt({ pid, ended }: Running): Promise<Ran> {
    process.kill(pid, "SIGINT");
    return ended;
  }
  /** Whether the provider reads the checks, which never pass. */
  const looks = (): (() => boolean) => {
    const since = service.service.audit.last;
    return () => service.service.audit.after(since).filter(({ operation }) => operation === "machines.get").length > 2;
  };
  /** Whether a request has met the planned fault. */
  const hitsFault = (): (() => boolean) => {
    const { faults } = service.service;
    const before = faults.met;
    return () => faults.met > before;
  };

  if (binding === "pulumi-machines-plugin") {
    test("F17: ^C during a create ends the wait at once; the id is in the state and the next up continues", async () => {
      program({ MACHINES_SIMULATE: "checks:critical" });
      const { output } = await interrupt(await upUntil(looks()));
      expect(output).toMatch(/cancelled: nothing more is sent/);
      const [made, ...others] = await machines();
      expect(others).toEqual([]);
      expect(idInState()).toBe(`cut-shop/${made?.id ?? ""}`);
      program({});
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 2 });
      expect((await machines()).map(({ id }) => id)).toEqual([made?.id]);
      await expectSettled(service, stack);
    });

    // In process: test/core/interrupted.test.ts and test/plugin/cancel.test.ts.
    test("F17: ^C during an update ends the wait and releases the lease", async () => {
      const id = idInState();
      program({ MACHINES_SIMULATE: "checks:critical", MORE: "1" });
      const { output } = await interrupt(await upUntil(looks()));
      expect(output).toMatch(/cancelled: nothing more is sent/);
      const lease = send(service, "GET", `/v1/apps/${(id ?? "").replace("/", "/machines/")}/lease`);
      await expect(lease).rejects.toThrow(/404/);
      program({ MORE: "1" });
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 2 });
      expect(idInState()).toBe(id);
      await expectSettled(service, stack);
    });
  } else {
    // Pulumi's dynamic resource host does not pass on a cancellation.
    test("F17: ^C during a create ends the run after that create; its id is in the state and nothing remains to be done", async () => {
      program({}, false);
      const { opened, open } = gate();
      service.fail({ operation: "machines.create", when: "after", until: () => opened });
      const running = await upUntil(hitsFault());
      const interrupted = interrupt(running);
      await expect.poll(running.said).toContain("^C received");
      open();
      const { code, output } = await interrupted;
      expect(code, output).not.toBe(0);
      const [made, ...others] = await machines();
      expect(others).toEqual([]);
      expect(made?.state).toBe("started");
      expect(idInState()).toBe(`cut-shop/${made?.id ?? ""}`);
      expect(counts(await stack.up())).toEqual({ unchanged: 3 });
      await expectSettled(service, stack);
    });
  }

  // test/faults/wholeRuns.test.ts has this in process.
  test("F08: after the provider is killed with a lease, the next up prints until when it waits, and succeeds by then", async () => {
    const before = await machines();
    program({ GREETING: "hello" }, false);
    service.fail({ operation: "machines.update", when: "before", delayMs: 2000, status: "reset" });
    const { pid, ended } = await upUntil(hitsFault());
    kill(providersOf(pid));
    expect((await ended).code).not.toBe(0);
    const since = service.service.audit.last;
    const output = await stack.up();
    expect(counts(output)).toEqual({ updated: 1, unchanged: 2 });
    expect(output).toMatch(
      /waiting for the lease of Machine [0-9a-f]{14}: .*lease currently held by .*, expires at \d{4}-\d\d-\d\dT/,
    );
    const leases = service.service.audit.after(since).filter(({ operation }) => operation === "machines.acquireLease");
    const expires = Date.parse(/expires at (\S+Z)/.exec(output)?.[1] ?? "");
    // The time is printed in whole seconds, and the lease is acquired by the first attempt after that.
    expect(leases.filter(({ at, status }) => at > expires + 1000 && status === 409)).toEqual([]);
    expect(leases.filter(({ status }) => status === 201)).toHaveLength(1);
    expect((await machines()).map(({ id, state }) => ({ id, state }))).toEqual(
      before.map(({ id }) => ({ id, state: "started" })),
    );
    await expectSettled(service, stack);
    await expectEmptied(service, stack);
  });
});
