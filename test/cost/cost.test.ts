// What a change costs: the estimate of each type, and the report by App.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isObject } from "../../api/schema.ts";
import type { Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { estimateOf } from "../../provider/cost/estimate.ts";
import { pricesOf } from "../../provider/cost/prices.ts";
import { afterText, changeText, costReport, type CostReport, type Priced } from "../../provider/cost/report.ts";
import { roundPrices } from "../support/roundPrices.ts";

fc.configureGlobal({ seed: 1 });

const prices = pricesOf(roundPrices);
const estimate = (type: string, inputs: Values): [monthly: number, isLeast: boolean] => {
  const { monthly, isLeast } = estimateOf(type, inputs, prices);
  return [monthly, isLeast];
};

describe("the estimate of a resource", () => {
  test.each<[what: string, type: string, inputs: Values, monthly: number]>([
    ["the smallest Machine", "Machine", { config: {} }, 1 + 1],
    ["a guest", "Machine", { config: { guest: { cpuKind: "performance", cpus: 2, memoryMb: 4096 } } }, 20 + 16],
    ["a named size", "Machine", { config: { size: "shared-cpu-2x" } }, 2 + 2],
    ["a GPU", "Machine", { config: { guest: { gpuKind: "a10", gpus: 2 } } }, 2 + 200],
    ["a Machine that is kept stopped", "Machine", { config: {}, state: "stopped" }, 0],
    ["a fleet by region", "Fleet", { config: {}, regions: { ams: 2, fra: 1 } }, 3 * 2],
    ["a fleet by count", "Fleet", { config: {}, count: 5, spreadOver: ["ams", "fra"] }, 5 * 2],
    ["a fleet without Machines", "Fleet", { config: {}, regions: {} }, 0],
    ["standbys, which are stopped", "Fleet", { config: {}, regions: { ams: 2 }, standbys: 3 }, 2 * 2],
    ["the volumes of a fleet", "Fleet", { config: {}, regions: { ams: 2 }, volume: { path: "/d", sizeGb: 7 } }, 2 * 9],
    ["the default volumes of a fleet", "Fleet", { config: {}, regions: { ams: 2 }, volume: { path: "/d" } }, 2 * 5],
    ["a volume", "Volume", { sizeGb: 7 }, 7],
    ["a default volume", "Volume", {}, 3],
    ["a dedicated address", "IpAssignment", { type: "v4" }, 2],
    ["an address without a price", "IpAssignment", { type: "shared_v4" }, 0],
    ["a cluster", "PostgresCluster", { plan: "Basic", diskSizeGb: 20 }, 30 + 20],
    ["a default disk", "PostgresCluster", { plan: "basic" }, 30 + 10],
    ["a type without a price", "Secret", { name: "TOKEN" }, 0],
    ["a type of others with the name of a property", "constructor", {}, 0],
  ])("counts %s", (_, type, inputs, monthly) => expect(estimate(type, inputs)).toEqual([monthly, false]));

  test.each<[what: string, type: string, inputs: Values, monthly: number]>([
    ["a configuration", "Machine", { config: UNKNOWN }, 2],
    ["a guest", "Machine", { config: { guest: UNKNOWN } }, 2],
    ["the number of CPUs", "Machine", { config: { guest: { cpus: UNKNOWN, memoryMb: 1024 } } }, 1 + 4],
    ["the kind of a GPU", "Machine", { config: { guest: { gpuKind: UNKNOWN, gpus: 2, memoryMb: 256 } } }, 2],
    ["the power", "Machine", { config: {}, state: UNKNOWN }, 0],
    ["the number of Machines in a region", "Fleet", { config: {}, regions: { ams: 2, fra: UNKNOWN } }, 4],
    ["all regions", "Fleet", { config: {}, regions: UNKNOWN }, 0],
    ["the number of Machines", "Fleet", { config: {}, count: UNKNOWN, spreadOver: ["ams"] }, 0],
    ["a size", "Volume", { sizeGb: UNKNOWN }, 0],
    ["a type", "IpAssignment", { type: UNKNOWN }, 0],
    ["a plan", "PostgresCluster", { plan: UNKNOWN, diskSizeGb: 20 }, 20],
    ["a value of another type", "Volume", { sizeGb: "many" }, 0],
  ])("is the least if %s is unknown", (_, type, inputs, monthly) =>
    expect(estimate(type, inputs)).toEqual([monthly, true]),
  );

  test("where the Machines of a fleet are does not matter", () =>
    expect(estimate("Fleet", { config: {}, count: 3, spreadOver: UNKNOWN })).toEqual([6, false]));
});

/** Inputs of a resource, some of them unknown. */
const orUnknown = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 4, arbitrary }, { weight: 1, arbitrary: fc.constant(UNKNOWN) });
const config = orUnknown(
  fc.record({
    guest: orUnknown(
      fc.record(
        {
          cpuKind: orUnknown(fc.constantFrom("shared", "performance")),
          cpus: orUnknown(fc.constantFrom(1, 2, 4)),
          memoryMb: orUnknown(fc.integer({ min: 1, max: 40 }).map((n) => n * 256)),
          gpuKind: orUnknown(fc.constantFrom("a10", "l40s")),
        },
        { requiredKeys: [] },
      ),
    ),
  }),
);
const app = orUnknown(fc.constantFrom("a", "b", "c"));
const inputsOf: Readonly<Record<string, fc.Arbitrary<Values>>> = {
  Machine: fc.record({ app, config }),
  Fleet: fc.record({ app, config, regions: orUnknown(fc.record({ ams: fc.nat(5), fra: orUnknown(fc.nat(5)) })) }),
  Volume: fc.record({ app, sizeGb: orUnknown(fc.integer({ min: 1, max: 500 })) }),
  IpAssignment: fc.record({ app, type: orUnknown(fc.constantFrom("v4", "v6")) }),
  PostgresCluster: fc.record({ name: orUnknown(fc.constantFrom("m", "n")), plan: orUnknown(fc.constant("basic")) }),
  Secret: fc.record({ app }),
};
const priced: fc.Arbitrary<Priced> = fc.constantFrom(...Object.keys(inputsOf)).chain((type) =>
  fc.record({
    type: fc.constant(type),
    name: fc.string(),
    before: fc.option(inputsOf[type] ?? fc.constant({}), { nil: undefined }),
    after: fc.option(inputsOf[type] ?? fc.constant({}), { nil: undefined }),
  }),
);
const ofAll = (all: readonly Priced[]): CostReport | undefined => costReport(all, pricesOf());
/** Amounts have whole cents. */
const cents = (amount: number | null): number => Math.round((amount ?? 0) * 100);

