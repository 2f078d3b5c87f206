// A run that is killed while a Machine is being created: the next one continues, and creates nothing twice (F18).
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { allOr, isThorough } from "../support/extent.mts";
import { family, isRunning, kill, providersOf } from "../support/processes.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "killed-shop" });
const data = new machines.Volume("data", { app: app.id, region: "ams" });
new machines.Machine("store", {
  app: app.id,
  region: "ams",
  config: { image: "registry.example.com/shop:1", mounts: [{ volume: data.id, path: "/data" }] },
});
`;

const victims = ["the CLI alone", "the CLI and everything it started"];
const all = bindings.flatMap((binding) => victims.map((what) => [what, binding] as const));
// killedSteps.test.ts tries some of the other combinations.
const cases = allOr(all, [["the CLI alone", "pulumi-machines"]]);

describe.each(cases)("F18: kill -9 of %s during a create on %s", (what, binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "killed", binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  const left: number[] = [];
  afterAll(() => {
    kill(left);
    return service.close();
  });

  const machines = () => send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/killed-shop/machines");

  test("the next up adopts the created Machine, and creates nothing twice", async () => {
    // Everything before the Machine is created first, so that the kill interrupts only its create.
    stack.program(program.replace(/new machines.Machine[^]*/, ""));
    await stack.up();
    stack.program(program);
    service.fail({ operation: "machines.create", when: "after", delayMs: 3000 });
    const { pid, ended } = stack.start(["up", "--yes", "--skip-preview"]);
    await expect.poll(async () => (await machines()).length).toBe(1);
    const [started, providers] = [family(pid), providersOf(pid)];
    expect(providers.length).toBeGreaterThan(0);
    kill(what === "the CLI alone" ? [pid] : started);
    await ended;
    const [made] = await machines();
    left.push(...started);
    await expect.poll(() => providers.filter(isRunning)).toEqual([]);
    await stack.ok("cancel", "--yes");
    const output = await stack.ok("up", "--yes", "--skip-preview");
    expect(counts(output)).toMatchObject({ created: 1 });
    expect(output).toMatch(/was created by an interrupted run; it is adopted/);
    expect((await machines()).map(({ id, state }) => ({ id, state }))).toEqual([{ id: made?.id, state: "started" }]);
    if (isThorough) expect(counts(await stack.up())).toEqual({ unchanged: 4 });
    await stack.ok("destroy", "--yes", "--skip-preview");
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
