// Property values as the engine reads and writes them, including marks. Based on the engine's own codec (rpc.go), not on
// the provider's: the two must agree.
import struct from "google-protobuf/google/protobuf/struct_pb.js";
import type { Struct, Value } from "google-protobuf/google/protobuf/struct_pb.js";
import { define, isObject } from "../../api/schema.ts";

/** Values as a test writes them: JSON with {@link Secret}, {@link Unknown}, {@link Output} and {@link Reference}. */
export type Properties = Record<string, unknown>;

const sigKey = "4dabf18193072939515e22adb298388d";
const sigs = {
  secret: "1b47061264138c4ac30d75fd1eb44270",
  output: "d0e6a833031e9bbcd3f4e8bde6ca49a4",
  reference: "5cf8f73096256a8f31e491e813e4eb8e",
} as const;
const sentinels = {
  string: "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
  boolean: "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
  number: "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
  array: "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
  object: "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
  asset: "030794c1-ac77-496b-92df-f27374a8bd58",
  archive: "e48ece36-62e2-4504-bad9-02848725956a",
} as const;

/** The engine's types of unknown values. */
export type UnknownType = keyof typeof sentinels;
export const unknownTypes = Object.keys(sentinels) as UnknownType[];

/** A secret value. */
export class Secret {
  readonly secret: unknown;
  constructor(secret: unknown) {
    this.secret = secret;
  }
}

/** An unknown value. */
export class Unknown {
  readonly unknown: UnknownType;
  constructor(type: UnknownType) {
    this.unknown = type;
  }
}

/** An output: a value (`undefined`: unknown) and its dependencies. */
export class Output {
  readonly output: unknown;
  readonly isSecret: boolean;
  readonly dependencies: readonly string[];
  constructor(output: unknown, options: { secret?: boolean; dependencies?: readonly string[] } = {}) {
    this.output = output;
    this.isSecret = options.secret ?? false;
    this.dependencies = options.dependencies ?? [];
  }
}

/** A reference to another resource; it may have no id yet. */
export class Reference {
  readonly urn: string;
  readonly id: string | Unknown | undefined;
  constructor(urn: string, id?: string | Unknown) {
    this.urn = urn;
    this.id = id;
  }
}

export const secret = (value: unknown): Secret => new Secret(value);
export const unknown = (type: UnknownType = "string"): Unknown => new Unknown(type);

/** Properties as a message. */
export function toStruct(properties: Properties): Struct {
  const message = new struct.Struct();
  const map = message.getFieldsMap();
  for (const [name, value] of Object.entries(properties)) map.set(name, toValue(value));
  return message;
}

function toValue(value: unknown): Value {
  if (value instanceof Secret) return signed("secret", { value: value.secret });
  if (value instanceof Output) {
    return signed("output", {
      ...(value.output === undefined ? {} : { value: value.output }),
      ...(value.isSecret ? { secret: true } : {}),
      ...(value.dependencies.length > 0 ? { dependencies: value.dependencies } : {}),
    });
  }
  if (value instanceof Reference)
    return signed("reference", { urn: value.urn, ...(value.id === undefined ? {} : { id: value.id }) });
  const message = new struct.Value();
  if (value instanceof Unknown) message.setStringValue(sentinels[value.unknown]);
  else if (value === null) message.setNullValue(struct.NullValue.NULL_VALUE);
  else if (typeof value === "string") message.setStringValue(value);
  else if (typeof value === "number") message.setNumberValue(value);
  else if (typeof value === "boolean") message.setBoolValue(value);
  else if (Array.isArray(value)) {
    const list = new struct.ListValue();
    list.setValuesList(value.map(toValue));
    message.setListValue(list);
  } else if (isObject(value)) message.setStructValue(toStruct(value));
  else throw new Error(`a ${typeof value} is no property value`);
  return message;
}

const signed = (kind: keyof typeof sigs, fields: Properties): Value => toValue({ [sigKey]: sigs[kind], ...fields });

/** Properties of a message. Like the engine, it refuses malformed values, and unknown values outside of previews. */
export function fromStruct(message: Struct, { unknowns }: { readonly unknowns: boolean }): Properties {
  const properties: Properties = {};
  message.getFieldsMap().forEach((value: Value, name: string) => {
    define(properties, name, fromValue(value, unknowns, name));
  });
  return properties;
}

function fromValue(value: Value, unknowns: boolean, name: string): unknown {
  const { KindCase } = struct.Value;
  const kind = value.getKindCase();
  if (kind === KindCase.NULL_VALUE) return null;
  if (kind === KindCase.NUMBER_VALUE) return value.getNumberValue();
  if (kind === KindCase.BOOL_VALUE) return value.getBoolValue();
  if (kind === KindCase.LIST_VALUE)
    return (value.getListValue()?.getValuesList() ?? []).map((item) => fromValue(item, unknowns, name));
  if (kind === KindCase.STRING_VALUE) {
    const text = value.getStringValue();
    const type = unknownTypes.find((known) => sentinels[known] === text);
    if (type === undefined) return text;
    if (!unknowns) throw new Error(`unexpected unknown property value for ${name}`);
    return new Unknown(type);
  }
  const inner = value.getStructValue();
  if (kind !== KindCase.STRUCT_VALUE || !inner) throw new Error(`a value without a kind for ${name}`);
  const fields = fromStruct(inner, { unknowns });
  if (!Object.hasOwn(fields, sigKey)) return fields;
  if (fields[sigKey] === sigs.secret && Object.hasOwn(fields, "value")) return new Secret(fields["value"]);
  if (fields[sigKey] === sigs.output)
    return new Output(fields["value"], {
      secret: fields["secret"] === true,
      dependencies: (fields["dependencies"] ?? []) as string[],
    });
  throw new Error(`malformed or unrecognized signature ${String(fields[sigKey])} for ${name}`);
}

/** The values without marks; unknown values stay unknown. */
export function revealed(value: unknown): unknown {
  if (value instanceof Secret) return revealed(value.secret);
  if (value instanceof Output) return revealed(value.output);
  if (Array.isArray(value)) return value.map(revealed);
  if (!isObject(value) || value instanceof Unknown || value instanceof Reference) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, revealed(inner)]));
}

/** All plain values as text: what the engine would show and store unencrypted. */
export const clearText = (value: unknown): string =>
  JSON.stringify(value, (_name, inner: unknown) =>
    inner instanceof Secret || (inner instanceof Output && inner.isSecret) ? "[secret]" : inner,
  );

/** Paths where a preview's known value differs from the later result; unknown values promise nothing. */
export function brokenPromises(previewed: unknown, real: unknown, path = ""): string[] {
  if (previewed instanceof Unknown || (previewed instanceof Secret && previewed.secret instanceof Unknown)) return [];
  if (isObject(previewed) && isObject(real))
    return Object.keys(previewed)
      .filter((name) => !name.startsWith("__"))
      .flatMap((name) => brokenPromises(previewed[name], real[name], `${path}.${name}`));
  return JSON.stringify(previewed) === JSON.stringify(real)
    ? []
    : [`${path}: previewed ${JSON.stringify(previewed)}, real ${JSON.stringify(real)}`];
}
