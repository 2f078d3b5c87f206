// Values of programs and of the service: when two are the same, and how to write one in the other's spelling. Pure;
// everything here walks a value along its field (api/schema.ts).
import { bareId } from "../../api/names.ts";
import { define, isObject, parseDuration, standsForNothing, type Field } from "../../api/schema.ts";

/** An input that is unknown at preview; the engine's own sentinel (all types use this one). */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/** True when a value, or a part of it, is unknown. */
export const hasUnknown = (value: unknown): boolean =>
  value === UNKNOWN ||
  (Array.isArray(value) ? value.some(hasUnknown) : isObject(value) && Object.values(value).some(hasUnknown));

/** Removes `undefined` at every depth: neither the engine nor JSON can carry it. */
export function withoutUndefined<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutUndefined(item)) as T;
  if (!isObject(value)) return value;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value))
    if (inner !== undefined) define(out, name, withoutUndefined(inner));
  return out as T;
}

/** The number that a list of numbers stands for where the greatest counts; undefined if there is none. */
export function greatestOf(list: readonly unknown[]): unknown {
  if (list.includes(UNKNOWN)) return UNKNOWN;
  const numbers = list.filter((one) => typeof one === "number");
  return numbers.length > 0 ? Math.max(...numbers) : undefined;
}

/** The canonical form of a value: undefined for the documented default, and one spelling for each meaning (R2). */
export function canonical(field: Field, value: unknown): unknown {
  if (standsForNothing(field, value)) return undefined;
  const found = canonicalAt(field, value);
  const standard = field.default ?? field.meta.wireDefault;
  return standard !== undefined && equal(found, canonicalAt(field, standard)) ? undefined : found;
}

function canonicalAt(field: Field, value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  if (value === UNKNOWN) return UNKNOWN;
  const { shape, meta } = field;
  if (meta.format === "duration") return typeof value === "string" ? (parseDuration(value) ?? value) : value;
  if (meta.format === "autostop") return value === true ? "stop" : value === false ? "off" : value;
  if (meta.format === "caseless") return typeof value === "string" ? value.toLowerCase() : value;
  if (meta.format === "reference") return typeof value === "string" ? bareId(value) : value;
  if (meta.format === "greatest") return Array.isArray(value) ? greatestOf(value) : value;
  if (shape.kind === "array") {
    if (!Array.isArray(value) || value.length === 0) return Array.isArray(value) ? undefined : value;
    return value.map((item: unknown) => canonicalAt(shape.item, item) ?? (isObject(item) ? {} : null));
  }
  if (!isObject(value) || shape.kind === "leaf") return value;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const known = fieldAt(field, name);
    // A map's key is meaningful by its presence, whatever its value omits.
    const kept = known
      ? (canonical(known, inner) ?? (shape.kind === "record" && isObject(inner) ? {} : undefined))
      : inner;
    if (kept !== undefined) define(out, name, kept);
  }
  return Object.keys(out).length > 0 || meta.presence === true ? out : undefined;
}

/** The field of a property, a map's value or an array's item; undefined if the schema has none. */
export function fieldAt({ shape }: Field, name: string | number): Field | undefined {
  if (shape.kind === "array") return shape.item;
  if (shape.kind === "record") return shape.value;
  if (shape.kind === "object" && Object.hasOwn(shape.fields, name)) return shape.fields[name];
  return undefined;
}

/** The value at a path such as `config.guest`; undefined if a part of the path is missing. */
export const valueAt = (values: Readonly<Record<string, unknown>>, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>((at, name) => (isObject(at) ? own(at, name) : at === UNKNOWN ? at : undefined), values);

/** Deep equality of JSON values. */
export function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  );
}

/** A value as text, whatever the order of its properties. */
export const stable = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );

/** Whether two values mean the same to the service. */
export const same = (field: Field, a: unknown, b: unknown): boolean => equal(canonical(field, a), canonical(field, b));

/**
 * A live value in the program's spelling. Equal values are written as in `written`, different ones as the service
 * answered them. Defaults that were not written are left out. So a diff shows only drift.
 */
