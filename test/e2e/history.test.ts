// Rollouts as the service keeps them: reported by both bindings, with the reason of their end.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindingsOr, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("app", { name: settings.require("app") });
new machines.Fleet("web", {
  app: app.id,
  name: "web",
  regions: { ams: 2 },
  config: { image: settings.require("image"), env: { SIGNING: settings.requireSecret("signing"), MACHINES_SIMULATE: settings.get("simulate") ?? "" } },
  onFailure: "rollback",
});
new machines.Machine("worker", { app: app.id, name: "worker", region: "fra", config: { image: settings.require("image") } });
`;

interface Shown {
  readonly id: string;
  readonly fleet: string | null;
}

let service: TestService;
beforeAll(async () => (service = await startService()));
afterAll(() => service.close());

const rollouts = async (app: string): Promise<Shown[]> =>
  (await send<{ rollouts: Shown[] }>(service, "GET", `/local/rollouts?app=${app}`)).rollouts;

describe.each(bindingsOr("pulumi-machines"))("%s", (binding) => {
  test("a rollout, one that is rolled back, and plain Machines are in the history, with what belongs to each", async () => {
    const app = binding === "pulumi-machines" ? "rolled" : "rolled-by-the-plugin";
    const stack = new Stack(inject("installed"), app, binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, app, image: "shop:1" });
    await stack.ok("config", "set", "--secret", "signing", "hunter2-of-signing");
    await stack.up();
    await stack.set({ image: "shop:2" });
    await stack.up();
    await stack.set({ image: "shop:3", simulate: "crash" });
    await stack.fails("up", "--yes", "--skip-preview");
    const found = await rollouts(app);
    const ofFleet = found.filter(({ fleet }) => fleet === "web");
    expect(ofFleet).toMatchObject([
      {
        from: "shop:2",
        to: "shop:3",
        result: "rolled back",
        reason: expect.stringContaining("its main process exited") as string,
        machines: { "rolled back": expect.any(Number) as number },
      },
      {
        from: "shop:1",
        to: "shop:2",
        strategy: "rolling",
        result: "succeeded",
        reason: null,
        machines: { healthy: 2 },
      },
      { from: null, to: "shop:1", result: "succeeded", machines: { healthy: 2 } },
    ]);
    const plain = found.filter(({ fleet }) => fleet === null);
    expect(plain[1]).toMatchObject({ from: "shop:1", to: "shop:2", machines: { healthy: 1 } });
    // What one run of Pulumi did belongs together, whichever resource it is of.
    const updates = new Set(found.map((one) => (one as unknown as { update: string }).update));
    expect(updates.size).toBe(3);
    const detail = await send<{ bars: object[]; requests: { urn: string; operation: string }[] }>(
      service,
      "GET",
      `/local/rollouts/${ofFleet[1]?.id ?? ""}`,
    );
    expect(detail.bars).toMatchObject([
      { name: "web-ams-1", now: "healthy" },
      { name: "web-ams-2", now: "healthy" },
    ]);
    expect(detail.requests.map(({ operation }) => operation)).toEqual(["machines.update", "machines.update"]);
    expect(detail.requests[0]?.urn).toMatch(/machines:(index:)?Fleet::web$/);
    expect(JSON.stringify([found, detail])).not.toContain("hunter2");
    const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const shown = await stack.run(["history", "--app", app], { command, plain: true });
    expect(shown.output).toMatch(new RegExp(`${app}/web +rolled back +shop:2 -> shop:3 +rolling `));
    expect(shown.output).toMatch(new RegExp(`${app}/web +succeeded +shop:1 -> shop:2 .*2 healthy`));
    expect(shown.output).toContain("its main process exited");
    expect(shown.code).toBe(1);
    const { output: status } = await stack.run(["status"], { command, plain: true });
    expect(status).toMatch(new RegExp(`: the rollout of ${app}/web was rolled back: .*its main process exited`));
    const listed = JSON.parse(
      (await stack.run(["history", "--limit", "1", "--json"], { command, plain: true })).output,
    );
    expect(listed).toHaveLength(1);
    await stack.destroy();
    expect((await rollouts(app))[0]).toMatchObject({ machines: { destroyed: expect.any(Number) as number } });
  });
});
