// The Machines and volumes of a fleet as resources of their own (views), with `machines:fleetViews`.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { counts, errorsOf, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("shop", { name: "shop" });
new machines.Fleet(settings.get("fleet") ?? "web", {
  app: app.id,
  name: "web",
  regions: { ams: 2, fra: 1 },
  config: { image: settings.require("image"), env: { MACHINES_SIMULATE: settings.get("simulate") ?? "" } },
  volume: settings.getBoolean("volume") ? { path: "/data", sizeGb: 1 } : undefined,
  onFailure: "rollback",
  deleteVolumes: true,
}, { aliases: [{ name: "web" }] });
`;

interface Live {
  readonly id: string;
  readonly name: string;
}

let service: TestService;
beforeAll(async () => (service = await startService()));
afterAll(() => service.close());

async function stackOf(name: string, config: Readonly<Record<string, string>> = {}): Promise<Stack> {
  const stack = new Stack(inject("installed"), name, "pulumi-machines-plugin");
  stack.program(program.replaceAll('"shop"', `"${name}"`));
  const settings = { "machines:endpoint": service.url, "machines:token": service.token, image: "shop:1" };
  await stack.init({ ...settings, "machines:fleetViews": "true", ...config });
  return stack;
}

/** The views in the state: the name below the fleet, and what is known of each. */
const viewsIn = (stack: Stack): Record<string, Record<string, unknown>> =>
  Object.fromEntries(
    stack
      .resources()
      .filter((one) => one.viewOf !== undefined)
      .map(({ urn, inputs, outputs }) => [urn.slice(urn.lastIndexOf("$") + 1), { ...inputs, ...outputs }]),
  );

const machine = (app: string, name: string, fleet = "web"): string =>
  `machines:index:FleetMachine::${fleet}/${app}/${name}`;
const volume = (app: string, name: string): string => `machines:index:FleetVolume::web/${app}/${name}`;
const names = ["web-ams-1", "web-ams-2", "web-fra-1"];
const live = (app: string) => send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);

/** What a preview does, by the end of each name. */
async function planned(stack: Stack): Promise<Record<string, string>> {
  const steps = Object.values(await stack.preview());
  return Object.fromEntries(
    steps.map(({ name, op, changes }) => [name.slice(name.lastIndexOf("/") + 1), [op, ...changes].join(" ")]),
  );
}

describe("the Machines of a fleet as resources", () => {
  const app = "seen";
  let stack: Stack;
  let fleet = "web";
  beforeAll(async () => (stack = await stackOf(app)));

  test("a preview lists them, an up creates them in the state, and a second one changes nothing", async () => {
    expect(await planned(stack)).toMatchObject({ web: "create", "web-ams-1": "create", "web-fra-1": "create" });
    const output = await stack.up();
    expect(counts(output)).toEqual({ created: 6 });
    expect(output).toMatch(/FleetMachine web\/seen\/web-ams-1 +creating/);
    expect(output).toMatch(/FleetMachine web\/seen\/web-ams-1 creating .*created, and ready/);
    expect(Object.keys(viewsIn(stack)).sort()).toEqual(names.map((name) => machine(app, name)));
    expect(viewsIn(stack)[machine(app, "web-fra-1")]).toMatchObject({
      region: "fra",
      image: "shop:1",
      state: "started",
    });
    expect(counts(await stack.up())).toEqual({ unchanged: 6 });
    await stack.ok("refresh", "--yes", "--expect-no-changes");
  });

  thoroughTest("an update lists what changes, and shows each Machine while it is updated", async () => {
    await stack.set({ image: "shop:2" });
    expect(await planned(stack)).toMatchObject({ "web-ams-1": "update image", "web-ams-2": "update image" });
    const output = await stack.up();
    expect(counts(output)).toMatchObject({ updated: 4 });
    expect(output).toMatch(/FleetMachine web\/seen\/web-ams-2 +updating/);
    expect(viewsIn(stack)[machine(app, "web-ams-1")]).toMatchObject({ image: "shop:2" });
  });

  thoroughTest("a refresh removes one that is gone, and the next up creates it", async () => {
    const [gone] = (await live(app)).filter(({ name }) => name === "web-ams-2");
    await send(service, "DELETE", `/v1/apps/${app}/machines/${gone?.id ?? ""}?force=true`);
    expect(await stack.refresh()).toMatch(/FleetMachine web\/seen\/web-ams-2 deleted/);
    expect(Object.keys(viewsIn(stack))).toHaveLength(2);
    expect(await planned(stack)).toMatchObject({ "web-ams-2": "create" });
    expect(await stack.up()).toMatch(/\+ +machines:index:FleetMachine web\/seen\/web-ams-2/);
    expect(Object.keys(viewsIn(stack))).toHaveLength(3);
  });

  thoroughTest("a rollout that fails shows the error beside its Machine, and the state has what runs", async () => {
    await stack.set({ image: "shop:3", simulate: "crash" });
    const output = await stack.fails("up", "--yes", "--skip-preview");
    expect(errorsOf(output)).toMatchObject({
      "web/seen/web-ams-1": expect.stringContaining("its main process exited") as string,
    });
    for (const view of Object.values(viewsIn(stack))) expect(view).toMatchObject({ image: "shop:2", state: "started" });
    await stack.set({ image: "shop:2", simulate: "" });
    await stack.up();
    expect(counts(await stack.up())).toEqual({ unchanged: 6 });
  });

  test("they are no orphans", async () => {
    const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const { code, output } = await stack.run(["orphans"], { command, plain: true });
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining("no orphans") as string });
  });

  thoroughTest(
    "a fleet with them is not renamed by an alias, which the engine cannot do; it is after forget-views",
    async () => {
      fleet = "front";
      await stack.set({ fleet });
      expect(await stack.fails("up", "--yes", "--skip-preview")).toContain("npx pulumi-machines forget-views");
      const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
      const shown = await stack.run(["forget-views", "--dry-run"], { command, plain: true });
      expect(shown.output).toMatch(/^Fleet web: 3 views .*\nThis was a dry run/);
      expect(Object.keys(viewsIn(stack))).toHaveLength(3);
      const forgotten = await stack.run(["forget-views", "--yes"], { command, plain: true });
      expect(forgotten.code, forgotten.output).toBe(0);
      expect(viewsIn(stack)).toEqual({});
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 2 });
      expect(Object.keys(viewsIn(stack))).toContain(machine(app, "web-ams-1", fleet));
      expect(counts(await stack.up())).toEqual({ unchanged: 6 });
    },
  );

  thoroughTest("the first up after an import brings them", async () => {
    await stack.ok("state", "delete", stack.urn("Fleet", fleet), "--yes", "--target-dependents");
    expect(viewsIn(stack)).toEqual({});
    await stack.ok(
      "import",
      "machines:index:Fleet",
      fleet,
      `${app}/web`,
      "--yes",
      "--generate-code=false",
      "--protect=false",
    );
    expect(viewsIn(stack)).toEqual({});
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect(Object.keys(viewsIn(stack))).toHaveLength(3);
    expect(counts(await stack.up())).toEqual({ unchanged: 6 });
  });

  test("a destroy deletes them", async () => {
    expect(counts(await stack.destroy())).toEqual({ deleted: 6 });
    expect(stack.resources()).toEqual([]);
  });
});

thoroughTest("the volumes of a fleet are listed as its Machines are, and a secret image stays secret", async () => {
  const app = "stored";
  const image = "c4n4ry-image/in-a-registry";
  const stack = await stackOf(app, { volume: "true", image });
  stack.program(stack.read().replace('settings.require("image")', 'pulumi.secret(settings.require("image"))'));
  expect(Object.keys(await planned(stack))).toEqual(expect.arrayContaining(names));
  const output = await stack.up();
  expect(counts(output)).toEqual({ created: 9 });
  expect(output + JSON.stringify(stack.resources())).not.toContain(image);
  expect(viewsIn(stack)[volume(app, "web-ams-1")]).toMatchObject({ region: "ams", sizeGb: 1 });
  expect(counts(await stack.up())).toEqual({ unchanged: 9 });
  expect(counts(await stack.destroy())).toEqual({ deleted: 9 });
});
