import { describe, expect, test } from "vitest";
import { redundancy } from "../../../policy/policies/redundancy.ts";
import type { MachineConfig } from "../../../policy/resources.ts";
import { checkStack, unknownText, type Declared } from "../../support/policies.ts";

const app = (name: string): Declared => ({ type: "App", name, props: { name: `${name}-x1` } });
const machine = (
  of: { readonly app?: string; readonly madeOf?: string },
  region = "ams",
  config: Partial<MachineConfig> = {},
): Declared => ({
  type: "Machine",
  name: "machine",
  props: { app: of.app ?? unknownText, config: { image: "shop", ...config }, region },
  ...(of.madeOf !== undefined && { madeOf: { app: [of.madeOf] } }),
});
const run = (declared: readonly Declared[], config: object = { apps: ["*"] }) =>
  checkStack(redundancy, declared, { config });
const production = { metadata: { environment: "production" } };
const few = (name: string, count: string, wanted = 2) => `${name}: It has ${count}; at least ${wanted} are wanted.`;

describe("redundancy", () => {
  test("the policy applies only to Apps marked as production", async () => {
    expect(await checkStack(redundancy, [app("a"), machine({ madeOf: "a" })])).toEqual({ violations: [] });
  });

  test.each<[string, Declared[]]>([
    ["created from the App, at a preview", [machine({ madeOf: "a" }), machine({ madeOf: "a" })]],
    ["with its literal name", [machine({ app: "a-x1" }), machine({ app: "a-x1" })]],
    ["one of each kind", [machine({ app: "a-x1" }), machine({ madeOf: "a" })]],
  ])("the policy counts Machines %s", async (_, declared) => {
    expect(await run([app("a"), ...declared])).toEqual({ violations: [] });
    expect(await run([app("a"), ...declared.slice(1)])).toEqual({ violations: [few("a", "1 Machine")] });
  });

  test("the policy counts Machines of both bindings", async () => {
    const declared = [app("a"), machine({ madeOf: "a" })];
    expect(
      await checkStack(redundancy, declared, { config: { apps: ["a"] }, binding: "pulumi-machines-plugin" }),
    ).toEqual({ violations: [few("a", "1 Machine")] });
  });

  test("the policy counts the Machines of every App separately, even if the Apps are not yet known", async () => {
    const declared = [app("a"), app("b"), machine({ madeOf: "a" }), machine({ madeOf: "b" }), machine({ madeOf: "b" })];
    expect(await run(declared)).toEqual({ violations: [few("a", "1 Machine")] });
  });

  test("the policy ignores an App without Machines unless it is named: others may create them, or it has none", async () => {
    expect(await run([app("a")])).toEqual({ violations: [] });
    expect(await run([app("a")], { apps: ["a"], regions: 2 })).toEqual({ violations: [few("a", "0 Machines")] });
  });

  test.each<[string, Partial<MachineConfig>]>([
    ["jobs", { autoDestroy: true }],
    ["scheduled jobs", { schedule: "daily" }],
    ["standbys", { standbys: ["a/1"] }],
  ])("the policy does not count %s", async (_, config) => {
    const declared = [app("a"), machine({ madeOf: "a" }), machine({ madeOf: "a" }, "ams", config)];
    expect(await run(declared)).toEqual({ violations: [few("a", "1 Machine")] });
  });

  test("the policy counts Machines that stop when idle", async () => {
    const services = [{ protocol: "tcp" as const, internalPort: 80, autostop: "stop" }];
    const idle = machine({ madeOf: "a" }, "ams", { services, standbys: [] });
    expect(await run([app("a"), idle, idle])).toEqual({ violations: [] });
  });

  test("the policy selects Apps by name, and by their Machines' metadata", async () => {
    const declared = [
      app("shop"),
      app("blog"),
      machine({ madeOf: "shop" }),
      machine({ madeOf: "blog" }, "ams", production),
    ];
    expect(await run(declared, { apps: ["sho*"] })).toEqual({
      violations: [few("shop", "1 Machine"), few("blog", "1 Machine")],
    });
    expect(await run(declared, {})).toEqual({ violations: [few("blog", "1 Machine")] });
    expect(await run(declared, { mark: { environment: "production", tier: "1" } })).toEqual({ violations: [] });
    expect(await run(declared, { mark: {} })).toEqual({ violations: [] });
  });

  test("the policy selects an App by one marked Machine", async () => {
    const declared = [app("a"), machine({ madeOf: "a" }), machine({ madeOf: "a" }, "ams", production)];
    expect(await run(declared, { machines: 3 })).toEqual({ violations: [few("a", "2 Machines", 3)] });
  });

  test("the policy does not need an id that the service has not yet assigned", async () => {
    const made = (name: string) => ({
      ...app(name),
      props: { name: `${name}-x1`, appId: unknownText, id: unknownText },
    });
    const declared = [made("a"), made("b"), machine({ app: "b-x1" }), machine({ app: "b-x1" })];
    expect(await run(declared, { apps: ["a"] })).toEqual({ violations: [few("a", "0 Machines")] });
  });

  test("the policy does not count a cordoned Machine", async () => {
    const cordoned = machine({ madeOf: "a" });
    const declared = [
      app("a"),
      machine({ madeOf: "a" }),
      { ...cordoned, props: { ...cordoned.props, cordoned: true } },
    ];
    expect(await run(declared)).toEqual({ violations: [few("a", "1 Machine")] });
  });

  test("the policy uses the first requested region if a preview has no other, and no region for none", async () => {
    const config = { apps: ["*"], regions: 2 };
    const free = (region: string | undefined) => {
      const declared = machine({ madeOf: "a" });
      return { ...declared, props: { ...declared.props, region, fallbackRegions: ["ams"] } };
    };
    expect(await run([app("a"), free("ams"), free("fra")], config)).toEqual({ violations: [] });
    expect(await run([app("a"), free("ams"), free("ams")], config)).toEqual({
      violations: ["a: Its Machines are in 1 region; at least 2 are wanted."],
    });
    expect(await run([app("a"), free(undefined), free(undefined)], config)).toEqual({ violations: [] });
  });

  test("the policy accepts other numbers", async () => {
    const declared = [app("a"), machine({ madeOf: "a" }, "ams"), machine({ madeOf: "a" }, "ams")];
    expect(await run(declared, { apps: ["*"], machines: 3 })).toEqual({ violations: [few("a", "2 Machines", 3)] });
    expect(await run(declared.slice(0, 2), { apps: ["*"], machines: 1 })).toEqual({ violations: [] });
  });

  test("the policy counts regions by actual placement before requested placement", async () => {
    const config = { apps: ["*"], regions: 2 };
    const declared = [app("a"), machine({ madeOf: "a" }, "ams"), machine({ madeOf: "a" }, "fra")];
    expect(await run(declared, config)).toEqual({ violations: [] });
    const placed = declared.map((each) => ({ ...each, props: { ...each.props, placedRegion: "ams" } }));
    expect(await run(placed, config)).toEqual({
      violations: ["a: Its Machines are in 1 region; at least 2 are wanted."],
    });
  });

  test("the policy reads the placement of Machines only if necessary", async () => {
    const unplaced = (more: object) => {
      const declared = machine({ madeOf: "a" }, "ams");
      return { ...declared, props: { ...declared.props, placedRegion: unknownText, ...more } };
    };
    const fixed = [app("a"), unplaced({}), unplaced({ region: "fra" })];
    const free = [...fixed.slice(0, 2), unplaced({ fallbackRegions: ["fra"] })];
    expect(await run(free)).toEqual({ violations: [] });
    const config = { apps: ["*"], regions: 2 };
    expect(await run(fixed, config)).toEqual({ violations: [] });
    expect(await run(free, config)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^machine\.placedRegion is known only at the update/),
    });
  });

  test("the policy continues after an App whose Machines have unknown metadata", async () => {
    const declared = [
      app("a"),
      app("b"),
      machine({ madeOf: "a" }, "ams", { metadata: unknownText as never }),
      machine({ madeOf: "b" }, "ams", production),
    ];
    expect(await run(declared, {})).toEqual({
      violations: [few("b", "1 Machine")],
      unknown: expect.stringMatching(/^machine\.config\.metadata is known only at the update/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run([], { region: 2 })).rejects.toThrow('did you mean "regions"?');
  });
});
