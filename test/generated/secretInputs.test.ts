// What the interface calls a secret is one for programs too.
import { expect, test } from "vitest";
import { camelKey } from "../../api/case.ts";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { fieldOf } from "../../api/schema.ts";
import { resources } from "../../provider/registry.ts";
import { callsFrom } from "../../tools/generate/calls.ts";
import { fileOf } from "../../tools/generate/coverage.ts";
import { secretsIn } from "../support/secretFields.ts";

const operations = Object.values(contract).flatMap((group) => Object.values(group as Record<string, Operation>));

test("an input that an operation gets as a secret is a secret, or is never stored", () => {
  const found = Object.entries(resources).flatMap(([name, { inputFields }]) => {
    const calls = callsFrom(fileOf(process.cwd(), name), name.charAt(0).toLowerCase() + name.slice(1));
    return operations
      .filter(({ id, body }) => body !== undefined && calls.has(id))
      .flatMap(({ id, body }) =>
        (body ? secretsIn(fieldOf(body)) : []).map((secret) => ({ id, input: camelKey(secret) })),
      )
      .flatMap(({ id, input }) => {
        const field = inputFields[input];
        return field ? [{ what: `${name}.${input} (${id})`, meta: field.meta }] : [];
      });
  });
  expect(found.length).toBeGreaterThan(5);
  const open = found.filter(({ meta }) => meta.secret !== true && meta.writeOnly === undefined);
  expect(open.map(({ what }) => what)).toEqual([]);
});
