// Rollouts of a fleet with the real CLI: how many Machines are ready at any moment, where a bad image stops, and how a killed
// rollout continues (F50).
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { family, kill } from "../support/processes.ts";
import { bindings, bindingsOr, counts, Stack } from "../support/stack.ts";
import { allOr, isThorough } from "../support/extent.mts";
import { thoroughTest } from "../support/thorough.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = (tag: string): string => `registry.example.com/shop:${tag}`;
const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("shop", { name: "shop" });
const version = new machines.Release("release", { image: settings.require("image") });
const web = new machines.Fleet("web", {
  app: app.id,
  regions: settings.requireObject("regions"),
  config: {
    image: version.image,
    env: { TOKEN: pulumi.secret("c4n4ry-" + settings.require("image")), MACHINES_SIMULATE: settings.get("simulate") ?? "" },
    checks: { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s", gracePeriod: "1s" } },
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 80, handlers: ["http"] }] }],
  },
  strategy: settings.requireObject("strategy"),
  promoted: settings.getBoolean("promoted"),
  onFailure: settings.get("onFailure"),
  progressDeadline: settings.get("patience") ?? "10m",
});
export const names = web.machines.apply((all) => all.map(({ name }) => name));
export const rollout = web.rollout;
export { running as release };
const running = version.runBy(web);
`;

interface Live {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly region: string;
  readonly cordoned?: boolean;
  readonly checks?: readonly { readonly status: string }[];
  readonly config: { readonly image: string };
}

describe.each(bindingsOr("pulumi-machines"))("F50: a fleet on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService({ delays: "believable" });
    stack = new Stack(inject("installed"), "fleets", binding);
    stack.program(program);
    await stack.init({
      ...{ "machines:endpoint": service.url, "machines:token": service.token, image: image("1") },
      regions: JSON.stringify({ ams: 4, fra: 3, iad: 3 }),
      strategy: JSON.stringify({ type: "rolling", maxUnavailable: "20%" }),
    });
    expect(counts(await stack.up())).toEqual({ created: 4 });
  });
  afterAll(() => service.close());

  const object = (name: string, value: unknown) => stack.set({ [name]: JSON.stringify(value) });
  const live = () => send<Live[]>(service, "GET", "/v1/apps/shop/machines");
  const isReady = ({ state, cordoned, checks = [] }: Live): boolean =>
    state === "started" && cordoned !== true && checks.every(({ status }) => status === "passing");
  const ready = async () => (await live()).filter(isReady).length;
  const onImage = async (tag: string) => (await live()).filter((one) => one.config.image === image(tag)).length;

  /** Runs `up`, and looks all the time at how many Machines are ready, and how many there are. */
  const observed = async (...args: string[]) => {
    let [least, most] = [Infinity, 0];
    const over = new AbortController();
    const looks = (async () => {
      while (!over.signal.aborted) {
        const all = await live();
        least = Math.min(least, all.filter(isReady).length);
        most = Math.max(most, all.length);
        // An update of a Machine takes much longer. Without a pause, the CLI would have one core less.
        await pause(5);
      }
    })();
    const ran = await stack.run(["up", "--yes", ...args]);
    over.abort();
    await looks;
    return { ...ran, least, most };
  };

  test("a rolling update never takes more than its share, and the preview shows its steps", async () => {
    const { code, output, least, most } = await observed("--config", `image=${image("2")}`);
    expect(code, output).toBe(0);
    const preview = output.slice(0, output.indexOf("Updating ("));
    expect(preview).toContain("Fleet web: rolling update, at least 8 of 10 Machines are ready at every moment:");
    expect(preview.match(/^.*\d\. update web-/gm)).toHaveLength(5);
    expect(preview).toMatch(/ 1\. update web-ams-1, update web-ams-2$/m);
    expect(counts(output)).toMatchObject({ updated: 1 });
    expect([least, most, await onImage("2")]).toEqual([8, 10, 10]);
    if (isThorough) expect(counts(await stack.up())).toEqual({ unchanged: 4 });
  });

  const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");

  // In process: test/cli/status.test.ts and whose.test.ts.
  thoroughTest("it runs a release, and is no orphan", async () => {
    const { machines } = JSON.parse(await stack.ok("stack", "output", "release", "--json")) as { machines: string[] };
    expect(machines).toHaveLength(10);
    const status = await stack.run(["status", "dev"], { command, plain: true });
    expect([status.code, status.output]).toEqual([0, expect.stringMatching(/^dev .*shop:2.* 10 healthy/m)]);
    const none = await stack.run(["orphans"], { command, plain: true });
    expect([none.code, none.output]).toEqual([0, expect.stringContaining("no orphans")]);
  });

  // In process: the drift of a fleet in test/fleets/fleet.test.ts.
  thoroughTest("a refresh shows what others have changed, and up repairs it", async () => {
    const tag = (await live())[0]?.config.image.split(":").at(-1) ?? "";
    const [first, second] = await live();
    await send(service, "DELETE", `/v1/apps/shop/machines/${first?.id ?? ""}?force=true`);
    await send(service, "POST", `/v1/apps/shop/machines/${second?.id ?? ""}`, {
      config: { ...second?.config, image: image("other") },
    });
    const refreshed = await stack.ok("refresh", "--yes", "--skip-preview", "--diff");
    expect(refreshed).toMatch(/Machines in \w+: \d instead of \d/);
    expect(refreshed).toContain(`${second?.name ?? ""} (${second?.id ?? ""}): config.image differs`);
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect([await onImage(tag), await ready()]).toEqual([10, 10]);
    // No input differs when a Machine is stopped.
    const [third] = await live();
    await send(service, "POST", `/v1/apps/shop/machines/${third?.id ?? ""}/stop`, {});
    expect(await stack.ok("refresh", "--yes", "--skip-preview")).toContain("is stopped and not ready");
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect(await ready()).toBe(10);
  });

  thoroughTest("the next up continues a rollout that was killed", async () => {
    await stack.set({ image: image("3") });
    const { pid, ended } = stack.start(["up", "--yes", "--skip-preview"]);
    await expect.poll(() => onImage("3"), { timeout: 60_000 }).toBeGreaterThan(2);
    kill(family(pid));
    await ended;
    await stack.ok("cancel", "--yes");
    const { code, output, least } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect(least).toBeGreaterThanOrEqual(7);
    expect([(await live()).length, await onImage("3")]).toEqual([10, 10]);
  });

  thoroughTest("an image that never passes stops at its share", async () => {
    await stack.set({ image: image("4"), simulate: "checks:critical", patience: "6s" });
    const first = await observed("--skip-preview");
    expect(first.code).not.toBe(0);
    expect(first.output).toMatch(/the rollout of Fleet shop\/web stopped\. update web-ams-\d: /);
    expect(first.output).toMatch(
      /2 of 10 Machines have the new configuration \(web-ams-\d, web-ams-\d\), 8 have the old one, 8 are ready/,
    );
    expect([first.least, await ready(), await onImage("3")]).toEqual([8, 8, 8]);
    // The state has the previous configuration too.
    expect(await stack.ok("stack", "export", "--show-secrets")).toContain(`c4n4ry-${image("3")}`);
    expect(await stack.ok("stack", "export")).not.toContain("c4n4ry");
    expect(first.output).not.toContain("c4n4ry");
  });

  thoroughTest("no retry interrupts more Machines, and a good image first reaches those that are down", async () => {
    const again = await observed("--skip-preview");
    expect(again.code).not.toBe(0);
    expect([again.least, await onImage("3")]).toEqual([8, 8]);
    await stack.set({ image: image("5"), simulate: "", patience: "10m" });
    const { code, output, least } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect(least).toBeGreaterThanOrEqual(8);
    expect([await ready(), await onImage("5")]).toEqual([10, 10]);
  });

  thoroughTest("with a surge, the full capacity is kept", async () => {
    await object("strategy", { type: "rolling", maxUnavailable: "0", maxSurge: "2" });
    await stack.set({ image: image("6") });
    const { code, output, least, most } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect([least, most, (await live()).length, await onImage("6")]).toEqual([10, 12, 10, 10]);
  });

  thoroughTest("blue/green switches when all new Machines pass, and goes back when they do not", async () => {
    await object("strategy", { type: "bluegreen" });
    await stack.set({ image: image("7"), simulate: "checks:critical", patience: "6s", onFailure: "rollback" });
    const before = (await live()).map(({ id }) => id).sort();
    const failed = await observed("--skip-preview");
    expect(failed.code).not.toBe(0);
    expect(failed.output).toContain("0 of 10 Machines have the new configuration, 10 have the old one, 10 are ready.");
    expect(failed.least).toBe(10);
    expect((await live()).map(({ id }) => id).sort()).toEqual(before);
    await stack.set({ simulate: "", patience: "10m" });
    const { code, output, least, most } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect([least, most, await onImage("7")]).toEqual([10, 20, 10]);
    expect((await live()).some(({ id }) => before.includes(id))).toBe(false);
  });

  thoroughTest("a canary rollout waits for its promotion", async () => {
    await object("strategy", { type: "canary", count: 2, observe: "2s", promote: "manual" });
    await stack.set({ image: image("8") });
    const { code, output, least } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect([least, await onImage("8"), await ready()]).toEqual([8, 2, 10]);
    expect(await stack.ok("stack", "output", "rollout")).toBe("canary\n");
    expect(counts(await stack.up())).toEqual({ unchanged: 4 });
    await stack.set({ promoted: "true" });
    const promoted = await observed("--skip-preview");
    expect(promoted.code, promoted.output).toBe(0);
    expect([await onImage("8"), await ready()]).toEqual([10, 10]);
    expect(promoted.least).toBeGreaterThanOrEqual(7);
    await stack.set({ promoted: "false" });
  });

  thoroughTest("counts change without an interruption, and the newest leave first", async () => {
    await object("strategy", { type: "rolling" });
    await object("regions", { ams: 2, fra: 3, iad: 5 });
    const { code, output, least } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect(least).toBeGreaterThanOrEqual(8);
    const names = (await live()).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith("web-iad")).length).toBe(5);
    expect(names.filter((name) => name.startsWith("web-ams")).length).toBe(2);
  });

  thoroughTest("the strategy immediate updates all Machines together", async () => {
    await object("strategy", { type: "immediate" });
    await stack.set({ image: image("10") });
    const { code, output } = await observed("--skip-preview");
    expect(code, output).toBe(0);
    expect(await onImage("10")).toBe(10);
  });

  test("destroy leaves nothing on the service", async () => {
    await stack.ok("destroy", "--yes", "--skip-preview");
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});

const smallProgram = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("few", { name: "few" });
export const web = settings.getBoolean("removed") ? undefined : new machines.Fleet("web", {
  app: app.id,
  name: "web",
  regions: { ams: 3 },
  config: {
    image: settings.require("image"),
    env: { MACHINES_SIMULATE: settings.get("simulate") ?? "" },
    restart: { policy: "always" },
  },
  strategy: settings.requireObject("strategy"),
  promoted: settings.getBoolean("promoted"),
  progressDeadline: "30s",
}).machines;
`;

