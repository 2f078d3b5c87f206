import type { ResourceValidationPolicy, StackValidationPolicy } from "@pulumi/policy";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withExceptions } from "../../../policy/core/exceptions.ts";
import { budget } from "../../../policy/policies/budget.ts";
import { prices } from "../../../api/prices.ts";
import type { MachineGuest } from "../../../policy/resources.ts";
import { roundPrices } from "../../support/roundPrices.ts";
import { check, checkStack, unknownText } from "../../support/policies.ts";

fc.configureGlobal({ seed: 1 });

const machine = (guest: MachineGuest = {}, more: object = {}) => ({
  app: "shop",
  config: { image: "shop", guest },
  ...more,
});
const costs = (own: number, total: number, allowed: number) => [
  `By estimate it costs ${own.toFixed(2)} USD a month and takes the stack to ${total.toFixed(2)} USD; ${allowed.toFixed(2)} USD are allowed. The estimate counts what is declared as if it ran all month.`,
];

/** A policy with a budget, whose checks are of one stack. */
function stack(monthly: number | undefined, given: object = roundPrices) {
  const policy = budget();
  const config = { monthly, prices: given };
  return {
    machine: (name: string, guest?: MachineGuest, more?: object) =>
      check(policy, "Machine", machine(guest, more), { name, config }),
    volume: (name: string, sizeGb?: number) => check(policy, "Volume", { app: "shop", sizeGb }, { name, config }),
    address: (name: string, type: "v4" | "v6") =>
      check(policy, "IpAssignment", { app: "shop", type }, { name, config }),
    cluster: (name: string, inputs: object) => check(policy, "PostgresCluster", inputs, { name, config }),
  };
}

const dearest = Math.max(...Object.values(prices.gpu));

