// Converts property values between the engine's gRPC format and core's plain JSON: secrets, outputs and unknown values are
// unwrapped on input and restored on output.
import struct from "google-protobuf/google/protobuf/struct_pb.js";
import type { Struct, Value as WireValue } from "google-protobuf/google/protobuf/struct_pb.js";
import { define, isObject, type Field } from "../../api/schema.ts";
import { CONTEXT, type Values } from "../core/resource.ts";
import { equal, fieldAt, UNKNOWN } from "../core/values.ts";

/** The key that marks an object as a special value, and the kinds of special values. */
const signature = "4dabf18193072939515e22adb298388d";
const secretSignature = "1b47061264138c4ac30d75fd1eb44270";
const outputSignature = "d0e6a833031e9bbcd3f4e8bde6ca49a4";
const resourceSignature = "5cf8f73096256a8f31e491e813e4eb8e";

/**
 * The engine's forms of unknown values: one for every type. Answers use only the first, which is the engine's own for text,
 * because SDKs know no other and would pass the rest to programs as values.
 */
const unknowns = [
  UNKNOWN,
  "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", // boolean
  "3eeb2bf0-c639-47a8-9e75-3b44932eb421", // number
  "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2", // array
  "dd056dcd-154b-4c76-9bd3-c8f88648b5ff", // object
  "030794c1-ac77-496b-92df-f27374a8bd58", // asset
  "e48ece36-62e2-4504-bad9-02848725956a", // archive
];
const isUnknown = new Set(unknowns);

/** The marks of a value (secret, dependencies) and of the values inside it. */
export interface Marks {
  readonly secret: boolean;
  /** URNs that the value depends on, if the engine sent an output. */
  readonly dependencies: readonly string[] | undefined;
  /** URN of the resource that the value refers to: the value itself is only its id. */
  readonly urn: string | undefined;
  readonly within: ReadonlyMap<string | number, Marks>;
  /** The list of these marks; its items may have other positions in another list. */
  readonly list: readonly unknown[] | undefined;
}

/** Plain values and their marks. */
export interface Decoded {
  readonly values: Values;
  readonly marks: Marks | undefined;
}

/** Reads a message of properties; a missing one is empty. */
export function decode(properties: Struct | undefined): Decoded {
  if (!properties) return { values: {}, marks: undefined };
  const { value, marks } = decodeFields(properties);
  return { values: value as Values, marks };
}

interface One {
  readonly value: unknown;
  readonly marks: Marks | undefined;
}

function decodeValue(wire: WireValue): One {
  const { KindCase } = struct.Value;
  switch (wire.getKindCase()) {
    case KindCase.STRING_VALUE: {
      const text = wire.getStringValue();
      return plain(isUnknown.has(text) ? UNKNOWN : text);
    }
    case KindCase.NUMBER_VALUE:
      return plain(wire.getNumberValue());
    case KindCase.BOOL_VALUE:
      return plain(wire.getBoolValue());
    case KindCase.LIST_VALUE:
      return decodeList(wire.getListValue()?.getValuesList() ?? []);
    case KindCase.STRUCT_VALUE: {
      const inner = wire.getStructValue();
      return inner ? decodeObject(inner) : plain({});
    }
    case KindCase.NULL_VALUE:
    case KindCase.KIND_NOT_SET:
      return plain(null);
  }
}

const plain = (value: unknown): One => ({ value, marks: undefined });

function decodeList(items: readonly WireValue[]): One {
  const list: unknown[] = [];
  const within = new Map<number, Marks>();
  items.forEach((item, i) => {
    const { value, marks } = decodeValue(item);
    list.push(value);
    if (marks) within.set(i, marks);
  });
  return { value: list, marks: within.size > 0 ? { ...unmarked, within, list } : undefined };
}

const unmarked: Marks = { secret: false, dependencies: undefined, urn: undefined, within: new Map(), list: undefined };

