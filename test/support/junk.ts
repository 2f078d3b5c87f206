// Values that a schema does not expect, for tests of what is said about them.
import fc from "fast-check";
import type { Field } from "../../api/schema.ts";

const words = ["strated", "htpp", "", "3", "-1s", "UPPER CASE", "a/b", "__proto__", "x".repeat(300)];

const scalar: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...words),
  fc.string({ maxLength: 8 }),
  fc.constantFrom(-1, 0, 1.5, 70_000, 1e300),
  fc.boolean(),
  fc.constant(null),
);

/** Values by chance for a field, most of which it refuses. Objects and lists are often of the right shape, with junk inside. */
export function junkFor({ shape }: Field, depth = 0): fc.Arbitrary<unknown> {
  const other: fc.Arbitrary<unknown> = fc.oneof(
    scalar,
    fc.array(scalar, { maxLength: 2 }),
    fc.dictionary(fc.constantFrom("a", "naem", "A.B"), scalar, { maxKeys: 2 }),
  );
  if (shape.kind === "leaf" || depth > 4) return other;
  const inside =
    shape.kind === "object"
      ? fc.record(
          {
            ...Object.fromEntries(
              Object.entries(shape.fields).map(([name, inner]) => [name, junkFor(inner, depth + 1)]),
            ),
            unexpected_name: scalar,
          },
          { requiredKeys: [] },
        )
      : shape.kind === "array"
        ? fc.array(junkFor(shape.item, depth + 1), { maxLength: 2 })
        : fc.dictionary(fc.constantFrom("a", "B_C", "not a name"), junkFor(shape.value, depth + 1), { maxKeys: 2 });
  return fc.oneof({ arbitrary: inside, weight: 4 }, { arbitrary: other, weight: 1 });
}

/** How zod itself words a problem. Users are to see none of it. */
export const zodsWords =
  /Invalid (?:input|option|key|element|string|number|discriminator|regex)|expected \w+, received|Too (?:small|big)|Unrecognized key|Invalid \w+$/;