describe("budget", () => {
  test("the policy accepts everything until it is configured", async () => {
    const { machine, cluster } = stack(undefined);
    expect(await machine("a", { cpuKind: "performance", cpus: 16 })).toEqual({ violations: [] });
    expect(await cluster("b", { plan: "performance", diskSizeGb: 1000 })).toEqual({ violations: [] });
  });

  test.each([
    ["a shared CPU with 256 MiB", {}, {}, 1 + 1],
    ["performance CPUs with their memory", { cpuKind: "performance", cpus: 2 }, {}, 20 + 16],
    ["separate memory", { memoryMb: 1024 }, {}, 1 + 4],
    ["a GPU", { gpuKind: "a10" }, {}, 2 + 100],
    ["several GPUs", { gpuKind: "a10", gpus: 2 }, {}, 2 + 200],
    ["GPUs of a kind without a price, at the highest price", { gpuKind: "b20", gpus: 2 }, {}, 2 + 2 * dearest],
    ["GPUs without a kind", { gpus: 1 }, {}, 2 + dearest],
    ["a named size", undefined, { config: { image: "shop", size: "performance-1x" } }, 10 + 8],
    ["one that is started", {}, { state: "started" }, 2],
  ] as const)("the policy counts a Machine: %s", async (_, guest, more, cost) => {
    expect(await stack(cost).machine("a", guest, more)).toEqual({ violations: [] });
    expect(await stack(cost - 0.01).machine("a", guest, more)).toEqual({ violations: costs(cost, cost, cost - 0.01) });
  });

  test.each(["stopped", "suspended"])("the policy does not count a Machine that is kept %s", async (state) => {
    expect(await stack(0.01).machine("a", { cpus: 8 }, { state })).toEqual({ violations: [] });
  });

  test("the policy counts volumes, addresses and clusters", async () => {
    expect(await stack(1).volume("a", 2)).toEqual({ violations: costs(2, 2, 1) });
    // The default size of a volume.
    expect(await stack(1).volume("a")).toEqual({ violations: costs(3, 3, 1) });
    expect(await stack(1).address("a", "v4")).toEqual({ violations: costs(2, 2, 1) });
    expect(await stack(1).address("a", "v6")).toEqual({ violations: [] });
    expect(await stack(1).cluster("a", { plan: "Basic" })).toEqual({ violations: costs(40, 40, 1) });
    expect(await stack(1).cluster("a", { plan: "basic", diskSizeGb: 50 })).toEqual({ violations: costs(80, 80, 1) });
    expect(await stack(1).cluster("a", { fork: { cluster: "c" } })).toEqual({ violations: costs(10, 10, 1) });
  });

  test("the policy adds costs, and reports the resource that exceeds the budget", async () => {
    const { machine, volume, address } = stack(7);
    expect(await machine("a")).toEqual({ violations: [] });
    expect(await volume("b", 4)).toEqual({ violations: [] });
    expect(await address("c", "v4")).toEqual({ violations: costs(2, 8, 7) });
    // Free resources are never reported.
    expect(await address("d", "v6")).toEqual({ violations: [] });
  });

  test("the policy counts a resource once, with its last value: a preview checks it, and then an update", async () => {
    const { volume } = stack(5);
    for (const size of [4, 4, 5]) expect(await volume("a", size)).toEqual({ violations: [] });
    expect(await volume("b", 1)).toEqual({ violations: costs(1, 6, 5) });
    expect(await volume("a", 4)).toEqual({ violations: [] });
    expect(await volume("b", 1)).toEqual({ violations: [] });
  });

  test("the policy counts every stack separately", async () => {
    for (let i = 0; i < 3; i++) expect(await stack(5).volume("a", 4)).toEqual({ violations: [] });
  });

  test("the policy counts resources of both bindings", async () => {
    const policy = budget();
    const config = { monthly: 5, prices: roundPrices };
    const inputs = { app: "shop", sizeGb: 3 };
    expect(await check(policy, "Volume", inputs, { config })).toEqual({ violations: [] });
    expect(await check(policy, "Volume", inputs, { config, binding: "pulumi-machines-plugin" })).toEqual({
      violations: costs(3, 6, 5),
    });
  });

  test("the policy has prices, and individual ones can be overridden", async () => {
    const { volumeGb } = prices;
    expect(await stack(0.01, {}).volume("a", 10)).toEqual({ violations: costs(volumeGb * 10, volumeGb * 10, 0.01) });
    expect(await stack(0.01, { memoryGb: 0 }).volume("a", 10)).toEqual({
      violations: costs(volumeGb * 10, volumeGb * 10, 0.01),
    });
    // Also inside a table: another price of one plan keeps the others.
    const given = { postgres: { basic: 1 }, postgresDiskGb: 0 };
    expect(await stack(0.01, given).cluster("a", { plan: "basic" })).toEqual({ violations: costs(1, 1, 0.01) });
    const { scale = 0 } = prices.postgres;
    expect(await stack(0.01, given).cluster("a", { plan: "scale" })).toEqual({ violations: costs(scale, scale, 0.01) });
  });

  test("prints the currency of the prices", async () => {
    expect(await stack(1, { volumeGb: 1, currency: "EUR" }).volume("a", 2)).toEqual({
      violations: [expect.stringContaining("2.00 EUR a month")],
    });
  });

  test("the policy counts unknown values at the update", async () => {
    const { machine, volume } = stack(5);
    expect(await machine("a", { cpus: unknownText as never })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^config\.guest\.cpus is known only at the update/),
    });
    expect(await volume("b", 5)).toEqual({ violations: [] });
    expect(await machine("a", { cpus: 1 })).toEqual({ violations: costs(2, 7, 5) });
  });

  test("the policy leaves out a resource with an exception, whatever the order of the resources is", async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 2, maxLength: 6 });
    const cases = sizes.chain((all) =>
      fc.record({
        volumes: fc.constant(all.map((size, i) => ({ name: `v${i}`, size }))),
        order: fc.shuffledSubarray([...all.keys()], { minLength: all.length }),
        exempt: fc.nat({ max: all.length - 1 }).map((i) => `v${i}`),
        monthly: fc.integer({ min: 1, max: 20 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ({ volumes, order, exempt, monthly }) => {
        const config = {
          ...{ monthly, prices: roundPrices },
          exceptions: [{ resource: exempt, type: "Volume", reason: "it is paid by others", until: "9999-12-31" }],
        };
        const [policy, report] = withExceptions([budget()]) as [ResourceValidationPolicy, StackValidationPolicy];
        const violations: string[] = [];
        // A preview, and then an update.
        for (const i of [...order, ...order]) {
          const { name = "", size = 0 } = volumes[i] ?? {};
          const inputs = { app: "shop", sizeGb: size };
          violations.push(...(await check(policy, "Volume", inputs, { name, config })).violations);
        }
        const counted = volumes.filter(({ name }) => name !== exempt).reduce((sum, { size }) => sum + size, 0);
        expect(violations.length > 0).toBe(counted > monthly);
        expect(violations.join("\n")).not.toContain(`${exempt}: `);
        expect((await checkStack(report, [])).violations).toEqual([
          `${exempt}: budget does not apply to it until 9999-12-31: it is paid by others`,
        ]);
      }),
    );
  });

  test("the policy refuses unknown settings", async () => {
    const config = { montly: 5 };
    await expect(check(budget(), "Volume", { app: "shop" }, { config })).rejects.toThrow('did you mean "monthly"?');
    await expect(stack(5, { memory: 5 }).volume("a")).rejects.toThrow("memory");
  });
});
