// Converts between snake_case in HTTP and camelCase in programs, by schema, so that user-defined keys of `env`, `metadata`
// and other maps are never changed.
import { z } from "zod";
import { define, fieldOf, isObject, type Field } from "./schema.ts";

/** The camelCase form of an HTTP key. */
export type CamelKey<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelKey<Tail>>}`
  : S;

/** An HTTP type with camelCase keys; maps keep theirs. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? string extends keyof T
      ? { [K in keyof T]: Camel<T[K]> }
      : { [K in keyof T as K extends string ? CamelKey<K> : K]: Camel<T[K]> }
    : T;

/** `size_gb` becomes `sizeGb`. */
export const camelKey = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

type Names = ReadonlyMap<string, [string, Field]>;
type Renamed = (fields: Readonly<Record<string, Field>>) => Names;

/** The fields of an object by their other names, computed once per schema. */
function namesBy(key: (wire: string) => string, other: (wire: string) => string): Renamed {
  const made = new WeakMap<object, Names>();
  return (fields) => {
    let names = made.get(fields);
    if (!names)
      made.set(
        fields,
        (names = new Map(Object.entries(fields).map(([name, field]) => [key(name), [other(name), field]]))),
      );
    return names;
  };
}

const itself = (name: string): string => name;
const byCamelName = namesBy(camelKey, itself);
const byWireName = namesBy(itself, camelKey);

function convert(field: Field, value: unknown, renamed: Renamed): unknown {
  const { shape } = field;
  if (shape.kind === "array")
    return Array.isArray(value) ? value.map((item) => convert(shape.item, item, renamed)) : value;
  if (!isObject(value) || shape.kind === "leaf") return value;
  const out: Record<string, unknown> = {};
  const named = shape.kind === "object" ? renamed(shape.fields) : undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    const [key, known] = named?.get(name) ?? [name, shape.kind === "record" ? shape.value : undefined];
    define(out, key, known ? convert(known, inner, renamed) : inner);
  }
  return out;
}

/** An HTTP value with camelCase keys. Fields that the schema does not know keep their names. */
export const fromWire = (schema: z.ZodType, value: unknown): unknown => convert(fieldOf(schema), value, byWireName);

/** The HTTP form of a camelCase value; the inverse of {@link fromWire}. `undefined` is omitted. */
export const toWire = (schema: z.ZodType, value: unknown): unknown => convert(fieldOf(schema), value, byCamelName);

const camelSchemas = new WeakMap<z.ZodType, z.ZodType>();

/** The schema of an HTTP value after {@link fromWire}: the same rules and descriptions with camelCase names. */
export function camelSchema<S extends z.ZodType>(schema: S): z.ZodType<Camel<z.infer<S>>> {
  const build = (wire: z.ZodType): z.ZodType => {
    let made = camelSchemas.get(wire);
    if (!made) camelSchemas.set(wire, (made = rebuild(wire)));
    return made;
  };
  const rebuild = (wire: z.ZodType): z.ZodType => {
    const meta = wire.meta();
    const keep = (built: z.ZodType): z.ZodType => (meta ? built.meta(meta) : built);
    if (wire instanceof z.ZodOptional) return keep(build(wire.unwrap() as z.ZodType).optional());
    if (wire instanceof z.ZodNullable) return keep(build(wire.unwrap() as z.ZodType).nullable());
    if (wire instanceof z.ZodArray) {
      const built = z.array(build(wire.element as z.ZodType));
      return keep(built.check(...((wire.def.checks ?? []) as unknown as Parameters<typeof built.check>)));
    }
    if (wire instanceof z.ZodRecord) return keep(z.record(z.string(), build(wire.valueType as z.ZodType)));
    if (wire instanceof z.ZodObject) {
      const entries = Object.entries(wire.shape);
      return keep(z.object(Object.fromEntries(entries.map(([name, inner]) => [camelKey(name), build(inner)]))));
    }
    return wire;
  };
  return build(schema) as unknown as z.ZodType<Camel<z.infer<S>>>;
}
