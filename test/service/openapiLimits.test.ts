// The description states the limits of requests, and the service accepts exactly these.
import { expect, test } from "vitest";
import type { Operation } from "../../api/operation.ts";
import type { JsonSchema } from "../../service/openapi/jsonSchema.ts";
import { withApp } from "./client.ts";
import { bodyOf, document, operationOf, rows } from "./description.ts";

/** Values of a request, by their location, that may be of any size. */
function unlimited(schema: JsonSchema, path: string, seen: ReadonlySet<unknown> = new Set()): string[] {
  const { $ref, anyOf, type, items, properties, additionalProperties } = schema;
  if (typeof $ref === "string") {
    if (seen.has($ref)) return [];
    const named = document.components.schemas[$ref.split("/").at(-1) ?? ""] as JsonSchema;
    return unlimited(named, path, new Set([...seen, $ref]));
  }
  if (Array.isArray(anyOf)) return anyOf.flatMap((one) => unlimited(one as JsonSchema, path, seen));
  const types = [type].flat();
  const within = (inner: unknown, name: string): string[] =>
    typeof inner === "object" ? unlimited(inner as JsonSchema, `${path}${name}`, seen) : [];
  return [
    ...(types.includes("string") && !["enum", "const", "maxLength"].some((one) => one in schema) ? [path] : []),
    ...(types.includes("array") && !("maxItems" in schema) ? [path] : []),
    ...(additionalProperties && !("maxProperties" in schema) ? [path] : []),
    ...within(items, "[]"),
    ...within(additionalProperties, ".*"),
    ...Object.entries(properties ?? {}).flatMap(([name, inner]) => within(inner, `.${name}`)),
  ];
}

test("every list, map and text of a request has its limit, except texts that only the body limits", () => {
  const found = rows.flatMap((row) => {
    const schema = operationOf(row).requestBody?.content["application/json"]?.schema;
    return schema ? unlimited(schema, row.id) : [];
  });
  expect(found.map((path) => path.split(".").at(-1)).filter((name, i, all) => all.indexOf(name) === i)).toEqual([
    "raw_value",
    "stdin",
  ]);
  const lists = rows.flatMap((row) => operationOf(row).parameters ?? []).filter(({ schema }) => schema["items"]);
  expect(lists.map(({ name, schema }) => [name, schema["maxItems"]])).toEqual(lists.map(({ name }) => [name, 100]));
});

const entries = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`K${i}`, "x"]));
const numbers = (length: number): number[] => Array.from({ length }, () => 1);
const config = (more: object): object => ({ config: { image: "nginx", ...more } });
const face = "\ud83d\ude00";

test.each([
  ["machines.create", "/apps/web/machines", (n: number) => config({ env: entries(n) }), 1000],
  ["machines.create", "/apps/web/machines", (n: number) => config({ env: { A: "x".repeat(n) } }), 65_536],
  ["machines.create", "/apps/web/machines", (n: number) => config({ env: { A: face.repeat(n) } }), 65_536],
  [
    "machines.create",
    "/apps/web/machines",
    (n: number) => config({ statics: [], init: { cmd: Array.from({ length: n }, () => "x") } }),
    1000,
  ],
  ["secrets.set", "/apps/web/secrets/ONE", (n: number) => ({ value: face.repeat(n) }), 65_536],
  ["secretKeys.encrypt", "/apps/web/secretkeys/k/encrypt", (n: number) => ({ plaintext: numbers(n) }), 75_000],
  [
    "platform.placements",
    "/platform/placements",
    (n: number) => ({ org_slug: "personal", region: "any".padEnd(n) }),
    1000,
  ],
])("%s accepts as much as it describes, and no more: %s", async (id, path, bodyWith, limit) => {
  const { call } = await withApp({ strict: false });
  await call("POST", "/apps/web/secretkeys/k/generate", { type: "xaes256gcm" });
  const row = rows.find((one) => one.id === id) as Operation;
  for (const [count, isTaken] of [
    [limit, true],
    [limit + 1, false],
  ] as const) {
    const answer = await call("POST", path, bodyWith(count));
    expect([answer.status < 300, bodyOf(row)(bodyWith(count))], answer.text).toEqual([isTaken, isTaken]);
  }
});
