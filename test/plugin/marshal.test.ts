// Property values to and from gRPC: nothing is lost, and no secret is revealed.
import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fieldOf, isObject, required } from "../../api/schema.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { cameToBeSecret, decode, encode, isSecretAt, type Marks } from "../../provider/plugin/marshal.ts";
import { parsePath } from "../../provider/plugin/propertyPath.ts";
import { pathText } from "../../provider/core/values.ts";
import {
  clearText,
  fromStruct,
  Output,
  Reference,
  revealed,
  secret,
  toStruct,
  unknown,
  Unknown,
  unknownTypes,
  type Properties,
} from "../support/properties.ts";

fc.configureGlobal({ seed: 1 });

const noFields = () => [];
const through = (
  properties: Properties,
  change: (values: Record<string, unknown>) => Record<string, unknown> = (same) => same,
) => {
  const { values, marks } = decode(toStruct(properties));
  return fromStruct(encode(change(values), noFields, marks), { unknowns: true });
};

const key = fc.oneof(
  fc.string({ minLength: 1, maxLength: 6, unit: "binary" }).filter((name) => name !== "__proto__"),
  fc.constantFrom("a", "constructor", "toString", "value", "secret", "0", ""),
);
/** Marks every leaf with whether it is inside a secret. */
const leaves = fc.oneof(
  fc.string({ maxLength: 8, unit: "binary" }),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.constant(null),
  fc.constant(unknown()),
);

interface Kinds {
  readonly leaf: fc.Arbitrary<unknown>;
  readonly hidden: fc.Arbitrary<unknown>;
}

/** Values of any shape, with marks anywhere, but never directly inside another mark. */
function anything({ leaf, hidden }: Kinds): fc.Arbitrary<Properties> {
  const containers = (item: fc.Arbitrary<unknown>) =>
    fc.oneof(
      leafOr(item),
      fc.array(item, { maxLength: 4 }),
      fc.dictionary(key, item, { maxKeys: 4, noNullPrototype: true }),
    );
  const leafOr = (item: fc.Arbitrary<unknown>) => fc.oneof(item, item);
  const inSecret = fc.oneof(
    hidden,
    fc.array(hidden, { maxLength: 3 }),
    fc.dictionary(key, fc.array(hidden), { maxKeys: 3, noNullPrototype: true }),
  );
  const dependencies = fc.array(fc.string(), { maxLength: 2 });
  const marked = fc.oneof(
    inSecret.map((value) => secret(value)),
    fc
      .tuple(inSecret, dependencies)
      .map(([value, urns]) => new Output(isUnknown(value), { secret: true, dependencies: urns })),
    fc.tuple(leaf, dependencies).map(([value, urns]) => new Output(isUnknown(value), { dependencies: urns })),
  );
  const flat = fc.oneof(leaf, marked);
  return fc.dictionary(key, containers(containers(containers(flat))), { maxKeys: 5, noNullPrototype: true });
}

/** An unknown output has no value. */
const isUnknown = (value: unknown): unknown => (value instanceof Unknown ? undefined : value);

