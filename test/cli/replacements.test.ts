// Undoing a replacement in a state: the result is always a state that the engine accepts.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DeploymentEntry } from "../../cli/entries.ts";
import { changedBack, chosen, replacementsIn, undone } from "../../cli/orphans/replacements.ts";
import { contextOf, type Values } from "../../provider/core/resource.ts";
import { sealed, shapes, urnOf, type Shape } from "./exports.ts";
import { problemsOf } from "./integrity.ts";

const namesOf = (entries: readonly DeploymentEntry[]): string[] => entries.map(({ urn, id }) => `${urn}#${String(id)}`);

const types = ["App", "Volume", "Machine", "PostgresCluster", "SecretKey"] as const;

interface Drawn {
  readonly type: (typeof types)[number];
  readonly name: string;
  readonly isOriginal: boolean;
  /** How each earlier resource is used. */
  readonly uses: readonly number[];
  readonly taint: boolean;
  readonly protect: boolean;
}

/** Lists of resources that the engine accepts: each uses only earlier ones, and a URN has at most one original. */
const drawnLists = fc.array(
  fc.record<Drawn>({
    type: fc.constantFrom(...types),
    name: fc.constantFrom("a", "b"),
    isOriginal: fc.boolean(),
    uses: fc.array(fc.nat(6), { maxLength: 14 }),
    taint: fc.boolean(),
    protect: fc.boolean(),
  }),
  { maxLength: 14 },
);

const providerUrn = "urn:pulumi:dev::shop::pulumi:providers:machines::here";

function entriesOf(shape: Shape, drawn: readonly Drawn[]): DeploymentEntry[] {
  const entries: DeploymentEntry[] = [{ urn: providerUrn, id: "p0", type: "pulumi:providers:machines" }];
  const own = new Set<string>();
  drawn.forEach(({ type, name, isOriginal, uses, taint, protect }, i) => {
    const urn = urnOf(shape, type, name);
    const found = (use: number): string[] => entries.flatMap((one, at) => (uses[at % 14] === use ? [one.urn] : []));
    // Providers can be replaced too.
    const provider = uses[0] === 6 && i > 0 ? `p${i}` : undefined;
    if (provider) entries.push({ urn: providerUrn, id: provider, type: "pulumi:providers:machines", delete: true });
    const from = entries.filter((one) => one.urn === providerUrn).at(-1)?.id;
    const leaves = isOriginal || own.has(urn);
    if (!leaves) own.add(urn);
    entries.push({
      urn,
      id: type === "App" || type === "PostgresCluster" ? `id${i}` : `shop/id${i}`,
      type: urn.split("::")[2],
      provider: `${providerUrn}::${String(from)}`,
      parent: found(1)[0],
      dependencies: found(2),
      propertyDependencies: { app: found(3) },
      deletedWith: found(4)[0] ?? "",
      replaceWith: found(5),
      inputs: { name: i, password: sealed },
      outputs: { name: i, __context: { autonamed: true } },
      ...(leaves ? { delete: true } : {}),
      ...(taint ? { taint } : {}),
      ...(protect ? { protect } : {}),
    });
  });
  return entries;
}

