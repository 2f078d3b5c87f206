// The secrets of the interface.
import type { Field } from "../../api/schema.ts";

/** The names of the fields of a body that are secrets. */
export function secretsIn({ shape }: Field): string[] {
  if (shape.kind !== "object") return [];
  return Object.entries(shape.fields).flatMap(([name, field]) =>
    field.meta.secret === true ? [name] : secretsIn(field),
  );
}
