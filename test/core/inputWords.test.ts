// Whatever a program passes, it is told in our words what is wrong with which property.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fieldOf } from "../../api/schema.ts";
import { validated } from "../../api/validated.ts";
import { problemsOf } from "../../provider/core/check.ts";
import { pathText } from "../../provider/core/values.ts";
import { functions, resources } from "../../provider/registry.ts";
import { isThorough } from "../support/extent.mts";
import { junkFor, zodsWords } from "../support/junk.ts";

const numRuns = isThorough ? 1000 : 100;

const wrong: readonly [string, z.ZodType, unknown, string][] = [
  ["a type", z.string(), 1, "must be a string"],
  ["a boolean", z.boolean(), "yes", "must be true or false"],
  ["a whole number", z.int(), 1.5, "must be a whole number"],
  ["a number for text", z.int().min(1).max(500), "3", "must be a whole number from 1 to 500"],
  ["a number that is too large", z.int().min(1).max(500), 501, "must be a whole number from 1 to 500"],
  ["a number that is too small", z.int().min(0), -1, "must be a whole number, at least 0"],
  ["a number beyond an open end", z.number().gt(0).max(1), 0, "must be a number, above 0 and at most 1"],
  ["a multiple", z.number().multipleOf(256), 300, "must be a multiple of 256"],
  ["an option", z.enum(["a", "b"]), "c", 'must be one of "a", "b"'],
  ["a literal", z.literal("a"), "c", 'must be "a"'],
  ["a union", z.union([z.enum(["a", "b"]), z.boolean()]), 1, 'must be one of "a", "b", or true or false'],
  ["an empty text", z.string().min(1), "", "must not be empty"],
  ["a text that is too short", z.string().min(2), "a", "must have at least 2 characters"],
  ["a text that is too long", z.string().max(1), "ab", "must have at most 1 character"],
  ["a list that is too short", z.array(z.string()).min(2), ["a"], "must have at least 2 items"],
  ["a pattern", z.string().regex(/^a$/), "b", "must match /^a$/"],
  ["a form", z.iso.datetime(), "b", "must be a valid datetime"],
  ["a list", z.array(z.string()), {}, "must be a list"],
  ["an object", z.object({}), [], "must be an object"],
  ["a map", z.record(z.string(), z.string()), 1, "must be a map"],
  ["a key", z.record(z.string().min(2), z.string()), { a: "b" }, "must have at least 2 characters"],
  [
    "an unknown property",
    z.strictObject({ name: z.string().optional() }),
    { nmae: "a" },
    "there is no such property; did you mean name?",
  ],
  ["anything refined", z.string().refine(() => false), "a", "is not allowed"],
  ["a message of the schema", z.string().regex(/a/, "must hold an a"), "b", "must hold an a"],
];

test.each(wrong)("%s is worded by us", (_, schema, value, message) => {
  expect(validated(schema, value).error?.issues[0]?.message).toBe(message);
});

test("zod's own words are recognized", () => {
  const own = wrong.filter(([what]) => !["a message of the schema", "anything refined", "a form"].includes(what));
  for (const [what, schema, value] of own)
    expect(schema.safeParse(value).error?.issues[0]?.message, what).toMatch(zodsWords);
});

describe.each([...Object.values(resources), ...Object.values(functions)].map((one) => [one.name, one] as const))(
  "%s",
  (_, { inputFields }) => {
    test("a refusal names the property of every problem, in our words", () => {
      const fields = Object.entries(inputFields);
      let found = 0;
      fc.assert(
        fc.property(
          fc.record(Object.fromEntries(fields.map(([name, field]) => [name, junkFor(field)])), { requiredKeys: [] }),
          (values) => {
            for (const { path, message } of problemsOf(inputFields, values).problems) {
              found++;
              expect(path.length).toBeGreaterThan(0);
              expect(Object.keys(inputFields)).toContain(path[0]);
              const text = `${pathText(path)}: ${message}`;
              expect(text).not.toMatch(zodsWords);
              expect(message).toMatch(/^(got|is required|there is no such property|the name|must|[a-z])/);
            }
          },
        ),
        { numRuns },
      );
      expect(found > 0 || fields.length === 0).toBe(true);
    });
  },
);

test("the nearest option is named, except for a value that may be a secret", () => {
  const fields = {
    state: fieldOf(z.enum(["started", "stopped"])),
    key: fieldOf(z.enum(["hs256"]).meta({ secret: true })),
  };
  expect(problemsOf(fields, { state: "strated", key: "hs25" }).problems.map(({ message }) => message)).toEqual([
    'got "strated"; must be one of "started", "stopped"; did you mean "started"?',
    'got a string; must be "hs256"',
  ]);
});
