// Regressions found with the real engine.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(bindings)("repairs on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "repairs", binding);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  const program = (web: string): void =>
    stack.program(`
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "repairs-shop" });
class Pair extends pulumi.ComponentResource {
  constructor(name: string) {
    super("test:index:Pair", name);
    for (const half of ["left", "right"])
      new machines.Machine(\`\${name}-\${half}\`, { app: app.id, config: { image: "registry.example.com/a:1" } }, { parent: this });
  }
}
new Pair("pair");
${web}
`);
  const machines = () =>
    send<{ id: string; name: string; state: string; region: string }[]>(
      service,
      "GET",
      "/v1/apps/repairs-shop/machines",
    );
  const fixed = (region: string) =>
    program(
      `new machines.Machine("web", { app: app.id, name: "fixed", region: "${region}", config: { image: "registry.example.com/a:1" } });`,
    );

  test("two Machines in one component do not wait for each other", async () => {
    program("");
    expect(counts(await stack.ok("up", "--yes"))).toEqual({ created: 5 });
  });

  // The tests of secrets have this in process, and nothingLost.test.ts for names in the program.
  test("secrets that other resources take over stay set", async () => {
    const values = async () => {
      const path = "/v1/apps/repairs-shop/secrets?show_secrets=true";
      const { secrets } = await send<{ secrets: { name: string; value: string }[] }>(service, "GET", path);
      return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
    };
    program(`new machines.Secret("old", { app: app.id, name: "A", value: "1" });
new machines.AppSecrets("all", { app: app.id, values: { B: "1", C: "1" } });`);
    await stack.up();
    program(`new machines.Secret("new", { app: app.id, name: "A", value: "2" });
new machines.Secret("b", { app: app.id, name: "B", value: "2" });
new machines.AppSecrets("all", { app: app.id, values: { C: "1" } });`);
    expect(await stack.up()).toContain("A of App repairs-shop stays set");
    expect(await values()).toEqual({ A: "2", B: "2", C: "1" });
    program("");
    await stack.up();
    expect(await values()).toEqual({});
  });

  // story.test.ts moves one without a preview.
  test("a Machine with a fixed name is replaced after a preview, and by force", async () => {
    fixed("ams");
    await stack.up();
    fixed("fra");
    const output = await stack.ok("up", "--yes");
    expect(counts(output)).toMatchObject({ replaced: 1 });
    expect((await machines()).filter(({ name }) => name === "fixed")).toMatchObject([
      { region: "fra", state: "started" },
    ]);
    const [before] = (await machines()).filter(({ name }) => name === "fixed");
    const urn = stack.urn("Machine", "web");
    await stack.run(["up", "--yes", "--skip-preview", "--target-replace", urn]);
    const { web } = stack.state();
    const after = (await machines()).filter(({ name }) => name === "fixed");
    // Two Machines cannot have one fixed name: the engine's order fails, and the state has the running Machine.
    expect(after.map(({ id }) => `repairs-shop/${id}`)).toEqual([web?.id]);
    expect(after[0]?.id).toBe(before?.id);
  });

  test("a forced replacement with a generated name: the new one runs, the old one is gone", async () => {
    const [before] = (await machines()).filter(({ name }) => name.startsWith("pair-left"));
    const urn = stack.urn("Machine", "pair-left", "test:index:Pair");
    await stack.ok("up", "--yes", "--skip-preview", "--target-replace", urn);
    const after = (await machines()).filter(({ name }) => name.startsWith("pair-left"));
    expect(after).toMatchObject([{ state: "started" }]);
    expect(after[0]?.id).not.toBe(before?.id);
    expect(stack.state()["pair-left"]?.id).toBe(`repairs-shop/${after[0]?.id ?? ""}`);
  });

  test("after a failed create refresh works, up repairs it, and destroy works", async () => {
    program(
      'new machines.Machine("web", { app: app.id, config: { image: "registry.example.com/a:1", env: { MACHINES_SIMULATE: "crash" } } });',
    );
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(/its main process exited \(code 1/);
    await stack.refresh();
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(/its main process exited \(code 1/);
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