describe.each(shapes)("%s", (shape) => {
  test("the state stays valid after any undo, and nothing is lost or invented", () => {
    let swaps = 0;
    fc.assert(
      fc.property(drawnLists, fc.infiniteStream(fc.nat(3)), (drawn, picks) => {
        const before = entriesOf(shape, drawn);
        expect(problemsOf(before)).toEqual([]);
        const all = replacementsIn({ resources: before });
        // Each resource has at most one original.
        const undoing = [...new Set(all.map(({ entry }) => entry.urn))].flatMap((urn) => {
          const rivals = all.filter(({ entry }) => entry.urn === urn);
          return rivals[Number(picks.next().value)] ?? [];
        });
        swaps += undoing.length;
        const after = undone(before, undoing);
        expect(problemsOf(after)).toEqual([]);
        expect(namesOf(after).sort()).toEqual(namesOf(before).sort());
        const kept = new Set(undoing.map(({ entry }) => namesOf([entry])[0]));
        const urns = new Set(undoing.map(({ entry }) => entry.urn));
        for (const entry of after) {
          const [name] = namesOf([entry]);
          const was = before.find((one) => namesOf([one])[0] === name);
          const marks = [entry["inputs"], entry["outputs"]].map((one) => contextOf((one ?? {}) as Values).discard);
          if (!urns.has(entry.urn)) expect(entry).toBe(was);
          else if (kept.has(name)) {
            expect(entry).toMatchObject({ inputs: was?.["inputs"], outputs: was?.["outputs"] });
            for (const key of ["delete", "taint", "pendingReplacement"]) expect(entry).not.toHaveProperty(key);
            expect(marks).toEqual([undefined, undefined]);
          } else {
            expect(entry).toMatchObject({ delete: true, inputs: was?.["inputs"] as Values });
            expect(entry).not.toHaveProperty("protect");
            expect(marks).toEqual([true, true]);
          }
        }
      }),
      { numRuns: 500 },
    );
    expect(swaps).toBeGreaterThan(20);
  });

  test("undoing an undo restores the resources", () => {
    fc.assert(
      fc.property(drawnLists, (drawn) => {
        const before = entriesOf(shape, drawn);
        const [one] = replacementsIn({ resources: before }).filter(({ others }) => others.length === 1);
        if (!one) return;
        const once = undone(before, [one]);
        const back = replacementsIn({ resources: once }).filter(({ current }) => current.id === one.original.id);
        expect(back).toMatchObject([{ original: { id: one.current.id }, isGivenUp: true }]);
        const twice = undone(once, back);
        expect(problemsOf(twice)).toEqual([]);
        const plain = (entries: readonly DeploymentEntry[]) =>
          entries.map(({ urn, id, delete: leaves = false }) => [urn, id, leaves]).sort();
        expect(plain(twice)).toEqual(plain(before));
        expect(
          contextOf((twice.find(({ id }) => id === one.current.id)?.["outputs"] ?? {}) as Values).discard,
        ).toBeUndefined();
      }),
    );
  });
});

const entry = (type: string, name: string, id: string, rest: Values = {}): DeploymentEntry => ({
  urn: urnOf("plugin", type, name),
  id,
  type: `machines:index:${type}`,
  inputs: {},
  outputs: {},
  ...rest,
});

describe("the order in which the engine deletes", () => {
  const uses = (...urns: string[]): Values => ({ dependencies: urns });
  const [app, data, logs] = [
    urnOf("plugin", "App", "app"),
    urnOf("plugin", "Volume", "data"),
    urnOf("plugin", "Volume", "logs"),
  ];
  const after = (entries: readonly DeploymentEntry[]) =>
    undone(entries, replacementsIn({ resources: entries })).map(({ id }) => id);

  test("an original comes before the resources that use it", () => {
    const entries = [
      entry("App", "app", "app"),
      entry("Volume", "data", "app/new", uses(app)),
      entry("Machine", "web", "app/web", uses(app, data)),
      entry("Volume", "data", "app/old", { ...uses(app), delete: true }),
      entry("Machine", "was", "app/was", { ...uses(data), delete: true }),
    ];
    expect(after(entries)).toEqual(["app", "app/old", "app/new", "app/web", "app/was"]);
  });

  test("an original comes after what it needs, including its provider", () => {
    const provider = (id: string): DeploymentEntry => ({ urn: providerUrn, id, type: "pulumi:providers:machines" });
    const through = (id: string): Values => ({ provider: `${providerUrn}::${id}` });
    const entries = [
      provider("p2"),
      entry("Volume", "data", "app/new", through("p2")),
      entry("Machine", "web", "app/web", uses(data)),
      { ...provider("p1"), delete: true },
      entry("App", "app", "app", { ...through("p1"), delete: true }),
      entry("Volume", "logs", "app/logs", uses(app)),
      entry("Volume", "data", "app/old", { ...uses(app), deletedWith: logs, ...through("p1"), delete: true }),
    ];
    expect(problemsOf(entries)).toEqual([]);
    expect(after(entries)).toEqual(["p2", "p1", "app", "app/logs", "app/old", "app/new", "app/web"]);
  });
});

