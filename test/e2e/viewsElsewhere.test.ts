// Fleets whose Machines are resources of their own (views) in promotions and imports of organizations, with the real CLI.
import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { digest, done, image, prepare, type Prepared } from "../support/promotion.ts";
import { counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const plugin = "pulumi-machines-plugin";

/** The Machines and volumes that a state lists below its fleets. */
const viewsIn = (stack: Stack, of?: string): readonly string[] =>
  stack
    .resources(of)
    .filter(({ viewOf }) => viewOf !== undefined)
    .map(({ urn }) => urn.slice(urn.lastIndexOf("$") + 1))
    .sort();

describe("promotions of fleets whose Machines are resources", () => {
  let all: Prepared;
  let stack: Stack;

  const views = (of: string, value: boolean) =>
    stack.ok("config", "set", "machines:fleetViews", String(value), "--stack", of);
  const up = (of: string) => stack.ok("up", "--yes", "--skip-preview", "--stack", of);
  const promote = async (tag: string): Promise<string> => {
    await stack.ok("config", "set", "image", image(tag), "--stack", "dev");
    await up("dev");
    return done(all.npm("promote", "dev", "staging", "--yes", "--by", "bob"));
  };
  const expectHealthy = async (letter: string): Promise<void> => {
    expect(await all.releaseOf("staging")).toMatchObject({ digest: digest(letter), machines: { length: 1 } });
    expect(await done(all.npm("status", "staging"))).toMatch(/^staging .* 1 healthy\n$/m);
    expect(counts(await up("staging"))).not.toHaveProperty("updated");
  };

  beforeAll(async () => {
    all = await prepare("views", plugin);
    ({ stack } = all);
    for (const name of ["staging", "prod"]) rmSync(join(stack.dir, `Pulumi.${name}.yaml`));
    const settings = (name: "dev" | "staging") => ({
      "machines:endpoint": all.service.url,
      "machines:organization": `acme-${name}`,
      "machines:token": all.tokens[name],
    });
    for (const [tag, letter] of ["a", "b", "c", "d"].entries()) await all.list(`1.${tag}.0`, digest(letter));
    await stack.init(settings("dev"));
    await views("dev", true);
    await stack.ok("stack", "init", "staging");
    await stack.set({ ...settings("staging"), before: "dev", sourceToken: all.tokens["dev-read"] });
  });
  afterAll(() => all.close());

  test("a stack with them is promoted to one without them", async () => {
    const output = await promote("1.0.0");
    expect(output).toMatch(/^ {2}created {3}Fleet web$/m);
    expect(output).toMatch(/cost {6}about 0\.00 -> 3\.\d+ USD a month/);
    expect(output).not.toContain("FleetMachine");
    expect([viewsIn(stack, "dev").length, viewsIn(stack, "staging")]).toEqual([1, []]);
    await expectHealthy("a");
  });

  test("to one that begins to have them, and to one that has them, whose Machines count once", async () => {
    await views("staging", true);
    await promote("1.1.0");
    expect(viewsIn(stack, "staging")).toHaveLength(1);
    await expectHealthy("b");
    const output = await promote("1.2.0");
    expect(output).toMatch(/^ {2}updated {3}Fleet web\b/m);
    expect(output).toMatch(/^ {2}cost {6}about (3\.\d+) -> \1 USD a month$/m);
    await expectHealthy("c");
  });

  test("one without them is promoted to one with them, which goes back", async () => {
    await views("dev", false);
    await promote("1.3.0");
    expect([viewsIn(stack, "dev"), viewsIn(stack, "staging").length]).toEqual([[], 1]);
    await expectHealthy("d");
    await done(all.npm("promote", "staging", "--rollback", "--yes", "--by", "carol"));
    expect(viewsIn(stack, "staging")).toHaveLength(1);
    await expectHealthy("c");
  });
});

describe("an organization with a fleet whose Machines are resources", () => {
  let service: TestService;
  beforeAll(async () => (service = await startService()));
  afterAll(() => service.close());

  const program = `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "shop" });
new machines.Fleet("web", {
  app: app.id,
  name: "web",
  regions: { ams: 2, fra: 1 },
  config: { image: "shop:1" },
  volume: { path: "/data", sizeGb: 1 },
  deleteVolumes: true,
});
new machines.Machine("alone", { app: app.id, name: "alone", region: "ams", config: { image: "shop:1" } });
`;
  const settings = () => ({ "machines:endpoint": service.url, "machines:token": service.token });

  /** Runs `npx pulumi-machines import`, which only reads. */
  const write = async (stack: Stack, ...args: string[]): Promise<string> => {
    const before = service.requests.length;
    const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const output = await new Promise<string>((resolve, reject) => {
      execFile(command, ["import", ...args], { cwd: stack.dir, env: stack.env }, (error, out, err) =>
        error === null ? resolve(out) : reject(new Error(out + err)),
      );
    });
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    return output;
  };

  test("its stack holds all of it, and another one imports the fleet once and has no change after it shows them", async () => {
    const owner = new Stack(inject("installed"), "views-owner", plugin);
    owner.program(program);
    await owner.init({ ...settings(), "machines:fleetViews": "true" });
    expect(counts(await owner.up())).toEqual({ created: 10 });
    expect(viewsIn(owner)).toHaveLength(6);
    const held = await write(owner, "--org", "personal", "--force");
    expect(held).toContain("The stack holds all of them.");

    const stack = new Stack(inject("installed"), "views-import", plugin);
    await stack.init({ ...settings(), "machines:fleetViews": "true" });
    await write(stack, "--org", "personal");
    const { resources } = JSON.parse(readFileSync(join(stack.dir, "import.json"), "utf8")) as {
      resources: { type: string; id: string }[];
    };
    expect(resources.map(({ type }) => type.split(":").at(-1)).sort()).toEqual(["App", "Fleet", "Machine"]);
    await stack.ok("import", "--file", "import.json", "--generate-code=false", "--protect=false", "--yes");
    const requests = service.requests.length;
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    const sent = service.requests.slice(requests).map(({ operation }) => operation ?? "");
    // The fleet notes whose its Machines are now, which restarts none.
    expect(sent.filter((operation) => /\.(create|update|delete|destroy|stop|start|restart)$/.test(operation))).toEqual(
      [],
    );
    const machinesIn = (of: Stack) => viewsIn(of).filter((name) => name.includes("FleetMachine"));
    expect(machinesIn(stack)).toEqual(machinesIn(owner));
    // A volume of another stack has its own name.
    expect(viewsIn(stack)).toHaveLength(6);
    expect(counts(await stack.up())).toEqual({ unchanged: 10 });
    expect(await write(stack, "--org", "personal")).toContain("The stack holds all of them.");
    const live = await send<unknown[]>(service, "GET", "/v1/apps/shop/machines");
    expect(live).toHaveLength(4);
  });
});
