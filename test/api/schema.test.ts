import { expect, test } from "vitest";
import { z } from "zod";
import { knownRegions, regionCode } from "../../api/names.ts";
import { fieldOf } from "../../api/schema.ts";
import { regions } from "../../service/runtime/regions.ts";

test.each([
  ["a text", z.string()],
  ["a string with a pattern", z.string().regex(/a/)],
  ["a time", z.iso.datetime({ offset: true })],
  ["an address", z.email().optional()],
])("%s is a string", (_, schema) => {
  expect(fieldOf(schema).shape).toMatchObject({ kind: "leaf", type: "string" });
});

test("what cannot be a region is answered with the regions", () => {
  expect(regionCode.safeParse("amsterdam").error?.issues[0]?.message).toBe(
    `must be a region code such as ${knownRegions.join(", ")}`,
  );
});

test("the regions that editors complete are those of the service", () => {
  expect(knownRegions).toEqual(regions.map(({ code }) => code));
});