describe("the report", () => {
  test("the total is exactly the sum of the Apps' rounded amounts", () =>
    fc.assert(
      fc.property(fc.array(priced), (all) => {
        const found = ofAll(all);
        if (found === undefined) return;
        for (const side of ["before", "after"] as const) {
          expect(cents(found[side])).toBe(found.apps.reduce((sum, one) => sum + cents(one[side]), 0));
        }
        if (found.change !== null) expect(cents(found.change)).toBe(cents(found.after) - cents(found.before));
      }),
    ));

  test("the difference of equal programs is 0, unknown values or not", () =>
    fc.assert(
      fc.property(fc.array(priced), (all) => {
        const found = ofAll(all.map((one) => ({ ...one, before: one.after })));
        for (const one of found ? [found, ...found.apps] : []) expect(one.change).toBe(0);
      }),
    ));

  test("the way back has the opposite difference", () =>
    fc.assert(
      fc.property(fc.array(priced), (all) => {
        const found = ofAll(all);
        const back = ofAll(all.map((one) => ({ ...one, before: one.after, after: one.before })));
        expect([back?.before, back?.after]).toEqual([found?.after, found?.before]);
        if (typeof found?.change === "number" && typeof back?.change === "number")
          expect(cents(back.change)).toBe(0 - cents(found.change));
      }),
    ));

  test("what is unknown never makes it cost more", () =>
    fc.assert(
      fc.property(fc.array(priced), fc.infiniteStream(fc.integer({ min: 0, max: 3 })), (all, chance) => {
        const hidden = (value: unknown): unknown => {
          if (value !== undefined && chance.next().value === 0) return UNKNOWN;
          return isObject(value) ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, hidden(v)])) : value;
        };
        for (const { type, after = {} } of all) {
          const masked = Object.fromEntries(Object.entries(after).map(([name, value]) => [name, hidden(value)]));
          expect(estimateOf(type, masked, pricesOf()).monthly).toBeLessThanOrEqual(
            estimateOf(type, after, pricesOf()).monthly,
          );
        }
      }),
    ));

  const machine = (of: string, cpus: unknown = 1): Values => ({ app: of, config: { guest: { cpus } } });

  test("a resource that moves leaves one App and reaches the other", () =>
    expect(
      costReport([{ type: "Machine", name: "web", before: machine("a"), after: machine("b") }], prices),
    ).toMatchObject({
      ...{ before: 2, after: 2, change: 0 },
      apps: [
        { place: "App a", before: 2, after: 0, change: -2 },
        { place: "App b", before: 0, after: 2, change: 2 },
      ],
    }));

  test("an unknown value makes the result the least, and names its resource", () => {
    const after = machine("a", UNKNOWN);
    const found = costReport([{ type: "Machine", name: "web", before: machine("a"), after }], prices);
    expect(found).toMatchObject({ isLeast: true, unknown: ["Machine web"] });
    expect(found && [afterText(found), changeText(found)]).toEqual(["at least 2.00", "at least 0.00"]);
  });

  test("a value that cannot be read before the change leaves the difference unknown", () => {
    const before = machine("a", UNKNOWN);
    const found = costReport([{ type: "Machine", name: "web", before, after: machine("a", 2) }], prices);
    expect(found?.change).toBeNull();
    expect(found && changeText(found)).toBe("unknown");
  });

  test("an App whose name is not known yet is named as in the program", () => {
    const one = { type: "Volume", name: "data", before: undefined, after: { app: UNKNOWN, sizeGb: 1 } };
    expect(costReport([{ ...one, appInProgram: "shop" }], prices)?.apps[0]?.place).toBe("App shop (new)");
    expect(costReport([one], prices)?.apps[0]?.place).toBe("App that is new");
  });

  test("there is none if nothing costs anything", () => {
    const free = { type: "IpAssignment", name: "six", before: undefined, after: { app: "a", type: "v6" } };
    expect(costReport([free, { ...free, type: "Secret" }], prices)).toBeUndefined();
    expect(costReport([], prices)).toBeUndefined();
  });
});
