// Runs that are ended from outside while they wait or write, with the real CLI: ^C (F17), and a provider that is killed
// while it holds a lease (F08).
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { gate } from "../support/gate.ts";
import { expectEmptied, expectSettled } from "../support/invariants.ts";
import { kill, providersOf } from "../support/processes.ts";
import { bindings, bindingsOr, counts, Stack, type Ran, type Running } from "../support/stack.ts";
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

  /** Starts up, and goes on once the condition holds. */
  async function upUntil(when: () => boolean): Promise<Running> {
    const running = stack.start(up);
    await expect.poll(when).toBe(true);
    return running;
  }
  /** ^C in the terminal of a run that goes on; what became of it. */
  function interrupt({ pid, ended }: Running): Promise<Ran> {
    process.kill(pid, "SIGINT");
    return ended;
  }
  /** Whether the provider looks at the checks, which will never pass. */
  const looks = (): (() => boolean) => {
    const since = service.service.audit.last;
    return () => service.service.audit.after(since).filter(({ operation }) => operation === "machines.get").length > 2;
  };
  /** Whether a request meets the fault that is planned. */
  const strikes = (): (() => boolean) => {
    const { faults } = service.service;
    const before = faults.met;
    return () => faults.met > before;
  };

  if (binding === "pulumi-machines-plugin") {
    test("F17: ^C during a create ends the wait at once; the id is in the state and the next up goes on", async () => {
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

    test("F17: ^C during an update ends the wait and gives the lease back", async () => {
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
    // Pulumi's host of dynamic resources does not tell them that they are cancelled.
    test("F17: ^C during a create ends the run after that create; its id is in the state and nothing is left to do", async () => {
      program({}, false);
      const { opened, open } = gate();
      service.fail({ operation: "machines.create", when: "after", until: () => opened });
      const running = await upUntil(strikes());
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

  // What a lease is to the one binding it is to the other.
  if (!bindingsOr("pulumi-machines").includes(binding)) return;
  test("F08: after a kill of the provider that holds a lease, the next up says until when it waits, and succeeds by then", async () => {
    const before = await machines();
    program({ GREETING: "hello" }, false);
    service.fail({ operation: "machines.update", when: "before", delayMs: 2000, status: "reset" });
    const { pid, ended } = await upUntil(strikes());
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
    // It is told in whole seconds, and taken the first time it is asked for after that.
    expect(leases.filter(({ at, status }) => at > expires + 1000 && status === 409)).toEqual([]);
    expect(leases.filter(({ status }) => status === 201)).toHaveLength(1);
    expect((await machines()).map(({ id, state }) => ({ id, state }))).toEqual(
      before.map(({ id }) => ({ id, state: "started" })),
    );
    await expectSettled(service, stack);
    await expectEmptied(service, stack);
  });
});
