// What `pulumi-machines cost` reads from a plan of the engine and a state.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { requirePlanOf } from "../../cli/cost/cost.ts";
import { urnsBefore } from "../../cli/cost/aliases.ts";
import { pricedIn } from "../../cli/cost/plan.ts";
import { readPlan, type Alias } from "../../cli/savedPlan.ts";
import { jsonOf, markdownOf, textOf } from "../../cli/cost/text.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { pricesOf } from "../../provider/cost/prices.ts";
import { costReport } from "../../provider/cost/report.ts";
import { sealed, shapes, urnOf, type Shape } from "./exports.ts";

const tokenOf = (shape: Shape, type: string): string =>
  shape === "dynamic" ? `pulumi-nodejs:dynamic/machines:${type}` : `machines:index:${type}`;

describe.each(shapes)("a plan of %s resources", (shape) => {
  const urn = (type: string, name: string): string => urnOf(shape, type, name);
  const held = (type: string, name: string, inputs: object, more: object = {}) => ({
    ...{ urn: urn(type, name), type: tokenOf(shape, type), custom: true, id: "shop/1", inputs, ...more },
  });
  const volume = (name: string, sizeGb: unknown, more: object = {}) =>
    held("Volume", name, { app: "shop", sizeGb }, more);
  const priced = (resources: readonly object[], resourcePlans: object) =>
    pricedIn(
      readPlan(JSON.stringify({ resourcePlans }), "plan.json"),
      JSON.stringify({ deployment: { resources } }),
      "x",
    );
  const sizes = (resources: readonly object[], plans: object) =>
    Object.fromEntries(
      priced(resources, plans).map(({ name, before, after }) => [name, [before?.["sizeGb"], after?.["sizeGb"]]]),
    );
  const same = { goal: { inputDiff: {} }, steps: ["same"] };

  test("what is unchanged, changed, new, replaced and removed has its inputs before and afterwards", () =>
    expect(
      sizes([volume("same", 1), volume("grown", 1), volume("default", 1), volume("moved", 1), volume("gone", 1)], {
        [urn("Volume", "same")]: same,
        [urn("Volume", "grown")]: { goal: { inputDiff: { updates: { sizeGb: 2 } } }, steps: ["update"] },
        [urn("Volume", "default")]: { goal: { inputDiff: { deletes: ["sizeGb"] } }, steps: ["update"] },
        [urn("Volume", "moved")]: {
          goal: { inputDiff: { updates: { sizeGb: 4 } } },
          steps: ["create-replacement", "replace", "delete-replaced"],
        },
        [urn("Volume", "gone")]: { steps: ["delete"] },
        [urn("Volume", "new")]: { goal: { inputDiff: { adds: { app: "shop", sizeGb: 5 } } }, steps: ["create"] },
      }),
    ).toEqual({
      ...{ same: [1, 1], grown: [1, 2], default: [1, undefined], moved: [1, 4], gone: [1, undefined] },
      new: [undefined, 5],
    }));

  test("what has no part in an update stays", () =>
    expect(sizes([volume("unnamed", 1), volume("kept", 2)], { [urn("Volume", "kept")]: { steps: ["same"] } })).toEqual({
      unnamed: [1, 1],
      kept: [2, 2],
    }));

  test("an original that waits for its deletion, a view, and what is only read are not counted", () =>
    expect(
      sizes(
        [
          volume("replaced", 1, { delete: true }),
          volume("view", 1, { viewOf: "urn" }),
          volume("read", 1, { external: true }),
        ],
        { [urn("Volume", "read")]: { goal: { inputDiff: {} }, steps: ["read"] } },
      ),
    ).toEqual({}));

  test("secrets and values of an import are not known", () =>
    expect(
      sizes([volume("secret", sealed)], {
        [urn("Volume", "secret")]: same,
        [urn("Volume", "imported")]: { goal: { inputDiff: {} }, steps: ["import"] },
      }),
    ).toEqual({ secret: [UNKNOWN, UNKNOWN], imported: [undefined, UNKNOWN] }));

  test("an App that is new is named as in the program", () => {
    const adds = { app: UNKNOWN, sizeGb: 1 };
    const goal = { inputDiff: { adds }, propertyDependencies: { app: [urn("App", "shop")] } };
    const [found] = priced([], { [urn("Volume", "new")]: { goal, steps: ["create"] } });
    expect(found?.appInProgram).toBe("shop");
  });
});

// The plan and the state before it, as the CLI wrote them for the sequence in test/e2e/cost.test.ts, without what is not read here.
test("a resource that is renamed or moved is one", () => {
  const text = readFileSync("test/cli/renamed.json", "utf8");
  const sizes = pricedIn(readPlan(text, "plan.json"), text, "state.json").map(
    ({ type, name, before, after }) => [`${type} ${name}`, before?.["sizeGb"], after?.["sizeGb"]] as const,
  );
  expect(sizes.filter(([name]) => name !== "App shop").toSorted()).toEqual([
    ["Volume jobs", 20, 20],
    ["Volume moved", 200, 200],
    ["Volume new", 100, 100],
    ["Volume new-data", 10, 10],
    ["Volume new-inner-logs", 40, 40],
    ["Volume store", 1, 1],
  ]);
});

