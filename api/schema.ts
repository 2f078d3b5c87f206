// Schemas shared by both sides: how fields are described, which defaults the service documents for them, and how a received
// value is normalized before it is validated.
import { z } from "zod";
import { imageProblem } from "./image.ts";

/** The metadata of a field beside its zod type; read with {@link fieldOf}. */
export interface FieldMeta {
  /** One sentence, with units; the source of the reference docs and of the editor's hover text. */
  readonly description?: string;
  /** The value that the service uses if the field is omitted. Omitting it and writing this value are equivalent. */
  readonly wireDefault?: unknown;
  /** How two spellings of one value are recognised as equal, or what {@link formProblem} requires of a text. */
  readonly format?: "duration" | "autostop" | "reference" | "bytes" | "caseless" | "image" | "greatest";
  /** The values of today, where the service may take others tomorrow: editors complete them, and programs may use others. */
  readonly open?: readonly string[];
  /** Other spellings of the values on the wire, which {@link tidy} rewrites: the number of a signal. */
  readonly spellings?: Readonly<Record<string, string>>;
  /** The value never appears in plain text in state, logs, errors or diffs. */
  readonly secret?: boolean;
  /** The value is sent and never stored, not even as a secret. */
  readonly writeOnly?: WriteOnly;
  /** The value may contain a secret marked by the program: errors never quote it. */
  readonly sensitive?: boolean;
  /** The text may be as long as a body: contents of a file, or a command's input. */
  readonly long?: boolean;
  /** The maximum length of the text, if it is shorter than for other texts. */
  readonly longest?: number;
  /** The object or text is meaningful even if empty: `{}` or `""` differs from an omitted value. */
  readonly presence?: boolean;
  /** The members of a map that are known: they describe its form on the wire, and programs get a map. */
  readonly members?: z.ZodObject;
  /** Name of the type of the object, or of the list's items, in schema and SDKs, if it occurs in several places. */
  readonly typeName?: string;
  /** Why the field should no longer be used. */
  readonly deprecationMessage?: string;
}

/** How a program gives a value that is never stored. */
export interface WriteOnly {
  /** The input that the program can give instead, which is stored. */
  readonly insteadOf: string;
  /** The input whose change writes the value again, because no diff sees the value. */
  readonly version: string;
  /** Whether one of the two values is required. */
  readonly isRequired: boolean;
}

/** A required field. */
export const required = <S extends z.ZodType>(
  schema: S,
  description: string,
  meta: Omit<FieldMeta, "description"> = {},
): S => schema.meta({ ...meta, description });

/** An optional field. */
export function optional<S extends z.ZodType>(
  schema: S,
  description: string,
  meta: Omit<FieldMeta, "description"> = {},
): z.ZodOptional<S> {
  const made: z.ZodOptional<S> = schema.optional();
  // New schemas are described in place: `meta` would copy each, and there are hundreds.
  z.globalRegistry.add(made, { ...meta, description });
  return made;
}

/** A field that the interface lists as optional and the service requires: the empty text is a wrong value, not a missing one. */
export const needed = <S extends z.ZodType>(schema: S, description: string): z.ZodOptional<S> =>
  optional(schema, description, { presence: true });

/** Names the type of an object, or of the items of a list, that occurs in several places. */
export const named = <S extends z.ZodType>(typeName: string, schema: S): S => schema.meta({ typeName });

const durationUnits: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };
const durationPattern = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$|^0$/;

/** Nanoseconds of a Go duration such as `"1m30s"`, or undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (durationUnits[unit ?? ""] ?? 0);
  }
  // Whole nanoseconds, because products such as 16.612 × 1e9 are slightly inexact.
  return Math.round(total);
}

/** The Go form of a number of nanoseconds: `90e9` is `"1m30s"`. */
export function formatDuration(nanoseconds: number): string {
  if (nanoseconds === 0) return "0s";
  if (nanoseconds < 1e9) return `${nanoseconds / 1e6}ms`;
  const hours = Math.floor(nanoseconds / 3600e9);
  const minutes = Math.floor((nanoseconds % 3600e9) / 60e9);
  const seconds = (nanoseconds % 60e9) / 1e9;
  return `${hours ? `${hours}h` : ""}${minutes ? `${minutes}m` : ""}${seconds ? `${seconds}s` : ""}`;
}

/**
 * A Go duration (`"15s"`, `"1m30s"`). A bare number in HTTP is nanoseconds (docs/interface.md#values-on-the-wire) and is
 * rewritten by {@link tidy}.
 */
export const duration = () =>
  z.string().regex(durationPattern, 'must be a duration such as "15s" or "1m30s"').meta({ format: "duration" });

/**
 * Bytes as a base64 string (standard alphabet, padded). An array of integers is equivalent (docs/interface.md#secret-keys)
 * and is rewritten by {@link tidy}.
 */
export const bytes = () =>
  z
    .string()
    .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, "must be base64")
    .meta({ format: "bytes" });

