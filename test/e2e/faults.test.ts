// Faults of the network and the service, with the real CLI: lost answers, Machines that do not start, a token that is
// revoked during a run.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { addToken, revokeTokens } from "../../service/store/tokens.ts";
import { send } from "../support/around.ts";
import { gate } from "../support/gate.ts";
import { expectEmptied, expectSettled } from "../support/invariants.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = (machines: Readonly<Record<string, string>>): string => `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "faulty-shop" });
${Object.entries(machines)
  .map(
    ([name, env]) =>
      `new machines.Machine("${name}", { app: app.id, config: { image: "registry.example.com/a:1", env: ${env} } });`,
  )
  .join("\n")}
`;

describe.each(bindings)("faults on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  const declared: Record<string, string> = {};

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "faults", binding);
    stack.program(program(declared));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.up();
  });
  afterAll(() => service.close());

  const declare = (name: string, env = "{}"): void => {
    declared[name] = env;
    stack.program(program(declared));
  };
  const machines = () => send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/faulty-shop/machines");
  /** Requests since then, interrupted or not. */
  const asked = (since: number) => service.service.audit.after(since);

  const lost = [
    // If applied, it is found by its tag, and not sent again. If not applied, it is sent a second time.
    ["F01", "an answer lost after the create was applied", { when: "after", status: "reset" }, 1],
    ["F03", "503 after the create was applied", { when: "after", status: 503 }, 1],
    ["F03", "503 before the create was applied", { when: "before", status: 503 }, 2],
  ] as const;
  // The suite of every resource has them in process; together.test.ts loses answers to creates with the CLI.
  for (const [fault, what, plan, sent] of lost)
    test(`${fault}: ${what} creates one Machine`, async () => {
      declare(`lost-${Object.keys(declared).length}`);
      const [since, before] = [service.service.audit.last, await machines()];
      service.fail({ operation: "machines.create", ...plan });
      expect(counts(await stack.up())).toEqual({ created: 1, unchanged: before.length + 2 });
      expect(asked(since).filter(({ operation }) => operation === "machines.create")).toHaveLength(sent);
      expect(await machines()).toHaveLength(before.length + 1);
      await expectSettled(service, stack);
    });

  // repairs.test.ts shows the message, and the tests of the Machine the repair.
  test("F10: a Machine that fails instead of starting ends up at once with its last event, and is repaired in place", async () => {
    const before = (await machines()).map(({ id }) => id);
    declare("crashing", '{ MACHINES_SIMULATE: "crash" }');
    const since = service.service.audit.last;
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(
      /is (failed|stopped) and not started: its main process exited \(code 1/,
    );
    const waits = asked(since).filter(({ operation }) => operation === "machines.wait");
    expect(waits.length, "not waited for until the deadline").toBeLessThan(3);
    const made = (await machines()).filter(({ id }) => !before.includes(id));
    expect(stack.state()["crashing"]?.id).toBe(`faulty-shop/${made[0]?.id ?? ""}`);
    declare("crashing");
    expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: before.length + 2 });
    const now = (await machines()).filter(({ id }) => !before.includes(id));
    expect(now).toMatchObject([{ id: made[0]?.id, state: "started" }]);
    await expectSettled(service, stack);
  });

  // test/faults/networkLimits.test.ts shows the same in process.
  test("F21: a token revoked during a run is not retried and not shown; with a new one the next up continues", async () => {
    const { context, faults } = service.service;
    const token = "mcs_c4n4ry-revoked-in-the-middle";
    const grant = { slug: "personal", expiresAt: null };
    const id = await context.store.write(() => addToken(context.store, token, grant, context.clock.now()));
    await stack.set({ "machines:token": token });
    declare("first");
    stack.program(
      `${stack.read().replace('new machines.Machine("first"', 'const first = new machines.Machine("first"')}
new machines.Machine("second", { app: app.id, config: { image: "registry.example.com/a:1" } }, { dependsOn: first });`,
    );
    // Held until the service no longer caches the token either.
    const { opened, open } = gate();
    service.fail({ operation: "machines.create", when: "after", until: () => opened });
    const [since, met] = [service.service.audit.last, faults.met];
    const up = stack.run(["up", "--yes", "--skip-preview"]);
    await expect.poll(() => faults.met).toBe(met + 1);
    await context.store.write(() => revokeTokens(context.store, id));
    context.clock.advance(1000);
    open();
    const { code, output } = await up;
    expect(code).not.toBe(0);
    expect(output).toMatch(/answered 401: .*The token from machines:token is not known to the service, or has expired/);
    expect(output).not.toContain(token);
    const refused = asked(since).filter(({ status }) => status === 401);
    const repeated = refused.filter(
      (one, i) => refused.findIndex(({ operation }) => operation === one.operation) !== i,
    );
    expect(repeated, "asked again with a refused token").toEqual([]);
    const { first } = stack.state();
    expect((await machines()).map(({ id }) => `faulty-shop/${id}`)).toContain(first?.id);

    await stack.set({ "machines:token": service.token });
    const resumed = counts(await stack.up());
    expect(resumed.created, "what was not made").toBe(1);
    expect(stack.state()["first"]?.id).toBe(first?.id);
    await expectSettled(service, stack);
  });

  test("destroy leaves nothing on the service", () => expectEmptied(service, stack));
});
