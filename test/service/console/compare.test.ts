// How an App of a past moment is compared with the present one.
import fc from "fast-check";
import { expect, test } from "vitest";
import { compare, differing } from "../../../service/console/compare.ts";

const fields = fc.dictionary(fc.constantFrom("a", "b"), fc.option(fc.integer({ min: 0, max: 1 })), {
  noNullPrototype: true,
});
const objects = fc
  .dictionary(fc.constantFrom("1", "2", "3", "4"), fields, { noNullPrototype: true })
  .map((all) => new Map(Object.entries(all)));

test("every object of both moments is counted once, as what happened to it", () => {
  fc.assert(
    fc.property(objects, objects, (was, is) => {
      const { counts, rows } = compare(was, is, 100);
      const keys = new Set([...was.keys(), ...is.keys()]);
      expect(rows.map(({ key }) => key).sort()).toEqual([...keys].sort());
      for (const { key, change, ...row } of rows) {
        expect(row).toEqual({ was: was.get(key) ?? null, is: is.get(key) ?? null });
        expect(change === "created").toBe(!was.has(key));
        expect(change === "deleted").toBe(!is.has(key));
        expect(change === "changed").toBe(row.was !== null && row.is !== null && differing(row.was, row.is).length > 0);
      }
      for (const [change, n] of Object.entries(counts))
        expect(rows.filter((row) => row.change === change)).toHaveLength(n);
    }),
  );
});

test("of many objects those are shown that differ", () => {
  fc.assert(
    fc.property(objects, objects, fc.nat(4), (was, is, most) => {
      const [some, all] = [compare(was, is, most), compare(was, is, 100)];
      expect(some.counts).toEqual(all.counts);
      expect(some.rows).toHaveLength(Math.min(most, all.rows.length));
      const shown = new Set(some.rows.map(({ key }) => key));
      const differs = all.rows.filter(({ change }) => change !== "unchanged").length;
      expect(some.rows.filter(({ change }) => change !== "unchanged")).toHaveLength(Math.min(most, differs));
      expect(shown.size).toBe(some.rows.length);
    }),
  );
});

test("a field that is left out is null", () => {
  expect(differing({ a: null, b: 1 }, { b: 2 })).toEqual(["b"]);
});