export function inSpellingOf(field: Field, written: unknown, live: unknown): unknown {
  const { shape } = field;
  // What is required has no default: an empty list of it would be missing.
  if (same(field, written, live)) return written ?? (field.optional ? undefined : (live ?? undefined));
  if (isObject(live) && shape.kind !== "leaf") {
    const base = isObject(written) ? written : {};
    const out: Record<string, unknown> = {};
    for (const name of new Set([...Object.keys(base), ...Object.keys(live)])) {
      const known = fieldAt(field, name);
      const value = known ? inSpellingOf(known, own(base, name), own(live, name)) : own(live, name);
      if (value !== undefined) define(out, name, value);
    }
    return out;
  }
  if (Array.isArray(live) && shape.kind === "array") {
    const base: unknown[] = Array.isArray(written) ? written : [];
    return live.map((item: unknown, i) => inSpellingOf(shape.item, base[i], item) ?? item);
  }
  return live ?? undefined;
}

const own = (object: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** The value with every reference reduced to the bare id that the service expects (R5). */
export function withBareIds(field: Field, value: unknown): unknown {
  if (field.meta.format === "reference" && typeof value === "string") return bareId(value);
  if (Array.isArray(value)) return value.map((item: unknown) => withBareIds(fieldAt(field, 0) ?? field, item));
  if (!isObject(value) || field.shape.kind === "leaf") return value;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const known = fieldAt(field, name);
    define(out, name, known ? withBareIds(known, inner) : inner);
  }
  return out;
}

/** The part of a value that the schema does not know, with empty objects as placeholders for earlier array items. */
export function unmodelled(field: Field, value: unknown): unknown {
  if (Array.isArray(value)) {
    const item = fieldAt(field, 0);
    const parts = item ? value.map((inner: unknown) => unmodelled(item, inner)) : [];
    const last = parts.findLastIndex((part) => part !== undefined);
    return last < 0 ? undefined : parts.slice(0, last + 1).map((part) => part ?? {});
  }
  if (!isObject(value) || field.shape.kind === "leaf") return undefined;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const known = fieldAt(field, name);
    const part = known ? unmodelled(known, inner) : inner;
    if (part !== undefined) define(out, name, part);
  }
  return Object.keys(out).length > 0 ? out : undefined;
}

/** The part of a value that the schema knows; the complement of {@link unmodelled}. */
export function modelled(field: Field, value: unknown): unknown {
  if (Array.isArray(value)) {
    const item = fieldAt(field, 0);
    return item ? value.map((inner: unknown) => modelled(item, inner)) : value;
  }
  if (!isObject(value) || field.shape.kind === "leaf") return value;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    const known = fieldAt(field, name);
    if (known) define(out, name, modelled(known, inner));
  }
  return out;
}

/** Whether a value contains anything declared as secret. */
export function holdsSecret(field: Field | undefined, value: unknown): boolean {
  if (!field || value === undefined || value === null) return false;
  if (field.meta.secret === true) return true;
  if (Array.isArray(value)) return value.some((item: unknown) => holdsSecret(fieldAt(field, 0), item));
  return isObject(value) && Object.entries(value).some(([name, inner]) => holdsSecret(fieldAt(field, name), inner));
}

/** `base` overridden by `over`: objects key by key, arrays item by item, anything else replaced. */
export function merged(base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  if (isObject(base) && isObject(over)) {
    const out: Record<string, unknown> = { ...base };
    for (const [name, inner] of Object.entries(over)) define(out, name, merged(own(base, name), inner));
    return out;
  }
  if (Array.isArray(base) && Array.isArray(over)) {
    return Array.from({ length: Math.max(base.length, over.length) }, (_, i) => merged(base[i], over[i]));
  }
  return over;
}

/** `config.env["A.B"]`: a property path in the engine's form. */
export const pathText = (path: readonly (string | number)[]): string =>
  path
    .map((part, i) => {
      if (typeof part === "number") return `[${part}]`;
      // Like the engine, it only escapes quotes.
      if (!/^[A-Za-z_$][\w$]*$/.test(part)) return `["${part.replaceAll('"', '\\"')}"]`;
      return i === 0 ? part : `.${part}`;
    })
    .join("");

/** Whether values have an input; names of this package's own properties begin with `__`. */
export const hasInputs = (values: Record<string, unknown>): boolean =>
  Object.keys(values).some((name) => !name.startsWith("__"));

/** A message about the value at a path, or about nothing in particular. */
export const located = (path: readonly (string | number)[], message: string): string =>
  path.length > 0 ? `${pathText(path)}: ${message}` : message;
