import { describe, expect, test } from "vitest";
import { machinesPolicies } from "../../../policy/policies/index.ts";
import { redundancy } from "../../../policy/policies/redundancy.ts";
import { safeRollouts } from "../../../policy/policies/safeRollouts.ts";
import type { FleetInputs } from "../../../policy/resources.ts";
import { check, checkStack, repair, unknownText } from "../../support/policies.ts";

const alive = { checks: { alive: { type: "tcp" as const, port: 8080 } } };
const fleet = (more: Partial<FleetInputs> = {}): FleetInputs => ({
  app: "shop",
  regions: { ams: 2, iad: 1 },
  config: { image: "shop:1", ...alive },
  ...more,
});
const policy = (name: string) => {
  const found = machinesPolicies().find((one) => one.name === name);
  if (!found || !("validateResource" in found)) throw new Error(`no policy ${name}`);
  return found;
};

describe("safe-rollouts", () => {
  test.each<[string, Partial<FleetInputs>]>([
    ["rolling, as when left out", {}],
    ["blue/green", { strategy: { type: "bluegreen" } }],
    [
      "checks of a service",
      { config: { image: "a", services: [{ protocol: "tcp", internalPort: 80, checks: [{ type: "tcp" }] }] } },
    ],
  ])("the policy accepts %s", async (_, more) => {
    expect(await check(safeRollouts, "Fleet", fleet(more))).toEqual({ violations: [] });
  });

  test.each<[string, Partial<FleetInputs>, string]>([
    [
      "immediate",
      { strategy: { type: "immediate" } },
      'strategy.type is "immediate", which interrupts all Machines at once.',
    ],
    [
      "100%",
      { strategy: { maxUnavailable: "100%" } },
      'strategy.maxUnavailable is "100%", which lets all Machines be down.',
    ],
    [
      "no checks",
      { config: { image: "a" } },
      "config has no checks, so that a rollout cannot see whether a Machine works.",
    ],
  ])("the policy refuses %s", async (_, more, message) => {
    expect(await check(safeRollouts, "Fleet", fleet(more))).toEqual({ violations: [message] });
  });
});

describe("policies for Machines look into fleets", () => {
  test("policies for Machines check the images, services and metadata of fleets", async () => {
    const service = { protocol: "tcp", internalPort: 8081 } as const;
    const config = { image: "shop", services: [service] };
    const of = async (name: string, settings = {}) =>
      (await check(policy(name), "Fleet", fleet({ config }), { config: settings })).violations;
    expect(await of("images-pinned")).toEqual([expect.stringContaining("config.image")]);
    expect(await of("health-checks")).toEqual([expect.stringContaining("config.services[0] has no check")]);
    expect(await of("required-metadata", { metadata: { team: "*" } })).toEqual([expect.stringContaining("team")]);
    expect(await of("allowed-machine-sizes", { sizes: ["performance-1x"] })).toEqual([expect.stringContaining("size")]);
  });

  test("policies for Machines repair the template of fleets", async () => {
    const https = { port: 443, handlers: ["tls" as const, "http" as const] };
    const ports = [{ port: 80, handlers: ["http" as const], forceHttps: false }, https];
    const services = [{ protocol: "tcp" as const, internalPort: 80, ports }];
    const repaired = await repair(policy("https-forced"), "Fleet", fleet({ config: { image: "shop:1", services } }));
    expect(repaired?.["config"]).toMatchObject({ services: [{ ports: [{ forceHttps: true }, https] }] });
  });

  test("policies for Machines check each region of fleets, by its place", async () => {
    const allowed = { config: { regions: ["ams"] } };
    const said = await check(policy("allowed-regions"), "Fleet", fleet({ fallbackRegions: ["fra"] }), allowed);
    expect(said.violations).toEqual([
      "regions.iad is one that is not allowed. Allowed is ams.",
      "fallbackRegions[0] is one that is not allowed. Allowed is ams.",
    ]);
  });

  test("the budget and redundancy count the Machines of fleets", async () => {
    const one = { config: { monthly: 0.01 } };
    const cost = async (more: Partial<FleetInputs>) =>
      /costs ([\d.]+)/.exec((await check(policy("budget"), "Fleet", fleet(more), one)).violations[0] ?? "")?.[1];
    const [single, three] = [await cost({ regions: { ams: 1 } }), await cost({})];
    expect(Number(three)).toBeCloseTo(3 * Number(single), 1);
    const app = { type: "App", name: "shop", props: { name: "shop" } } as const;
    const declared = { type: "Fleet", name: "web", props: { ...fleet() }, madeOf: { app: ["shop"] } } as const;
    const run = (machines: number) =>
      checkStack(redundancy, [app, declared], { config: { apps: ["*"], machines, regions: 2 } });
    expect(await run(3)).toEqual({ violations: [] });
    expect(await run(4)).toEqual({ violations: ["shop: It has 3 Machines; at least 4 are wanted."] });
  });

  test("an unknown template is reported as unknown", async () => {
    const config = { image: unknownText, ...alive };
    expect(await check(policy("images-pinned"), "Fleet", fleet({ config }))).toHaveProperty("unknown");
  });
});