function decodeObject(wire: Struct): One {
  const fields = wire.getFieldsMap();
  const sig = fields.get(signature)?.getStringValue();
  const wrapped = fields.get("value");
  if (sig === secretSignature) {
    const { value, marks } = wrapped ? decodeValue(wrapped) : plain(null);
    return { value, marks: { ...unmarked, ...marks, secret: true } };
  }
  if (sig === outputSignature) {
    const { value, marks } = wrapped ? decodeValue(wrapped) : plain(UNKNOWN);
    const sources = fields.get("dependencies")?.getListValue()?.getValuesList() ?? [];
    return {
      value,
      marks: {
        ...unmarked,
        ...marks,
        secret: marks?.secret === true || fields.get("secret")?.getBoolValue() === true,
        dependencies: sources.map((source) => source.getStringValue()),
      },
    };
  }
  if (sig === resourceSignature) {
    // Inputs that refer to another resource use its id (R5); at preview it may not have one yet.
    const id = fields.get("id")?.getStringValue();
    const urn = fields.get("urn")?.getStringValue();
    return {
      value: id === undefined || id === "" || isUnknown.has(id) ? UNKNOWN : id,
      marks: urn === undefined ? undefined : { ...unmarked, urn },
    };
  }
  return decodeFields(wire);
}

function decodeFields(wire: Struct): One {
  const value: Values = {};
  const within = new Map<string, Marks>();
  wire.getFieldsMap().forEach((inner: WireValue, name: string) => {
    const decoded = decodeValue(inner);
    define(value, name, decoded.value);
    if (decoded.marks) within.set(name, decoded.marks);
  });
  return { value, marks: within.size > 0 ? { ...unmarked, within } : undefined };
}

/** A property's declaration. */
export type Fields = (name: string) => readonly Field[];

/** Writes values with their original marks. Values declared secret become secret in any case. */
export function encode(values: Values, fields: Fields, marks: Marks | undefined): Struct {
  const message = new struct.Struct();
  const map = message.getFieldsMap();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const known = name === CONTEXT ? [] : fields(name);
    map.set(name, encodeValue(value, known[0], marks?.within.get(name), known.some(isSecret)));
  }
  return message;
}

const isSecret = ({ meta }: Field): boolean => meta.secret === true;

function encodeValue(
  value: unknown,
  field: Field | undefined,
  marks: Marks | undefined,
  secret = field !== undefined && isSecret(field),
): WireValue {
  // A list may have become one of its items.
  const isItem = !isObject(value) && !Array.isArray(value);
  const hidden = secret || marks?.secret === true || (isItem && holdsSecret(marks));
  if (marks?.dependencies) {
    const output = signed(outputSignature);
    const map = output.getFieldsMap();
    if (value !== UNKNOWN) map.set("value", encodePlain(value, field, hidden ? undefined : marks, hidden));
    if (hidden) map.set("secret", struct.Value.fromJavaScript(true));
    if (marks.dependencies.length > 0)
      map.set("dependencies", struct.Value.fromJavaScript([...marks.dependencies] as never));
    return inValue(output);
  }
  // Inside a secret everything is already secret.
  const inner = encodePlain(value, field, hidden ? undefined : marks, hidden);
  if (!hidden) return inner;
  const wrapped = signed(secretSignature);
  wrapped.getFieldsMap().set("value", inner);
  return inValue(wrapped);
}

function encodePlain(value: unknown, field: Field | undefined, marks: Marks | undefined, hidden = false): WireValue {
  const message = new struct.Value();
  if (value === UNKNOWN) message.setStringValue(UNKNOWN);
  else if (typeof value === "string") message.setStringValue(value);
  else if (typeof value === "number") message.setNumberValue(value);
  else if (typeof value === "boolean") message.setBoolValue(value);
  else if (Array.isArray(value)) {
    const item = field && fieldAt(field, 0);
    const list = new struct.ListValue();
    list.setValuesList(
      value.map((inner: unknown, i) =>
        encodeValue(inner, item, itemMarks(marks, value, i), !hidden && item && isSecret(item)),
      ),
    );
    message.setListValue(list);
  } else if (isObject(value)) {
    const object = new struct.Struct();
    const map = object.getFieldsMap();
    for (const [name, inner] of Object.entries(value)) {
      if (inner === undefined) continue;
      const known = field && fieldAt(field, name);
      map.set(name, encodeValue(inner, known, marks?.within.get(name), !hidden && known && isSecret(known)));
    }
    message.setStructValue(object);
  } else message.setNullValue(struct.NullValue.NULL_VALUE);
  return message;
}

