// Random valid values of a schema, for property tests.
import fc from "fast-check";
import { isObject, type Field } from "../../api/schema.ts";

const word = fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/);

/** Candidates for strings with a special format. */
const words = [
  "/data",
  "/var/lib/x",
  "registry.example.com/a:1",
  "ams",
  "fra",
  "basic",
  "2026-01-31T12:00:00Z",
  "www.example.com",
  "aGVsbG8=",
  "25%",
  "2",
];

/** Values that a field accepts. */
export function arbitraryOf(field: Field): fc.Arbitrary<unknown> {
  const { shape, meta } = field;
  if (meta.format === "duration") return fc.constantFrom("15s", "1m30s", "90s", "500ms", "1h", "0s");
  if (meta.format === "autostop") return fc.constantFrom("off", "stop", "suspend", true, false);
  if (meta.format === "image")
    return fc.constantFrom("nginx", "registry.example.com/a:1", `web@sha256:${"4f".repeat(32)}`);
  if (meta.format === "reference")
    return fc.constantFrom("app/vol_1", "vol_1", "vol-2", "app").filter((id) => shape.schema.safeParse(id).success);
  switch (shape.kind) {
    case "object": {
      const entries = Object.entries(shape.fields);
      const required = entries.filter(([, inner]) => !inner.optional).map(([name]) => name);
      const model = Object.fromEntries(entries.map(([name, inner]) => [name, arbitraryOf(inner)]));
      return fc
        .record(model, { requiredKeys: required })
        .map((value) => prune(value as Record<string, unknown>, required));
    }
    case "record":
      return fc.dictionary(
        fc.oneof(word, fc.constantFrom("A_B", "snake_case_key", "__proto__x")),
        arbitraryOf(shape.value),
        { maxKeys: 3 },
      );
    case "array":
      return fc
        .array(arbitraryOf(shape.item), { maxLength: 2 })
        .filter((list) => shape.schema.safeParse(list).success || list.length < 2);
    case "leaf":
      return leaf(field);
  }
}

/** Large schemas would produce large values, so half of the optional fields are omitted. */
const prune = (value: Record<string, unknown>, required: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(value).filter(
      ([name, inner], i) => required.includes(name) || (isObject(inner) ? i % 3 === 0 : i % 2 === 0),
    ),
  );

function leaf({ shape, meta }: Field): fc.Arbitrary<unknown> {
  if (shape.kind !== "leaf") return fc.constant(undefined);
  if (shape.values) return fc.constantFrom(...shape.values);
  const candidates =
    shape.type === "string"
      ? fc.oneof(word, fc.constantFrom(...words))
      : shape.type === "integer"
        ? fc.integer({ min: 1, max: 600 })
        : shape.type === "number"
          ? fc.constantFrom(0.25, 0.5, 1)
          : shape.type === "boolean"
            ? fc.boolean()
            : fc.constantFrom<unknown>("x", 1, true, { deep: [1] });
  const isValid = (value: unknown): boolean => shape.schema.safeParse(value).success;
  // A filter that nothing passes would never end.
  if (shape.type === "string" && !["abc", ...words].some(isValid))
    throw new Error(
      `no candidate is "${meta.description ?? ""}": add a valid text to \`words\` in test/support/arbitrary.ts`,
    );
  return candidates.filter(isValid);
}