// In process: test/fleets/crashes.test.ts, gates.test.ts and owners.test.ts.
describe.each(allOr(bindings, []))("a fleet of three Machines on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  const rolling = { type: "rolling", maxUnavailable: "1", minHealthySeconds: 3 };

  beforeAll(async () => {
    service = await startService({ delays: "believable" });
    stack = new Stack(inject("installed"), "few", binding);
    stack.program(smallProgram);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, image: image("1") });
    await stack.set({ strategy: JSON.stringify({ ...rolling, minHealthySeconds: 0 }) });
    await stack.ok("up", "--yes", "--skip-preview");
  });
  afterAll(() => service.close());

  const live = () =>
    send<(Live & { readonly version?: string; readonly instance_id: string })[]>(
      service,
      "GET",
      "/v1/apps/few/machines",
    );
  const tags = async () => (await live()).map(({ config }) => config.image.split(":").at(-1)).sort();

  test("F53: a version that crashes again and again ends its rollout at the first Machine", async () => {
    const before = await live();
    await stack.set({ image: image("2"), simulate: "exit:1", strategy: JSON.stringify(rolling) });
    const output = await stack.fails("up", "--yes", "--skip-preview");
    expect(output).toMatch(/update web-ams-\d: Machine few\/\w+ .*exited \(code 1\)/);
    expect(output).toMatch(
      /1 of 3 Machines has the new configuration \(web-ams-\d\), 2 have the old one, 2 are ready\./,
    );
    const same = (await live()).filter(({ id, instance_id: version }) =>
      before.some((one) => one.id === id && one.instance_id === version),
    );
    expect(same).toHaveLength(2);
    await stack.set({ image: image("1"), simulate: "" });
    await stack.ok("up", "--yes", "--skip-preview");
    expect(await tags()).toEqual(["1", "1", "1"]);
  });

  test("F55: promoted that is left at true passes no later gate", async () => {
    const gated = { type: "canary", observe: "0s", promote: "manual", minHealthySeconds: 0 };
    await stack.set({ image: image("3"), strategy: JSON.stringify(gated) });
    const first = await stack.ok("up", "--yes", "--skip-preview");
    expect(first.replaceAll(/\s+/g, " ")).toContain(
      "1 of 3 Machines run the new configuration and wait for its promotion",
    );
    await stack.set({ promoted: "true" });
    await stack.ok("up", "--yes", "--skip-preview");
    expect(await tags()).toEqual(["3", "3", "3"]);
    await stack.set({ image: image("4") });
    await stack.ok("up", "--yes", "--skip-preview");
    await stack.ok("up", "--yes", "--skip-preview");
    expect(await tags()).toEqual(["3", "3", "4"]);
  });

  test("F54: a Machine of others whose host cannot be reached outlives the fleet", async () => {
    const config = { image: image("other") };
    const { id } = await send<{ id: string }>(service, "POST", "/v1/apps/few/machines", {
      ...{ name: "web-ams-9", region: "ams", config },
    });
    service.fail({ unreachableHost: { machines: [id] } });
    await stack.set({ removed: "true" });
    await stack.ok("up", "--yes", "--skip-preview");
    expect((await live()).map((one) => one.name)).toEqual(["web-ams-9"]);
  });
});
