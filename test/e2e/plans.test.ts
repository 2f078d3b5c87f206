// Plans with the real CLI: an update with a plan does what its preview showed, or stops before it changes what others have changed.
// test/core/plans.test.ts has every type, in process.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { bindings, bindingsOr, counts, Stack, type Ran } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughDescribe, thoroughTest } from "../support/thorough.ts";

const image = (tag: string): string => `registry.example.com/shop:${tag}`;

/** A preview that saves a plan. */
async function preview(stack: Stack): Promise<void> {
  for (const file of ["plan.json", "plan.machines.json"]) rmSync(join(stack.dir, file), { force: true });
  const env = { MACHINES_SAVE_PLAN: "plan.machines.json" };
  const { code, output } = await stack.run(["preview", "--save-plan", "plan.json"], { env });
  if (code !== 0) throw new Error(output);
}

/** An update with the plan. */
const up = (stack: Stack, ...options: string[]): Promise<Ran> =>
  stack.run(["up", "--yes", "--plan", "plan.json", ...options], { env: { MACHINES_PLAN: "plan.machines.json" } });

/** A preview, and the update with its plan. */
async function apply(stack: Stack): Promise<ReturnType<typeof counts>> {
  await preview(stack);
  const { code, output } = await up(stack, "--skip-preview");
  if (code !== 0) throw new Error(output);
  return counts(output);
}

describe.each(bindingsOr("pulumi-machines"))("a plan on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "plans", binding);
    program({ tag: "1" });
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    expect(await apply(stack)).toMatchObject({ created: 7 });
  });
  afterAll(() => service.close());

  const program = ({ tag, region = "ams", has = ["web"] }: { tag: string; region?: string; has?: string[] }): void =>
    stack.program(`
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "shop" });
${has.includes("web") ? `new machines.Machine("web", { app: app.id, region: "${region}", config: { image: "${image(tag)}" } });` : ""}
new machines.Fleet("api", { app: app.id, regions: { ams: 2 }, config: { image: "${image(tag)}" } });
new machines.Volume("data", { app: app.id, region: "ams", sizeGb: ${tag} });
new machines.Secret("token", { app: app.id, name: "TOKEN", value: "value-${tag}" });
new machines.AppSecrets("settings", { app: app.id, values: { LEVEL: "level-${tag}" } });
`);
  const machinePath = (id: string): string => `/v1/apps/shop/machines/${id.split("/")[1] ?? ""}`;
  const idOf = (name: string): string => stack.state()[name]?.id ?? "";
  /** Others give a Machine another version. */
  const changeMachine = async (id: string): Promise<void> => {
    const { config } = await send<{ config: object }>(service, "GET", machinePath(id));
    await send(service, "POST", machinePath(id), { config: { ...config, image: image("theirs") } });
  };
  /** The update with the plan stops with a message, and has changed nothing. */
  const stops = async (message: RegExp): Promise<void> => {
    const before = service.requests.length;
    const { code, output } = await up(stack);
    expect(code).not.toBe(0);
    expect(output).toMatch(message);
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
  };

  test("a Machine that others have changed since the preview stops the update before its first step", async () => {
    program({ tag: "2" });
    await preview(stack);
    await changeMachine(idOf("web"));
    await stops(/Machine shop\/\w+ has changed since the preview of this plan: version was \w+ and is \w+/);
  });

  thoroughTest("and so does everything else that others have changed", async () => {
    await stack.refresh();
    const set = (name: string) => () => send(service, "POST", `/v1/apps/shop/secrets/${name}`, { value: "theirs" });
    const fleet = async (): Promise<void> => {
      const machines = stack.state()["api"]?.outputs["machines"] as { id: string }[];
      await changeMachine(machines[0]?.id ?? "");
    };
    const grow = () => {
      const path = `/v1/apps/shop/volumes/${idOf("data").split("/")[1] ?? ""}/extend`;
      return send(service, "PUT", path, { size_gb: 3 });
    };
    for (const [change, message] of [
      [set("TOKEN"), /Secret shop\/TOKEN has changed since the preview of this plan: digest differs/],
      [set("LEVEL"), /AppSecrets shop has changed since the preview of this plan: secret LEVEL differs/],
      [fleet, /Fleet shop\/api has changed since the preview of this plan: Machine api-ams-\d was/],
      [grow, /Volume shop\/\w+ has changed since the preview of this plan: currentSizeGb was 1 and is 3/],
    ] as const) {
      await preview(stack);
      await change();
      await stops(message);
    }
    await stack.refresh();
    program({ tag: "4" });
    expect(await apply(stack)).toMatchObject({ updated: 5 });
    expect(await send(service, "GET", machinePath(idOf("web")))).toMatchObject({ config: { image: image("4") } });
  });

  thoroughTest("a replacement and a deletion stop, too, and are carried out otherwise", async () => {
    program({ tag: "4", region: "fra" });
    await preview(stack);
    await changeMachine(idOf("web"));
    await stops(/Machine shop\/\w+ has changed since the preview of this plan: version was/);
    await stack.refresh();
    program({ tag: "4", region: "fra" });
    expect(await apply(stack)).toMatchObject({ replaced: 1 });
    program({ tag: "4", has: [] });
    await preview(stack);
    await changeMachine(idOf("web"));
    const before = service.requests.length;
    const { code, output } = await up(stack);
    expect(code).not.toBe(0);
    expect(output).toMatch(/Machine shop\/\w+ has changed since the state was last written or refreshed: version was/);
    expect(service.requests.slice(before).filter(({ operation }) => operation === "machines.destroy")).toEqual([]);
    await stack.refresh();
    expect(await apply(stack)).toMatchObject({ deleted: 1 });
  });
});

thoroughDescribe("a plan of everything", () => {
  describe.each(bindings)("on %s", (binding) => {
    let service: TestService;
    let stack: Stack;

    beforeAll(async () => {
      service = await startService();
      stack = await exampleStack("everything", service, {}, { binding });
      stack.checkTypes(false);
      // What a function reads before the change is not what it reads afterwards: docs/plans.md.
      stack.program(stack.read().replaceAll(/^export const/gm, "const"));
    });
    afterAll(() => service.close());

    test("creates, updates and deletes", async () => {
      const { created = 0 } = await apply(stack);
      expect(created).toBeGreaterThan(20);
      await stack.set({ image: "registry.example.com/everything:2.0.0", tokenOf: "2026-02" });
      expect(await apply(stack)).toMatchObject({ updated: 2, replaced: 1 });
      stack.program("");
      expect(await apply(stack)).toMatchObject({ deleted: created - 1 });
    });
  });
});
