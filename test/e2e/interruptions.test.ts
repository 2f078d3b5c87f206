// Ten Machines of one App and one new image, with the real CLI: how many are down at any moment, and where a bad image stops.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = (tag: string): string => `registry.example.com/shop:${tag}`;
const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("shop", { name: "shop" });
let before = undefined;
for (let i = 0; i < 10; i++)
  before = new machines.Machine("web" + i, {
    app: app.id,
    name: "web-" + i,
    region: settings.get("region") ?? "ams",
    config: {
      image: settings.require("image"),
      env: { MACHINES_SIMULATE: settings.get("simulate") ?? "", BEFORE: settings.get("chain") ? (before?.id ?? "") : "" },
      checks: { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s", gracePeriod: "1s" } },
    },
  }, { customTimeouts: { update: settings.get("patience") ?? "10m" } });
`;

interface Live {
  readonly name: string;
  readonly state: string;
  readonly checks?: readonly { readonly status: string }[];
  readonly config: { readonly image: string };
}

describe.each(bindings)("an update of ten Machines on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    // Machines that take a moment to start, so that many of them could be down at the same time.
    service = await startService({ delays: "believable" });
    stack = new Stack(inject("installed"), "interruptions", binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, image: image("1") });
    expect(counts(await stack.up())).toEqual({ created: 12 });
  });
  afterAll(() => service.close());

  const live = () => send<Live[]>(service, "GET", "/v1/apps/shop/machines");
  const isPassing = ({ state, checks = [] }: Live): boolean =>
    state === "started" && checks.every(({ status }) => status === "passing");
  const passing = async () => (await live()).filter(isPassing).length;
  const onImage = async (tag: string) => (await live()).filter((one) => one.config.image === image(tag)).length;

  /** Runs the CLI, and looks all the time at how many Machines pass. */
  const observed = async (...args: string[]) => {
    let least = Infinity;
    const over = new AbortController();
    const looks = (async () => {
      while (!over.signal.aborted) least = Math.min(least, await passing());
    })();
    const ran = await stack.run(["up", "--yes", "--skip-preview", ...args]);
    over.abort();
    await looks;
    return { ...ran, least };
  };

  test("a good image never takes down more than a third of them", async () => {
    await stack.set({ image: image("2") });
    const { code, output, least } = await observed();
    expect(code, output).toBe(0);
    expect(counts(output)).toMatchObject({ updated: 10 });
    expect(least).toBeGreaterThanOrEqual(7);
    expect(await onImage("2")).toBe(10);
  });

  test("an image whose checks never pass stops at the first third, and the rest is unchanged", async () => {
    await stack.set({ image: image("3"), simulate: "checks:critical", patience: "15s" });
    const { code, output, least } = await observed();
    expect(code).not.toBe(0);
    expect(output).toMatch(/was not changed, because the update of Machine shop\/\w+ has failed/);
    expect(least).toBe(7);
    expect([await passing(), await onImage("2")]).toEqual([7, 7]);
  });

  // The tests of interruptions have these two in process.
  test("the same image again takes down no more", async () => {
    const { code, least } = await observed();
    expect(code).not.toBe(0);
    expect(least).toBe(7);
    expect(await onImage("2")).toBe(7);
  });

  test("a good image repairs all of them, those that are down first", async () => {
    await stack.set({ image: image("4"), simulate: "", patience: "10m" });
    const { code, output, least } = await observed("--parallel", "200");
    expect(code, output).toBe(0);
    expect(least).toBeGreaterThanOrEqual(6);
    expect([await passing(), await onImage("4")]).toEqual([10, 10]);
  });

  test("one after the other, each is down alone", async () => {
    await stack.set({ image: image("5") });
    const { code, output, least } = await observed("--parallel", "1");
    expect(code, output).toBe(0);
    expect(least).toBe(9);
  });

  test("replacements that delete first are interruptions too", async () => {
    await stack.set({ region: "fra" });
    const { code, output, least } = await observed();
    expect(code, output).toBe(0);
    expect(least).toBeGreaterThanOrEqual(7);
    expect(await passing()).toBe(10);
  });

  test("with machines:maxUnavailable of 100%, all are updated at once", async () => {
    await stack.set({ image: image("6"), "machines:maxUnavailable": "100%" });
    const { code, output, least } = await observed("--parallel", "200");
    expect(code, output).toBe(0);
    expect(least).toBeLessThan(7);
  });

  test("Machines that depend on one another are updated and replaced in their order", async () => {
    await stack.set({ image: image("7"), region: "ams", chain: "true", "machines:maxUnavailable": "1" });
    for (const parallel of ["8", "1"]) {
      const { code, output, least } = await observed("--parallel", parallel);
      expect(code, output).toBe(0);
      expect(least).toBeGreaterThanOrEqual(9);
      expect(await passing()).toBe(10);
      await stack.set({ image: image("8"), region: "fra" });
    }
  });
});