const isNanoseconds = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const isByte = (value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;

/**
 * Why a text is not of the form that its field requires. It is no part of the schema, because an answer may hold a text
 * from before the form was required.
 */
export const formProblem = ({ meta }: Pick<Field, "meta">, value: unknown): string | undefined =>
  meta.format === "image" && typeof value === "string" ? imageProblem(value) : undefined;

/**
 * Whether a value of a request stands for an omitted field (docs/interface.md#values-on-the-wire). ASSUMED: an empty text for an
 * optional field counts as absent, in queries and bodies, except for the contents of a file; where a field is required, it is a value.
 */
export const standsForNothing = ({ shape, optional: isOptional, meta }: Field, value: unknown): boolean =>
  value === "" && isOptional && meta.presence !== true && shape.kind === "leaf" && textual.has(shape.type);

// --- shapes: the one way this code looks inside a zod schema ---------------------------------------------------

/** A zod schema reduced to what is needed to walk a value. */
export type Shape =
  | { readonly kind: "object"; readonly fields: Readonly<Record<string, Field>>; readonly schema: z.ZodType }
  | { readonly kind: "record"; readonly value: Field; readonly schema: z.ZodType }
  | { readonly kind: "array"; readonly item: Field; readonly schema: z.ZodType }
  | { readonly kind: "leaf"; readonly type: LeafType; readonly values?: readonly string[]; readonly schema: z.ZodType };

/** A type without nested types. `any` is JSON that is not inspected. */
export type LeafType = "string" | "integer" | "number" | "boolean" | "stringOrBoolean" | "any";

/** Types whose values may be texts. */
const textual: ReadonlySet<LeafType> = new Set(["string", "stringOrBoolean"]);

/** A position in a shape: the allowed values and their metadata. */
export interface Field {
  readonly shape: Shape;
  readonly optional: boolean;
  readonly nullable: boolean;
  readonly meta: FieldMeta & Record<string, unknown>;
  /** The zod default of a Pulumi input; HTTP fields have none (see {@link FieldMeta.wireDefault}). */
  readonly default?: unknown;
}

const fields = new WeakMap<z.ZodType, Field>();

/** The field of a schema; wrappers (`optional`, `nullable`, `default`) are removed, and their metadata merged. */
export function fieldOf(schema: z.ZodType): Field {
  let field = fields.get(schema);
  if (!field) fields.set(schema, (field = readField(schema)));
  return field;
}

function readField(schema: z.ZodType): Field {
  const own = (schema.meta() ?? {}) as Field["meta"];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    const inner = fieldOf(schema.unwrap() as z.ZodType);
    return {
      ...inner,
      optional: inner.optional || !(schema instanceof z.ZodNullable),
      nullable: inner.nullable || schema instanceof z.ZodNullable,
      meta: { ...inner.meta, ...own },
      ...(schema instanceof z.ZodDefault ? { default: schema.def.defaultValue } : {}),
    };
  }
  return { shape: readShape(schema), optional: false, nullable: false, meta: own };
}

function readShape(schema: z.ZodType): Shape {
  if (schema instanceof z.ZodObject) {
    const entries = Object.entries(schema.shape);
    return {
      kind: "object",
      fields: Object.fromEntries(entries.map(([name, inner]) => [name, fieldOf(inner)])),
      schema,
    };
  }
  if (schema instanceof z.ZodRecord) return { kind: "record", value: fieldOf(schema.valueType as z.ZodType), schema };
  if (schema instanceof z.ZodArray) return { kind: "array", item: fieldOf(schema.element as z.ZodType), schema };
  if (schema instanceof z.ZodEnum) return { kind: "leaf", type: "string", values: schema.options.map(String), schema };
  if (schema instanceof z.ZodString || schema instanceof z.ZodStringFormat)
    return { kind: "leaf", type: "string", schema };
  if (schema instanceof z.ZodBoolean) return { kind: "leaf", type: "boolean", schema };
  if (schema instanceof z.ZodNumber) return { kind: "leaf", type: schema.isInt ? "integer" : "number", schema };
  if (schema instanceof z.ZodUnion) return { kind: "leaf", type: "stringOrBoolean", schema };
  return { kind: "leaf", type: "any", schema };
}

/** True for a plain JSON object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The results of {@link tidy}. */
export interface Tidied {
  readonly value: unknown;
  /** Paths of fields the schema does not know; they are kept in the value. */
  readonly unknown: readonly string[];
}

/**
 * Normalizes a received value before validation: a null that stands for an omitted field is removed, and so is an empty text
 * of a request (docs/interface.md#values-on-the-wire); a duration in nanoseconds and bytes as numbers are rewritten, unknown
 * fields are kept and listed.
 */
export function tidy(schema: z.ZodType, value: unknown, side: "request" | "answer"): Tidied {
  const unknown: string[] = [];
  const walk = (field: Field, at: unknown, path: string): unknown => {
    const { shape } = field;
    if (field.meta.format === "duration" && isNanoseconds(at)) return formatDuration(at);
    const { spellings } = field.meta;
    if (spellings && typeof at === "number") return spellings[String(at)] ?? at;
    if (field.meta.format === "bytes" && Array.isArray(at) && at.every(isByte))
      return Buffer.from(at).toString("base64");
    if (shape.kind === "array")
      return Array.isArray(at) ? at.map((item, i) => walk(shape.item, item, `${path}[${i}]`)) : at;
    if (!isObject(at) || shape.kind === "leaf") return at;
    const out: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(at)) {
      const known =
        shape.kind === "record" ? shape.value : Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
      const innerPath = path ? `${path}.${name}` : name;
      if (!known) {
        unknown.push(innerPath);
        define(out, name, inner);
      } else if (side === "request" && standsForNothing(known, inner)) continue;
      else if (inner !== null || known.nullable) define(out, name, walk(known, inner, innerPath));
    }
    return out;
  };
  return { value: walk(fieldOf(schema), value, ""), unknown };
}

/** Sets a property of any name: an assignment to `__proto__` would be lost. */
export function define(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__")
    Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
  else target[name] = value;
}
