// What a migration makes of a state: always a state that the engine accepts, in which nothing is lost.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openState } from "../../cli/drift/openState.ts";
import { migrated, migrationsIn, type Found } from "../../cli/migration/migrations.ts";
import { readPlan, type Plans } from "../../cli/savedPlan.ts";
import { deploymentIn, listIn, readState } from "../../cli/stackState.ts";
import type { DeploymentEntry } from "../../cli/entries.ts";
import type { Values } from "../../provider/core/resource.ts";
import { exportOf, sealed, shapes, urnOf, type Exported, type Shape } from "./exports.ts";
import { problemsOf } from "./integrity.ts";

const source = "a test";
const config = (image = "shop:1"): Values => ({ image, env: { KEY: sealed } });
const clear = { ...sealed, ciphertext: undefined, plaintext: JSON.stringify("hush") };

/** A Machine in a state. */
const machine = (name: string, region = "ams", inputs: Values = {}): Exported => ({
  ...{ type: "Machine", name, id: `shop/id-${name}` },
  inputs: { app: "shop", region, config: config(), ...inputs },
  outputs: { region, __context: { stack: "s1" } },
});

const secret = (name: string, inputs: Values = {}): Exported => ({
  ...{ type: "Secret", name, id: `shop/${name.toUpperCase()}` },
  inputs: { app: "shop", name: name.toUpperCase(), value: sealed, ...inputs },
  outputs: { version: 3, digest: sealed },
});

/** A resource in a plan. */
interface Wanted {
  readonly type: string;
  readonly name: string;
  readonly inputs: Values;
  readonly parent?: string;
  readonly steps?: readonly string[];
}

const component = "urn:pulumi:dev::shop::my:index:Tier::tier";

/** The plan of a program without the resources of these names. */
function planOf(shape: Shape, without: readonly Exported[], wanted: readonly Wanted[]): Plans {
  const provider =
    shape === "dynamic"
      ? "urn:pulumi:dev::shop::pulumi:providers:pulumi-nodejs::default::0a1b"
      : "urn:pulumi:dev::shop::pulumi:providers:machines::default_0_1_0::0a1b";
  const resourcePlans = {
    [component]: { steps: ["create"], goal: { type: "my:index:Tier", custom: false, inputDiff: {} } },
    ...Object.fromEntries(without.map(({ type, name }) => [urnOf(shape, type, name), { steps: ["delete"] }])),
    ...Object.fromEntries(
      wanted.map(({ type, name, inputs, parent, steps = ["create"] }) => {
        const urn = urnOf(shape, type, name, parent === undefined ? undefined : "tier");
        const goal = {
          type: urn.split("::")[2]?.split("$").at(-1),
          custom: true,
          provider,
          parent,
          inputDiff: { adds: inputs },
        };
        return [urn, { steps, goal: { ...goal, dependencies: [urnOf(shape, "App", "new")] }, state: {} }];
      }),
    ),
  };
  return readPlan(JSON.stringify({ resourcePlans }), source);
}

/** The states of an export: as it is, and in plain text. */
function statesOf(text: string) {
  const opened = text.replaceAll(JSON.stringify(sealed), JSON.stringify(clear));
  return { sealed: deploymentIn(text, source), open: openState(readState(opened, source)) };
}

const found = (shape: Shape, before: readonly Exported[], wanted: readonly Wanted[]): Found =>
  migrationsIn(planOf(shape, before, wanted), statesOf(exportOf(shape, before)));

const fleet = (regions: Values = { ams: 2 }, inputs: Values = {}): Wanted => ({
  ...{ type: "Fleet", name: "web" },
  inputs: { app: "shop", name: "web", regions, config: config(), ...inputs },
});
const secrets = (inputs: Values = { values: sealed }): Wanted => ({
  ...{ type: "AppSecrets", name: "all", inputs: { app: "shop", ...inputs } },
});

