// JSON Schemas of the rows of the contract: exactly the requests that the service accepts and the answers that it sends.
import { z } from "zod";
import { imagePattern } from "../../api/image.ts";
import { fieldOf, standsForNothing, type Field, type Shape } from "../../api/schema.ts";
import { limitsOf } from "../validation/bodyLimits.ts";

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The direction of a value. Requests may contain values that are tidied before validation; answers may not. */
export type Side = "request" | "answer";

/** The named schemas. */
export interface Components {
  /** Names by the definition of their zod schema, which stays the same when a description is added. */
  readonly names: ReadonlyMap<unknown, string>;
  /** Schemas by name, added when they are first used. */
  readonly schemas: Record<string, JsonSchema>;
  /** Whether requests with unknown fields are refused. */
  readonly strict: boolean;
  /** Whether values are described that the service takes only for the sake of some clients; generators would choke on them. */
  readonly lenient: boolean;
}

const noMetadata = z.registry<Record<string, unknown>>();

function plain(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { metadata: noMetadata, io: "input", unrepresentable: "any" });
  return json;
}

const orNull = (schema: JsonSchema): JsonSchema =>
  typeof schema["type"] === "string" && !("enum" in schema)
    ? { ...schema, type: [schema["type"], "null"] }
    : { anyOf: [schema, { type: "null" }] };

/** A schema that the empty text is valid for, too. */
export const orEmpty = (schema: JsonSchema): JsonSchema =>
  schema["type"] === "string" && !("pattern" in schema) && !("enum" in schema)
    ? schema
    : { anyOf: [schema, { const: "" }] };

// All integers have this limit; in answers it is noise.
const { MAX_SAFE_INTEGER: largest, MIN_SAFE_INTEGER: smallest } = Number;

/** The lower of a limit of the interface and one of the service. */
const fewer = (declared: unknown, limit: number): number =>
  typeof declared === "number" ? Math.min(declared, limit) : limit;

/** Adds the longest length of a text, unless it is an enumeration. */
function withLength(json: JsonSchema, limit: number): JsonSchema {
  const { anyOf, type, maxLength } = json;
  if (Array.isArray(anyOf)) return { ...json, anyOf: anyOf.map((one: JsonSchema) => withLength(one, limit)) };
  if (type !== "string" || "enum" in json || "const" in json) return json;
  return { ...json, maxLength: fewer(maxLength, limit) };
}

function leaf(field: Field, schema: z.ZodType, side: Side): JsonSchema {
  const { format, spellings, secret } = field.meta;
  const json = plain(schema);
  if (side === "answer") {
    if (json["maximum"] === largest) delete json["maximum"];
    if (json["minimum"] === smallest) delete json["minimum"];
  }
  if (secret && json["type"] === "string") json["format"] = "password";
  if (format === "bytes") json["contentEncoding"] = "base64";
  if (side === "answer") return json;
  if (format === "image") json["pattern"] = imagePattern.source;
  const { characters, items } = limitsOf(field);
  const taken = characters === undefined ? json : withLength(json, characters);
  const byte = { type: "integer", minimum: 0, maximum: 255 };
  if (format === "bytes") return { anyOf: [taken, { type: "array", items: byte, maxItems: items }] };
  const nanoseconds = { type: "integer", minimum: 0, maximum: largest, description: "Nanoseconds." };
  if (format === "duration") return { anyOf: [taken, nanoseconds] };
  return spellings ? { anyOf: [taken, { enum: Object.keys(spellings).map(Number) }] } : taken;
}

function object(
  shape: Extract<Shape, { kind: "object" }>,
  side: Side,
  open: boolean,
  components: Components,
): JsonSchema {
  const entries = Object.entries(shape.fields);
  const required = entries.filter(([, field]) => !field.optional).map(([name]) => name);
  const inner = (field: Field): JsonSchema => {
    const described = jsonSchema(field, side, components, open);
    const json =
      components.lenient && side === "request" && standsForNothing(field, "") ? orEmpty(described) : described;
    // Null means that the field is absent.
    return side === "request" && field.optional && !field.nullable ? orNull(json) : json;
  };
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, field]) => [name, described(field, inner(field))])),
    ...(required.length > 0 ? { required } : {}),
    ...((side === "answer" && !open) || (side === "request" && components.strict)
      ? { additionalProperties: false }
      : {}),
  };
}

function described(field: Field, json: JsonSchema): JsonSchema {
  const { description, wireDefault, deprecationMessage } = field.meta;
  return {
    ...json,
    ...(description === undefined ? {} : { description }),
    ...(wireDefault === undefined ? {} : { default: wireDefault }),
    ...(deprecationMessage === undefined ? {} : { deprecated: true }),
  };
}

/** Names of schemas that keep unknown fields. */
const keepsUnknown = new Set(["MachineConfig"]);

/** The schema of a field without its description. `open` allows unknown fields in answers. */
export function jsonSchema(field: Field, side: Side, components: Components, open = false): JsonSchema {
  const json = ofShape(field, side, components, open);
  return field.nullable ? orNull(json) : json;
}

function ofShape(field: Field, side: Side, components: Components, open: boolean): JsonSchema {
  const { shape } = field;
  if (shape.kind === "leaf") return leaf(field, shape.schema, side);
  const limits = limitsOf(field);
  if (shape.kind === "array") {
    const json = plain(shape.schema);
    return {
      ...json,
      ...(side === "request" ? { maxItems: fewer(json["maxItems"], limits.items) } : {}),
      items: jsonSchema(shape.item, side, components, open),
    };
  }
  if (shape.kind === "record") {
    const value = jsonSchema(shape.value, side, components, open);
    const known = field.meta.members && fieldOf(field.meta.members).shape;
    return {
      ...plain(shape.schema),
      ...(known?.kind === "object" ? { properties: object(known, side, true, components)["properties"] } : {}),
      ...(side === "request" ? { maxProperties: limits.properties } : {}),
      additionalProperties: side === "request" && !shape.value.nullable ? orNull(value) : value,
    };
  }
  const { typeName } = field.meta;
  const name = components.names.get(shape.schema.def) ?? typeName;
  if (name === undefined) return object(shape, side, open, components);
  const full = side === "answer" || name.endsWith("Request") ? name : `${name}Request`;
  if (!Object.hasOwn(components.schemas, full)) {
    components.schemas[full] = {}; // so that a recursive schema is built once
    components.schemas[full] = object(shape, side, open || keepsUnknown.has(name), components);
  }
  return { $ref: `#/components/schemas/${full}` };
}

/** The schema of a whole body. */
export const bodySchema = (schema: z.ZodType, side: Side, components: Components): JsonSchema =>
  jsonSchema(fieldOf(schema), side, components);
