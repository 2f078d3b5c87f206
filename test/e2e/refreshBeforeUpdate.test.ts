// A fleet that the engine reads before each diff: `up` sees and repairs what others have changed, without a refresh.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("shop", { name: "shop" });
new machines.Fleet("web", {
  app: app.id,
  regions: { ams: 2, fra: 1 },
  config: { image: settings.require("image"), env: { MACHINES_SIMULATE: settings.get("simulate") ?? "" } },
  strategy: settings.getObject("strategy") ?? { type: "rolling" },
}, { ignoreChanges: settings.getObject("ignored") });
`;

interface Live {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly config: { readonly image: string };
}

describe("a fleet with the plugin", () => {
  let service: TestService;
  let stack: Stack;
  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "read-first", "pulumi-machines-plugin");
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, image: "shop:1" });
    expect(counts(await stack.up())).toEqual({ created: 3 });
  });
  afterAll(() => service.close());

  const live = () => send<Live[]>(service, "GET", "/v1/apps/shop/machines");
  const states = async () => (await live()).map(({ state }) => state);
  const stop = (machine: Live | undefined) =>
    send(service, "POST", `/v1/apps/shop/machines/${machine?.id ?? ""}/stop`, {});
  const destroyOne = async (name: string) => {
    const one = (await live()).find((machine) => machine.name === name);
    await send(service, "DELETE", `/v1/apps/shop/machines/${one?.id ?? ""}?force=true`);
  };
  /** The requests of a run that list the Machines of the App. */
  const listsIn = async (run: () => Promise<unknown>): Promise<number> => {
    const from = service.requests.length;
    await run();
    return service.requests.slice(from).filter(({ operation }) => operation === "machines.list").length;
  };

  test("a fleet with the plugin has nothing to do without drift, and costs one list", async () => {
    expect(stack.resources().find(({ urn }) => urn === stack.urn("Fleet", "web"))).toMatchObject({
      refreshBeforeUpdate: true,
    });
    const lists = await listsIn(async () => expect(counts(await stack.up())).toEqual({ unchanged: 3 }));
    expect(lists).toBe(1);
    await stack.ok("preview", "--expect-no-changes");
    await stack.ok("up", "--yes", "--expect-no-changes");
  });

  test("a fleet with the plugin starts a Machine that was stopped by hand; the preview shows it, and changes nothing", async () => {
    await stop((await live())[0]);
    expect((await stack.preview())["web"]).toMatchObject({ op: "update" });
    expect((await states()).sort()).toEqual(["started", "started", "stopped"]);
    const output = await stack.up();
    expect(output).toMatch(/Fleet shop\/web was changed outside of this program: .* is stopped and not ready\. /);
    expect(counts(output)).toMatchObject({ updated: 1 });
    expect(await states()).toEqual(["started", "started", "started"]);
    expect(counts(await stack.up())).toEqual({ unchanged: 3 });
  });

  test("a fleet with the plugin creates a Machine that is missing, but not if the program ignores the counts", async () => {
    await destroyOne("web-ams-2");
    await stack.set({ ignored: JSON.stringify(["regions"]) });
    expect(counts(await stack.up())).toEqual({ unchanged: 3 });
    expect(await live()).toHaveLength(2);
    await stack.set({ ignored: "[]" });
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect((await live()).map(({ name }) => name).sort()).toEqual(["web-ams-1", "web-ams-2", "web-fra-1"]);
  });

  test("a fleet with the plugin is created again if all of its Machines are gone", async () => {
    for (const { name } of await live()) await destroyOne(name);
    await stack.up();
    expect(await states()).toEqual(["started", "started", "started"]);
    expect(counts(await stack.up())).toEqual({ unchanged: 3 });
  });

  test("a fleet with the plugin is not read for another target", async () => {
    await stop((await live())[0]);
    const target = () => stack.ok("up", "--yes", "--skip-preview", "--target", stack.urn("App", "shop"));
    expect(await listsIn(target)).toBe(0);
    await stack.ok("up", "--yes", "--skip-preview", "--target", stack.urn("Fleet", "web"));
    expect(await states()).toEqual(["started", "started", "started"]);
  });

  test("a fleet with the plugin waits with its canaries", async () => {
    const strategy = { type: "canary", count: 1, observe: "0s", promote: "manual" };
    await stack.set({ image: "shop:2", strategy: JSON.stringify(strategy) });
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect(counts(await stack.up())).toEqual({ unchanged: 3 });
    expect(stack.state()["web"]?.outputs).toMatchObject({ rollout: "canary", committed: expect.anything() as unknown });
    await stack.set({ strategy: JSON.stringify({ type: "rolling" }) });
    await stack.up();
    expect((await live()).map(({ config }) => config.image)).toEqual(["shop:2", "shop:2", "shop:2"]);
  });

  test("a fleet with the plugin tries a rollout that failed again, and repairs what it left", async () => {
    await stack.set({ image: "shop:3", simulate: "crash" });
    expect(await stack.fails("up", "--yes", "--skip-preview")).toContain("the rollout of Fleet shop/web stopped");
    expect(stack.state()["web"]?.initErrors).toHaveLength(1);
    expect(await stack.fails("up", "--yes", "--skip-preview")).toContain("the rollout of Fleet shop/web stopped");
    await stack.set({ image: "shop:2", simulate: "" });
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    expect([await states(), stack.state()["web"]?.initErrors]).toEqual([["started", "started", "started"], undefined]);
    expect(counts(await stack.up())).toEqual({ unchanged: 3 });
  });

  test("a fleet with the plugin is read with the token of this run", async () => {
    const { token } = await send<{ token: string }>(service, "POST", "/v1/apps/shop/deploy_token", {});
    await stack.set({ "machines:token": token });
    await stop((await live())[0]);
    expect(counts(await stack.up())).toMatchObject({ updated: 1 });
    await stack.set({ "machines:token": service.token });
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