describe("which replacements are undone", () => {
  const original = { delete: true, created: "2026-01-31T12:00:00.123456Z" };
  const both = (type: string, name: string, before: string, now: string): DeploymentEntry[] => [
    entry(type, name, now),
    entry(type, name, before, original),
  ];
  const state = [
    ...both("App", "shop", "shop", "shop-2"),
    ...both("Volume", "data", "shop/vol_1", "shop/vol_2"),
    ...both("Machine", "shop", "shop/m1", "shop/m2"),
    ...both("PostgresCluster", "main", "c1", "c2"),
    // No replacement exists: the resource was removed from the program, or both are the same object.
    entry("Volume", "left", "shop/vol_3", original),
    ...both("SecretKey", "key", "shop/KEY", "shop/KEY"),
    ...both("Ciphertext", "sealed", "1", "2"),
  ];
  const all = replacementsIn({ resources: state });
  const ids = (names: readonly string[], of = all) => chosen(of, names).map(({ original: { id } }) => id);

  test("without a name, the replacements of objects with data and of Apps are undone", () => {
    expect(ids([])).toEqual(["shop", "shop/vol_1", "c1"]);
    expect(all.map(({ original: { id } }) => id)).toEqual(["shop", "shop/vol_1", "shop/m1", "c1"]);
  });

  test.each([["data"], ["shop/vol_1"], [urnOf("plugin", "Volume", "data")], ["data#shop/vol_1"]])(
    "a name of the form %s selects one replacement",
    (name) => {
      expect(ids([name, "data"])).toEqual(["shop/vol_1"]);
    },
  );

  test.each([
    [
      "shop/vol_2",
      /names no original.*:\n {2}urn:.*Volume::data#shop\/vol_1\n {4}the Volume "data", created 2026-01-31T12:00:00Z; replaced by shop\/vol_2/s,
    ],
    ["left", /names no original/],
    ["key", /names no original/],
  ])("%s is an error that lists the choices", (name, message) => {
    expect(() => ids([name])).toThrow(message);
  });

  test("a name that several resources share is an error that lists them; an id is unambiguous", () => {
    const machines = replacementsIn({
      resources: [...both("App", "web", "a1", "a2"), ...both("Machine", "web", "a1/m1", "a1/m2")],
    });
    expect(() => ids(["web"], machines)).toThrow(/web names several.*App::web#a1\n.*Machine::web#a1\/m1\n/s);
    expect(ids(["web#a1"], machines)).toEqual(["a1"]);
    expect(ids(["shop"])).toEqual(["shop"]);
  });

  test("one of several originals of a resource is selected by its id", () => {
    const volume = (id: string, rest: Values = {}) => entry("Volume", "data", id, rest);
    const resources = [volume("shop/vol_3"), volume("shop/vol_1", original), volume("shop/vol_2", original)];
    const several = replacementsIn({ resources });
    for (const names of [[], ["data"], ["data#shop/vol_1", "data#shop/vol_2"]])
      expect(() => ids(names, several)).toThrow(/several originals.*#shop\/vol_1\n.*#shop\/vol_2\n/s);
    const [one] = chosen(several, ["shop/vol_1"]);
    const after = undone(resources, one ? [one] : []);
    expect(after.map(({ id, delete: leaves, outputs }) => [id, leaves, contextOf(outputs as Values).discard])).toEqual([
      ["shop/vol_1", undefined, undefined],
      ["shop/vol_3", true, true],
      ["shop/vol_2", true, true],
    ]);
    // Undoing again finds nothing; a replaced object is selected only by its id.
    const again = replacementsIn({ resources: after });
    expect(ids([], again)).toEqual([]);
    expect(() => ids(["data"], again)).toThrow(/names no original.*given up before for shop\/vol_1/s);
    expect(ids(["shop/vol_2"], again)).toEqual(["shop/vol_2"]);
  });

  test("the inputs that the program must set again are listed, without secrets or generated values", () => {
    const pair = (type: string, before: Values, now: Values) =>
      replacementsIn({
        resources: [entry(type, "x", "n/2", { inputs: now }), entry(type, "x", "n/1", { ...original, inputs: before })],
      });
    const reported = (type: string, before: Values, now: Values) => pair(type, before, now).flatMap(changedBack);
    expect(reported("App", { name: "a" }, { name: "b" })).toEqual([{ input: "name", before: '"a"' }]);
    expect(reported("App", { name: "a" }, { name: "b", __context: { autonamed: true } })).toEqual([]);
    expect(reported("App", { name: sealed }, { name: "b" })).toEqual([]);
    expect(reported("Volume", { app: "a", region: "ams", encrypted: true }, { app: "b", region: "fra" })).toEqual([
      { input: "region", before: '"ams"' },
    ]);
    expect(reported("SecretKey", { type: "hs256", value: "QQ==" }, { type: "hs384", value: "Qg==" })).toEqual([
      { input: "type", before: '"hs256"' },
      { input: "value", before: "the previous value" },
    ]);
  });
});
