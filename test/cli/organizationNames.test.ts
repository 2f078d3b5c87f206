// Names, loops and layout of the programs that `pulumi-machines import` writes.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { laidOut } from "../../cli/organization/layout.ts";
import { blocksOf } from "../../cli/organization/loops.ts";
import { camelCase, Identifiers, resourceNames, snakeCase, type Named } from "../../cli/organization/names.ts";
import { declarationsIn, idsIn, literal, type Declaration, type Expression } from "../../cli/organization/program.ts";

const word = fc.stringMatching(/^[a-zA-Z0-9_. *-]{0,12}$/);
const named: fc.Arbitrary<Named[]> = fc.uniqueArray(
  fc.record({
    key: fc.uuid(),
    type: fc.constantFrom("App", "Machine", "Volume", "PostgresCluster"),
    own: fc.option(word, { nil: undefined }),
    place: fc.option(fc.constantFrom("shop", "blog"), { nil: undefined }),
    held: fc.constant(undefined),
  }),
  { selector: ({ key }) => key },
);

describe("names", () => {
  test("names are unique, and each resource has one", () => {
    fc.assert(
      fc.property(named, (all) => {
        const names = resourceNames(all);
        expect(new Set(names.values()).size).toBe(all.length);
        for (const name of names.values()) expect(name).toMatch(/^[A-Za-z0-9_-]+$/);
      }),
    );
  });

  test("stay the same after any part of them was imported", () => {
    fc.assert(
      fc.property(named, fc.infiniteStream(fc.boolean()), (all, isImported) => {
        const names = resourceNames(all);
        const again = all.map((one) => (isImported.next().value ? { ...one, held: names.get(one.key) } : one));
        expect(resourceNames(again)).toEqual(names);
      }),
    );
  });

  test("names of variables are identifiers, each once, and no words of the language", () => {
    for (const [spell, pattern] of [
      [camelCase, /^[a-z][A-Za-z0-9]*$/],
      [snakeCase, /^[a-z][a-z0-9_]*$/],
    ] as const)
      fc.assert(
        fc.property(fc.array(word), (names) => {
          const identifiers = new Identifiers(spell, ["class", "new"]);
          const taken = names.map((name) => identifiers.take(name, "Machine"));
          expect(new Set(taken).size).toBe(names.length);
          for (const one of taken) expect(one).toMatch(pattern);
          expect(taken.filter((one) => ["class", "new"].includes(one))).toEqual([]);
        }),
      );
  });

  test.each([
    ["shop-DATABASE_URL", "shopDatabaseUrl", "shop_database_url"],
    ["memoryMb", "memoryMb", "memory_mb"],
    ["2nd-line", "n2ndLine", "n2nd_line"],
    ["web", "web", "web"],
  ])("%s is %s and %s", (name, camel, snake) => {
    expect([camelCase(name), snakeCase(name)]).toEqual([camel, snake]);
  });
});

const machine = (name: string, region: string, more: Expression = literal(1)): Declaration => ({
  ...{ key: `Machine shop/${name}`, type: "Machine", id: `shop/${name}`, name: literal(name), ignoreChanges: [] },
  inputs: [
    ["name", literal(name)],
    ["region", literal(region)],
    ["config", { is: "object", entries: [["count", more]] }],
  ],
});

const usersOf = (all: readonly Declaration[]): ReadonlyMap<string, readonly string[]> => {
  const users = new Map<string, string[]>();
  for (const { key, inputs } of all)
    for (const id of inputs.flatMap(([, value]) => idsIn(value))) users.set(id, [...(users.get(id) ?? []), key]);
  return users;
};

describe("loops", () => {
  test("declare exactly the resources that were given", () => {
    const one = fc.record({
      name: fc.stringMatching(/^[a-z]{1,3}$/),
      region: fc.constantFrom("ams", "fra"),
      count: fc.constantFrom(1, 2),
      volume: fc.option(fc.constantFrom("ams", "fra"), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.uniqueArray(one, { selector: ({ name }) => name }), (drawn) => {
        const all = drawn.flatMap(({ name, region, count, volume }) => {
          const key = `Volume shop/${name}`;
          const mounted: Expression = volume === undefined ? literal(count) : { is: "id", of: key };
          const disk: Declaration = {
            ...{ key, type: "Volume", id: `shop/${name}`, name: literal(`${name}-data`), ignoreChanges: [] },
            inputs: [["region", literal(volume ?? "")]],
          };
          return [...(volume === undefined ? [] : [disk]), machine(name, region, mounted)];
        });
        const written = blocksOf(all, usersOf(all)).flatMap(declarationsIn);
        const sorted = (list: readonly Declaration[]) => [...list].sort((a, b) => (a.key < b.key ? -1 : 1));
        expect(sorted(written)).toEqual(sorted(all));
      }),
    );
  });

  test("have no resource that another one refers to by name", () => {
    const all = [machine("a", "ams"), machine("b", "fra")];
    expect(blocksOf(all, new Map())).toMatchObject([{ is: "loop" }]);
    expect(blocksOf(all, new Map([["Machine shop/a", ["elsewhere"]]]))).toMatchObject([
      { is: "resource" },
      { is: "resource" },
    ]);
  });

  test("derive a name from another one where all rows agree", () => {
    const all = [machine("web-ams", "ams"), machine("web-fra", "fra")].map((one) => ({
      ...one,
      name: literal(`shop-${one.id.slice(5)}`),
    }));
    expect(blocksOf(all, new Map())).toMatchObject([
      {
        rows: [
          [
            ["name", literal("web-ams")],
            ["region", literal("ams")],
          ],
          [
            ["name", literal("web-fra")],
            ["region", literal("fra")],
          ],
        ],
        body: [{ name: { is: "column", name: "name", before: "shop-", after: "" } }],
      },
    ]);
  });
});

test("a layout is on one line if it fits, and else has an item on each", () => {
  const list = { open: "[", close: "]", items: ["first", "second"] };
  expect(laidOut(list, { width: 15, indent: "  " })).toBe("[first, second]");
  expect(laidOut(list, { width: 14, indent: "  " })).toBe("[\n  first,\n  second,\n]");
});