describe("an alias", () => {
  const at = (types: string, name: string) => `urn:pulumi:dev::shop::${types}::${name}`;
  const urn = at("my:index:Tier$machines:index:Volume", "data");
  const parent = at("my:index:Tier", "tier");
  const group = at("my:index:Group", "group");
  const before = (alias: Alias, ...known: readonly string[]) =>
    urnsBefore(
      {
        [urn]: { goal: { parent, structuredAliases: [alias] } },
        [at("my:index:Layer", "layer")]: { goal: { structuredAliases: [{ Type: "my:index:Group", Name: "group" }] } },
      },
      new Set(known),
    )(urn);

  test.each<[what: string, alias: Alias, was: string]>([
    ["another URN", { URN: "urn:pulumi:a::b::c::d" }, "urn:pulumi:a::b::c::d"],
    ["another name", { Name: "logs" }, at("my:index:Tier$machines:index:Volume", "logs")],
    ["another type", { Type: "a:b:C" }, at("my:index:Tier$a:b:C", "data")],
    ["another stack", { Stack: "old" }, urn.replace(":dev::", ":old::")],
    ["another project", { Project: "old" }, urn.replace("::shop::", "::old::")],
    ["another parent", { Parent: group }, at("my:index:Group$machines:index:Volume", "data")],
    ["the stack as parent", { Parent: at("pulumi:pulumi:Stack", "shop-dev") }, at("machines:index:Volume", "data")],
    ["no parent", { NoParent: true }, at("machines:index:Volume", "data")],
    [
      "a parent that is renamed",
      { Parent: at("my:index:Layer", "layer") },
      at("my:index:Group$machines:index:Volume", "data"),
    ],
  ])("says that a resource had %s", (_, alias, was) => {
    expect(before(alias, group, was)).toBe(was);
    expect(before(alias, group)).toBe(undefined);
  });

  test("that refers to its own resource has an end", () => expect(before({ Parent: urn }, group)).toBe(undefined));
});

test("a file that is no plan is refused, and not quoted", () => {
  for (const text of ["{ secret", "{}", '{"resourcePlans": 1}'])
    expect(() => readPlan(text, "plan.json")).toThrow(
      /^plan\.json is no plan of Pulumi; `pulumi preview --save-plan plan\.json` writes one$/,
    );
});

test("a plan of another stack or project is refused, and one of a stack without a state is not", () => {
  const plans = { [urnOf("plugin", "Volume", "data")]: { steps: ["create"] } };
  const check = (name: string, state: { stack?: string; project?: string }) => () =>
    requirePlanOf(name, { stack: undefined, project: undefined, ...state }, plans, "plan.json");
  expect(check("acme/shop/dev", { stack: "dev", project: "shop" })).not.toThrow();
  expect(check("acme/shop/dev", {})).not.toThrow();
  expect(check("staging", { stack: "staging", project: "shop" })).toThrow(
    /^plan\.json is a plan of stack dev of shop, not of staging of shop; name its stack with --stack/,
  );
  expect(check("staging", {})).toThrow(/not of staging;/);
  expect(check("dev", { stack: "dev", project: "jobs" })).toThrow(/not of dev of jobs;/);
});

const report = costReport(
  [
    { type: "Volume", name: "data", before: { app: "shop", sizeGb: 10 }, after: { app: "shop", sizeGb: UNKNOWN } },
    { type: "Volume", name: "logs", before: { app: "jobs", sizeGb: 10 }, after: undefined },
  ],
  pricesOf({ volumeGb: 0.5 }),
);

test("people see each App, the total, and what is not known", () => {
  expect(textOf("dev", report)).toBe(`Cost of dev a month, by estimate, in USD
           NOW     AFTER           CHANGE
App jobs   5.00    0.00            -5.00
App shop   5.00    at least 0.00   at least -5.00
total      10.00   at least 0.00   at least -10.00
Depends on values that only the update knows: Volume data.
`);
  expect(textOf("dev", undefined)).toBe("Nothing in dev costs anything, by estimate.\n");
});

test("a comment has the same, and names of a program are no Markdown", () => {
  const odd = costReport(
    [{ type: "Volume", name: "a", before: undefined, after: { app: UNKNOWN, sizeGb: 1 }, appInProgram: "a|b\n`<i>" }],
    pricesOf(),
  );
  expect(markdownOf("dev", odd)).toBe(`**Cost of dev:** 0.15 USD a month by estimate, change +0.15

| | now | after | change |
|---|---:|---:|---:|
| App a\\|b \\\`\\<i\\> (new) | 0.00 | 0.15 | +0.15 |
| **total** | 0.00 | 0.15 | +0.15 |
`);
});

test("programs get amounts as numbers", () =>
  expect(JSON.parse(jsonOf("dev", report))).toMatchObject({
    stack: "dev",
    cost: { before: 10, after: 0, change: -10, isLeast: true, currency: "USD", unknown: ["Volume data"] },
  }));