/**
 * Marks of the item at an index. In a list other than that of the marks, an item may have moved: it gets the marks of all
 * items, so that no secret is revealed.
 */
function itemMarks(marks: Marks | undefined, list: readonly unknown[], index: number): Marks | undefined {
  if (!marks || marks.within.size === 0) return undefined;
  if (marks.list && equal(marks.list[index], list[index])) return marks.within.get(index);
  return [...marks.within.values()].reduce<Marks | undefined>(mergedMarks, undefined);
}

/** The union of the marks of two values. */
export function mergedMarks(a: Marks | undefined, b: Marks | undefined): Marks | undefined {
  if (!a || !b) return a ?? b;
  const within = new Map(a.within);
  for (const [name, inner] of b.within) {
    const both = mergedMarks(within.get(name), inner);
    if (both) within.set(name, both);
  }
  return {
    secret: a.secret || b.secret,
    dependencies: a.dependencies ?? b.dependencies,
    urn: a.urn ?? b.urn,
    within,
    list: a.list ?? b.list,
  };
}

/** The marks of values that have other names now: `from` has the former name of each. */
export function movedMarks(marks: Marks | undefined, from: Readonly<Record<string, string>>): Marks | undefined {
  const moved = Object.entries(from).flatMap(([name, before]) => {
    const found = marks?.within.get(before);
    return found ? [[name, found] as const] : [];
  });
  return moved.length === 0 ? undefined : { ...unmarked, within: new Map(moved) };
}

/** The same marks, plus secret marks for properties with these names. */
export function withSecrets(marks: Marks | undefined, names: readonly string[]): Marks | undefined {
  if (names.length === 0) return marks;
  const secret: Marks = { ...unmarked, secret: true };
  return mergedMarks(marks, { ...unmarked, within: new Map(names.map((name) => [name, secret])) });
}

/** Marks of an answer's properties: whether all of them are secret, and what all of them depend on. */
export function marksOfAll(
  names: readonly string[],
  secret: boolean,
  dependencies: readonly string[],
): Marks | undefined {
  if (!secret && dependencies.length === 0) return undefined;
  const each: Marks = { ...unmarked, secret, dependencies: dependencies.length > 0 ? dependencies : undefined };
  return { ...unmarked, within: new Map(names.map((name) => [name, each])) };
}

/** URNs of all resources that the values depend on. */
export const dependenciesIn = (marks: Marks | undefined): readonly string[] =>
  marks ? [...(marks.dependencies ?? []), ...[...marks.within.values()].flatMap(dependenciesIn)] : [];

/** Whether any mark is a secret. */
export const holdsSecret = (marks: Marks | undefined): boolean =>
  marks !== undefined && (marks.secret || [...marks.within.values()].some(holdsSecret));

/** Whether the value at a path is part of a secret. */
export function isSecretAt(marks: Marks | undefined, path: readonly (string | number)[]): boolean {
  let at = marks;
  for (const part of path) {
    at = at?.within.get(part);
    if (at?.secret) return true;
  }
  return false;
}

/** Whether the value at a path, or anything in it, is a secret. */
export function holdsSecretAt(marks: Marks | undefined, path: readonly (string | number)[]): boolean {
  let at = marks;
  for (const part of path) at = at?.within.get(part);
  return isSecretAt(marks, path) || holdsSecret(at);
}

/** Paths that the program marks secret now, and `marks` of the state do not. */
export function cameToBeSecret(
  marks: Marks | undefined,
  news: Marks | undefined,
  state: unknown,
  path: readonly (string | number)[] = [],
): (readonly (string | number)[])[] {
  if (!news || marks?.secret || state === undefined) return [];
  if (news.secret) return [path];
  return [...news.within].flatMap(([name, inner]) =>
    cameToBeSecret(
      marks?.within.get(name),
      inner,
      isObject(state) || Array.isArray(state) ? (state as Record<string | number, unknown>)[name] : undefined,
      [...path, name],
    ),
  );
}

const signed = (sig: string): Struct => {
  const message = new struct.Struct();
  message.getFieldsMap().set(signature, struct.Value.fromJavaScript(sig));
  return message;
};

const inValue = (object: Struct): WireValue => {
  const message = new struct.Value();
  message.setStructValue(object);
  return message;
};