describe.each(shapes)("%s", (shape) => {
  test("the state stays valid, and each object has one resource", () => {
    let count = 0;
    const drawn = fc.record({
      machines: fc.array(fc.constantFrom("ams", "iad"), { maxLength: 4 }),
      secrets: fc.nat(3),
      /** Which resources others use, and where they stand in the list. */
      uses: fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 6 }),
      isInComponent: fc.boolean(),
    });
    fc.assert(
      fc.property(drawn, ({ machines, secrets: number, uses, isInComponent }) => {
        const leaving = [
          ...machines.map((region, i) => machine(`m${i}`, region)),
          ...Array.from({ length: number }, (_, i) => secret(`s${i}`)),
        ];
        const users = uses.map((_, i): Exported => ({ type: "Volume", name: `v${i}`, id: `shop/v${i}` }));
        const text = exportOf(shape, [...leaving, ...users]);
        const entries = [...listIn(deploymentIn(text, source), "resources")] as DeploymentEntry[];
        if (shape === "dynamic") {
          const urn = "urn:pulumi:dev::shop::pulumi:providers:pulumi-nodejs::default";
          entries.splice(1, 0, { urn, id: "0a1b", type: "pulumi:providers:pulumi-nodejs", custom: true });
        }
        for (const [i, [used, at]] of uses.entries()) {
          const index = entries.findIndex(({ urn }) => urn.endsWith(`::v${i}`));
          const [user] = entries.splice(index, 1);
          const one = leaving[used % Math.max(1, leaving.length)];
          const urn = one && urnOf(shape, one.type, one.name);
          const after = Math.max(2, entries.findIndex((entry) => entry.urn === urn) + 1);
          const uses = { dependencies: urn === undefined ? [] : [urn], deletedWith: urn ?? "" };
          if (user) entries.splice(after + (at % (entries.length - after + 1)), 0, { ...user, ...uses });
        }
        expect(problemsOf(entries)).toEqual([]);
        const regions: Record<string, number> = {};
        for (const region of machines) regions[region] = (regions[region] ?? 0) + 1;
        const parent = isInComponent ? { parent: component } : {};
        const plan = planOf(shape, leaving, [{ ...fleet(regions), ...parent }, secrets()]);
        const { migrations, problems } = migrationsIn(
          plan,
          statesOf(JSON.stringify({ deployment: { resources: entries } })),
        );
        expect(problems).toEqual([]);
        expect(migrations).toHaveLength(Math.min(1, machines.length) + Math.min(1, number));
        count += migrations.length;
        const outputs = new Map(migrations.map(({ urn }) => [urn, {}]));
        const after = migrated(entries, migrations, { plan, outputs, now: "2026-01-31T12:00:00Z" });
        expect(problemsOf(after)).toEqual([]);
        const gone = new Set(leaving.map(({ type, name }) => urnOf(shape, type, name)));
        const kept = entries.filter(({ urn }) => !gone.has(urn)).map(({ urn }) => urn);
        const added = isInComponent && machines.length > 0 ? [component] : [];
        expect(after.map(({ urn }) => urn).sort()).toEqual(
          [...kept, ...added, ...migrations.map(({ urn }) => urn)].sort(),
        );
      }),
    );
    expect(count).toBeGreaterThan(20);
  });

  test("a fleet takes over the Machines of its configuration, with the inputs that they have", () => {
    const { migrations, problems } = found(
      shape,
      [machine("a"), machine("b", "iad")],
      [fleet({ ams: 1, iad: 1, fra: 0 })],
    );
    expect(problems).toEqual([]);
    expect(migrations.map(({ id, sources }) => [id, sources.map((one) => one.id)])).toEqual([
      ["shop/web", ["shop/id-a", "shop/id-b"]],
    ]);
    expect(migrations.map(({ inputs, open }) => [inputs["config"], open["config"]])).toEqual([
      [config(), { image: "shop:1", env: { KEY: "hush" } }],
    ]);
  });

  test("a fleet does not get a version of the secrets or a memory limit that its Machines do not have", () => {
    const { migrations, problems } = found(
      shape,
      [machine("a"), machine("b")],
      [fleet({ ams: 2 }, { minSecretsVersion: 9, memoryLimitMb: 512 })],
    );
    expect(problems).toEqual([]);
    expect(migrations).toHaveLength(1);
    const names = migrations.flatMap(({ inputs, open }) => [...Object.keys(inputs), ...Object.keys(open)]);
    expect(names).toContain("config");
    expect(names).not.toContain("minSecretsVersion");
    expect(names).not.toContain("memoryLimitMb");
  });

  test.each<[reason: RegExp, before: readonly Exported[], wanted: readonly Wanted[]]>([
    [/none of a, .* has its configuration/, [machine("a", "ams", { config: config("shop:2") })], [fleet({ ams: 1 })]],
    [/it wants 2 in ams, and 1 in ams have its configuration/, [machine("a")], [fleet()]],
    [/a and b differ in config/, [machine("a"), machine("b", "ams", { minSecretsVersion: 3 })], [fleet()]],
    [/a is stopped or cordoned/, [machine("a", "ams", { state: "stopped" })], [fleet({ ams: 1 })]],
    [/Machines with volumes/, [machine("a")], [fleet({ ams: 1 }, { volume: { path: "/data" } })]],
    [
      /Machine a also has the configuration of web/,
      [machine("a")],
      [fleet({ ams: 1 }), { ...fleet({ ams: 1 }), name: "api" }],
    ],
    [
      /no state has the write-only value of token/,
      [secret("token", { value: undefined, valueVersion: 1 })],
      [secrets()],
    ],
    [/the state has the value of token/, [secret("token")], [secrets({ valuesVersion: 1 })]],
    [
      /configuration depends on resources that do not exist yet/,
      [machine("a")],
      [fleet({ ams: 1 }, { config: { image: "04da6b54-80e4-46f7-96ec-b56ff0331ba9" } })],
    ],
    [
      /an input depends on resources that/,
      [machine("a")],
      [fleet({ ams: 1 }, { releaseCommand: ["04da6b54-80e4-46f7-96ec-b56ff0331ba9"] })],
    ],
  ])("what does not fit is not migrated: %s", (reason, before, wanted) => {
    expect(found(shape, before, wanted).problems.join("\n")).toMatch(reason);
  });

  test("Machines of another App, and those that the program still declares, are left alone", () => {
    expect(found(shape, [machine("a", "ams", { app: "other" })], [fleet({ ams: 1 })])).toEqual({
      migrations: [],
      problems: [],
    });
    const text = exportOf(shape, [machine("a")]);
    expect(migrationsIn(planOf(shape, [], [fleet({ ams: 1 })]), statesOf(text))).toEqual({
      migrations: [],
      problems: [],
    });
  });

  test("an AppSecrets that exists gets more secrets", () => {
    const existing: Exported = {
      ...{ type: "AppSecrets", name: "all", id: "shop" },
      inputs: { app: "shop", values: sealed },
      outputs: { version: 5 },
    };
    const plan = planOf(shape, [secret("token")], [{ ...secrets(), steps: ["update"] }]);
    const text = exportOf(shape, [secret("token"), existing]);
    const { migrations } = migrationsIn(plan, statesOf(text));
    expect(migrations.map(({ existing: has, before }) => [has?.urn, before?.["version"]])).toEqual([
      [urnOf(shape, "AppSecrets", "all"), 5],
    ]);
  });
});
