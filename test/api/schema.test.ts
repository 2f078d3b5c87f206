import { expect, test } from "vitest";
import { z } from "zod";
import { fieldOf } from "../../api/schema.ts";

test.each([
  ["a text", z.string()],
  ["a text of a pattern", z.string().regex(/a/)],
  ["a time", z.iso.datetime({ offset: true })],
  ["an address", z.email().optional()],
])("%s is a string", (_, schema) => {
  expect(fieldOf(schema).shape).toMatchObject({ kind: "leaf", type: "string" });
});
