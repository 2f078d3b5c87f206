// Limits of the work that a request can cause. Oversized input is refused before it is processed, because the service
// serves all clients from one thread.
import { isUtf8 } from "node:buffer";
import type { Operation } from "../../api/operation.ts";
import { fieldOf, formProblem, isObject, standsForNothing, type Field } from "../../api/schema.ts";
import { refuse, type Refusal } from "../refusal.ts";
import { badStatus } from "./validationMessages.ts";

// ASSUMED: a body is nested at most 100 levels deep.
const deepest = 100;
// ASSUMED: a body holds at most 5,000 values, and a map or list in it at most 1,000. Bytes sent as numbers
// (docs/interface.md#secret-keys) are counted separately: at most 75,000.
const mostValues = 5000;
const mostEntries = 1000;
const mostBytes = 75_000;
// ASSUMED: bytes in base64 have at most 1,500,000 characters.
const longestBase64 = 1_500_000;
// ASSUMED: a text has at most 65,536 characters, except for the contents of a file and the input of a command.
const longestText = 65_536;
// ASSUMED: a list or map in the query has at most 100 entries.
const mostQueried = 100;
// ASSUMED: errors and the log name at most 20 unknown fields, by the first 80 characters of each.
const mostNamed = 20;
const longestName = 80;

/** Limits of every body, for the description of the service. */
export const bodyLimits = { levels: deepest, values: mostValues, entries: mostEntries };

/** Limits of a value; a text without `characters` is limited only by the body. */
export interface Limits {
  readonly characters?: number;
  readonly items: number;
  readonly properties: number;
}

// Limits by field: every value of every body is checked against them.
const known = new WeakMap<Field["meta"], Limits>();

/** Limits of the values of a field. They are checked here and listed in the description of the service. */
export function limitsOf({ meta }: Pick<Field, "meta">): Limits {
  let limits = known.get(meta);
  if (limits) return limits;
  const { format, long, longest } = meta;
  const isBytes = format === "bytes";
  limits = {
    ...(long ? {} : { characters: longest ?? (isBytes ? longestBase64 : longestText) }),
    items: isBytes ? mostBytes : mostEntries,
    properties: mostEntries,
  };
  known.set(meta, limits);
  return limits;
}

/** Limits of a parameter of the query that is a list. */
export const queryLimits = { items: mostQueried };

// A text in an unknown field is never processed, so its length does not matter.
const undescribed = { meta: { long: true } };

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Number of characters as JSON Schema counts them: a surrogate pair is one. */
function charactersIn(text: string): number {
  let { length } = text;
  for (let i = 1; i < text.length; i++) if (isLow(text.charCodeAt(i)) && isHigh(text.charCodeAt(i - 1))) length--;
  return length;
}

const comma = 0x2c;
const quote = 0x22;
const backslash = 0x5c;
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b;
const isClosing = (byte: number): boolean => byte === 0x7d || byte === 0x5d;

/** Number and depth of the values in a JSON text, counted without parsing, because parsing takes long. */
function countIn(body: Uint8Array): { readonly values: number; readonly depth: number } {
  let [values, depth, deepestYet] = [1, 0, 0];
  let isText = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i] ?? 0;
    if (isText) {
      if (byte === backslash) i++;
      else if (byte === quote) isText = false;
    } else if (byte === quote) isText = true;
    else if (byte === comma) values++;
    else if (isOpening(byte)) {
      values++;
      if (++depth > deepestYet) deepestYet = depth;
    } else if (isClosing(byte)) depth--;
  }
  return { values, depth: deepestYet };
}

/** Parses a body. ASSUMED: a body is JSON in UTF-8; any other is 400, because its meaning would be a guess. */
export function readBody(body: Buffer): unknown {
  if (!isUtf8(body)) throw refuse(400, "invalid body, it is not UTF-8");
  const { values, depth } = countIn(body);
  if (depth > deepest)
    throw refuse(400, `invalid body, it is nested too deeply, got ${depth} levels, must be at most ${deepest}`);
  if (values > mostValues + mostBytes)
    throw refuse(400, `invalid body, got ${values} values, must be at most ${mostValues}`);
  try {
    return JSON.parse(body.toString());
  } catch {
    throw refuse(400, "invalid body, it is not JSON");
  }
}

/** A path for an error message, with long names shortened. */
export const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    const name = shortName(String(part));
    return text === "" ? name : `${text}.${name}`;
  }, "");

const shortName = (name: string): string => (name.length > longestName ? `${name.slice(0, longestName)}…` : name);

/** Names of unknown fields for an error or the log, shortened. */
export const namesOf = (fields: readonly string[]): string[] => fields.slice(0, mostNamed).map(shortName);

const isNumber = (value: unknown): boolean => typeof value === "number";

/** Refuses a body beyond the limits, or with a text that is not of the form of its field. True when one of its entries is named `__proto__`. */
export function requireBodyRules({ id }: Operation, schema: Parameters<typeof fieldOf>[0], body: unknown): boolean {
  let [values, hasProto] = [0, false];
  const invalid = (path: readonly PropertyKey[], got: string, allowed: string): Refusal =>
    refuse(badStatus(id), `invalid ${path.length === 0 ? "body" : pathText(path)}, got ${got}, ${allowed}`);
  // One path for the whole walk: it is only read for a refusal, and most bodies are within the limits.
  const path: PropertyKey[] = [];
  const walkAt = (part: PropertyKey, field: Field | undefined, value: unknown): void => {
    path.push(part);
    walk(field, value);
    path.pop();
  };
  const walk = (field: Field | undefined, value: unknown): void => {
    if (++values > mostValues) throw invalid([], `more than ${mostValues} values`, `must be at most ${mostValues}`);
    const { characters: longest = Number.POSITIVE_INFINITY, items, properties } = limitsOf(field ?? undescribed);
    if (typeof value === "string") {
      const characters = value.length > longest ? charactersIn(value) : 0;
      if (characters > longest)
        throw invalid(path, `${characters} characters`, `must not be longer than ${longest} characters`);
      const problem = field && !standsForNothing(field, value) ? formProblem(field, value) : undefined;
      if (problem !== undefined) throw invalid(path, JSON.stringify(shortName(value)), problem);
      return;
    }
    const shape = field?.shape;
    if (Array.isArray(value)) {
      const isBytes = field?.meta.format === "bytes" && value.every(isNumber);
      if (value.length > items) throw invalid(path, `${value.length} entries`, `must be at most ${items}`);
      const item = shape?.kind === "array" ? shape.item : undefined;
      if (!isBytes) for (const [i, one] of value.entries()) walkAt(i, item, one);
      return;
    }
    if (!isObject(value)) return;
    const names = Object.keys(value);
    if (names.length > properties) throw invalid(path, `${names.length} entries`, `must be at most ${properties}`);
    for (const name of names) {
      if (name === "__proto__") hasProto = true;
      const member = shape?.kind === "object" && Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
      walkAt(name, shape?.kind === "record" ? shape.value : member, value[name]);
    }
  };
  walk(fieldOf(schema), body);
  return hasProto;
}

/** Refuses a list or map in the query that is too long. */
export function requireShortQuery({ id }: Operation, name: string, count: number): void {
  if (count > mostQueried)
    throw refuse(badStatus(id), `invalid ${name}, got ${count} entries, must be at most ${mostQueried}`);
}