describe("marshalling", () => {
  test("values that are read and written again are the same, whatever they are and wherever they are marked", () => {
    fc.assert(
      fc.property(anything({ leaf: leaves, hidden: leaves }), (properties) => {
        // Not `expect`, which a key named constructor would break.
        deepStrictEqual(through(properties), properties);
      }),
      { numRuns: 500 },
    );
  });

  test("core sees plain JSON, with one token for unknown values", () => {
    fc.assert(
      fc.property(anything({ leaf: leaves, hidden: leaves }), (properties) => {
        const { values } = decode(toStruct(properties));
        const plain = JSON.stringify(revealed(properties), (_name, inner: unknown) =>
          inner instanceof Unknown ? UNKNOWN : inner === undefined ? UNKNOWN : inner,
        );
        expect(JSON.parse(JSON.stringify(values))).toEqual(JSON.parse(plain));
      }),
    );
  });

  test("reordering and changing lists reveals no secret", () => {
    const kinds = {
      leaf: fc.constantFrom("plain", "public", 1, true),
      hidden: fc.integer({ min: 0, max: 99 }).map((number) => `CANARY${number}`),
    };
    fc.assert(
      fc.property(anything(kinds), fc.infiniteStream(fc.nat()), (properties, chance) => {
        const next = (below: number): number => ((chance.next().value as number) ?? 0) % below;
        /** Moves, duplicates, removes and adds items at every depth, and changes some of the plain values. */
        const shuffled = (value: unknown): unknown => {
          if (Array.isArray(value)) {
            const items = value.map(shuffled);
            for (let i = 0; i < items.length; i++) {
              const other = next(items.length);
              [items[i], items[other]] = [items[other], items[i]];
            }
            const count = next(items.length + 2);
            return [...items.slice(next(2)), ...items.slice(0, count), ...(next(2) ? ["new"] : [])];
          }
          if (isObject(value))
            return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shuffled(inner)]));
          return value === "plain" && next(2) ? "changed" : value;
        };
        const written = through(properties, (values) => shuffled(values) as Record<string, unknown>);
        expect(clearText(written)).not.toContain("CANARY");
      }),
      { numRuns: 1000 },
    );
  });

  test("plain values of an unchanged list stay plain", () => {
    const list = [{ a: secret("1"), b: "2" }, { a: "3", b: "4" }, secret("5"), "6"];
    expect(through({ list })).toEqual({ list });
    const moved = through({ list: ["plain", secret("hidden")] }, () => ({ list: ["hidden", "plain"] }));
    expect(moved).toEqual({ list: [secret("hidden"), secret("plain")] });
  });

  test("core sees one kind of unknown value, which returns as the kind that SDKs know", () => {
    const fields = z.object({
      text: z.string(),
      count: z.int(),
      part: z.number(),
      flag: z.boolean(),
      list: z.array(z.object({ count: z.int() })),
      object: z.object({ flag: z.boolean() }),
      map: z.record(z.string(), z.int()),
    });
    const own = {
      text: unknown(),
      count: unknown(),
      part: unknown(),
      flag: unknown(),
      list: unknown(),
      object: unknown(),
      map: unknown(),
      other: unknown(),
    };
    const known = fieldOf(fields);
    const fieldsOf = (name: string) =>
      known.shape.kind === "object" && known.shape.fields[name] ? [known.shape.fields[name]] : [];
    for (const type of unknownTypes) {
      const all = Object.fromEntries(Object.keys(own).map((name) => [name, unknown(type)]));
      const { values, marks } = decode(toStruct(all));
      expect(new Set(Object.values(values))).toEqual(new Set([UNKNOWN]));
      expect(fromStruct(encode(values, fieldsOf, marks), { unknowns: true })).toEqual(own);
      const deep = { list: [{ count: unknown(type) }], object: { flag: unknown(type) }, map: { a: unknown(type) } };
      expect(fromStruct(encode(decode(toStruct(deep)).values, fieldsOf, undefined), { unknowns: true })).toEqual({
        list: [{ count: unknown() }],
        object: { flag: unknown() },
        map: { a: unknown() },
      });
    }
  });

  test("a value declared secret becomes secret at any depth, marked or not, and only once", () => {
    const hidden = required(z.string(), "x", { secret: true });
    const fields: Record<string, z.ZodType> = {
      key: hidden,
      list: z.array(hidden),
      map: z.record(z.string(), hidden),
      object: z.object({ key: hidden, other: z.string(), items: z.array(z.object({ key: hidden })) }),
    };
    const fieldsOf = (name: string) => (fields[name] ? [fieldOf(fields[name])] : []);
    const values = {
      key: "1",
      list: ["2"],
      map: { a: "3" },
      object: { key: "4", other: "5", items: [{ key: "6" }] },
    };
    const sealed = {
      key: secret("1"),
      list: [secret("2")],
      map: { a: secret("3") },
      object: { key: secret("4"), other: "5", items: [{ key: secret("6") }] },
    };
    for (const said of [values, sealed]) {
      const { values: plain, marks } = decode(toStruct(said));
      expect(fromStruct(encode(plain, fieldsOf, marks), { unknowns: false })).toEqual(sealed);
    }
    // As input or as output: one declaration is sufficient.
    const twice = () => [fieldOf(z.string()), fieldOf(hidden)];
    expect(fromStruct(encode({ key: "1" }, twice, undefined), { unknowns: false })).toEqual({ key: secret("1") });
  });

  test("a nested mark is a single mark", () => {
    expect(through({ a: secret(secret("1")), b: new Output(secret("2"), { dependencies: ["u"] }) })).toEqual({
      a: secret("1"),
      b: new Output("2", { secret: true, dependencies: ["u"] }),
    });
    expect(through({ a: secret(new Output("1", { dependencies: ["u"] })), b: secret({ c: secret("2") }) })).toEqual({
      a: new Output("1", { secret: true, dependencies: ["u"] }),
      b: secret({ c: "2" }),
    });
  });

  test("references to resources become their ids", () => {
    const { values } = decode(
      toStruct({
        known: new Reference("urn", "id"),
        later: new Reference("urn", unknown()),
        never: new Reference("urn"),
      }),
    );
    expect(values).toEqual({ known: "id", later: UNKNOWN, never: UNKNOWN });
  });

  test("keys with a meaning in JavaScript are ordinary keys", () => {
    const properties = { constructor: secret("1"), toString: "2", hasOwnProperty: { valueOf: [secret("3")] } };
    expect(through(properties)).toEqual(properties);
  });

  test("the secrecy of a value can be queried by path", () => {
    const { marks } = decode(
      toStruct({ a: { b: [{ c: secret({ d: "1" }) }, "2"] }, "e.f": new Output("3", { secret: true }), g: "4" }),
    );
    const isSecret = (path: string): boolean => isSecretAt(marks, parsePath(path));
    expect(["a.b[0].c", "a.b[0].c.d", '["e.f"]'].map(isSecret)).toEqual([true, true, true]);
    expect(["a", "a.b", "a.b[0]", "a.b[1]", "g", "h"].map(isSecret)).toEqual(Array(6).fill(false));
  });

  test("a newly secret value is reported at its path, and nowhere else", () => {
    const marksOf = (properties: Properties): Marks | undefined => decode(toStruct(properties)).marks;
    const state = { a: "1", b: { c: ["2", "3"] }, d: "4" };
    const found = (before: Properties, after: Properties) =>
      cameToBeSecret(marksOf(before), marksOf(after), state).map(pathText);
    expect(found(state, { ...state, a: secret("1"), b: { c: ["2", secret("3")] } })).toEqual(["a", "b.c[1]"]);
    expect(found({ ...state, b: secret(state.b) }, { ...state, b: { c: [secret("2"), "3"] } })).toEqual([]);
    expect(found(state, { ...state, new: secret("5") })).toEqual([]);
    expect(found({ ...state, d: secret("4") }, { ...state, d: secret("4") })).toEqual([]);
    expect(found({ ...state, d: secret("4") }, state)).toEqual([]);
  });
});
