// Removes secrets from all messages, including those of other parties.
import { isObject, type Field } from "../../api/schema.ts";
import { cutMark, oneLine, printable } from "../../api/printable.ts";
import { fieldAt } from "./values.ts";

/** A value that no message may quote. */
export type Leaf = string | number;

/**
 * Removes values from a text. A text shorter than `shortest` is removed only where it is quoted, because words may contain
 * it.
 */
export const hide = (leaves: Iterable<Leaf>, text: string, shortest: number): string =>
  // The longest first: one secret may be part of another.
  [...new Set(leaves)]
    .sort((a, b) => String(b).length - String(a).length)
    .reduce((cleaned: string, leaf) => without(leaf, cleaned, shortest), text);

function without(leaf: Leaf, text: string, shortest: number): string {
  const shown = "[secret]";
  if (typeof leaf === "number") {
    // A short number could have any meaning.
    if (String(leaf).length < shortest - 2) return text;
    const digits = String(leaf).replace(/[.+]/g, "\\$&");
    return text.replace(new RegExp(`(?<![\\w.])${digits}(?!\\w|\\.\\d)`, "g"), shown);
  }
  const quoted = JSON.stringify(leaf);
  const cleaned = text.replaceAll(quoted, shown);
  if (leaf.length < shortest) return cleaned;
  // A message may have escaped its control characters.
  const forms = [...new Set([leaf, quoted.slice(1, -1), printable(leaf), oneLine(leaf)])];
  const whole = forms.reduce((before, form) => before.replaceAll(form, shown), cleaned);
  return withoutBeginnings(forms, whole, shown, shortest);
}

/** Removes the beginning of a value from a text that was truncated in the middle of it. */
function withoutBeginnings(forms: readonly string[], text: string, shown: string, shortest: number): string {
  let cleaned = text;
  for (let at = text.indexOf(cutMark); at >= 0; at = cleaned.indexOf(cutMark, at + 1)) {
    const length = Math.max(...forms.map((form) => commonAt(form, cleaned, at)));
    if (length < shortest) continue;
    cleaned = cleaned.slice(0, at - length) + shown + cleaned.slice(at);
    at += shown.length - length;
  }
  return cleaned;
}

/** The number of characters before a position in a text that are the beginning of a value. */
function commonAt(value: string, text: string, at: number): number {
  let length = Math.min(value.length - 1, at);
  while (length > 0 && !text.startsWith(value.slice(0, length), at - length)) length--;
  return length;
}

/** Every text and number in a value. */
export function leavesIn(value: unknown): Leaf[] {
  if (typeof value === "string" || typeof value === "number") return [value];
  if (Array.isArray(value)) return value.flatMap(leavesIn);
  return isObject(value) ? Object.values(value).flatMap(leavesIn) : [];
}

/** Texts and numbers of fields that are secret or may be. */
export function withheld(fields: Readonly<Record<string, Field>>, values: Readonly<Record<string, unknown>>): Leaf[] {
  return Object.entries(values).flatMap(([name, value]) => withheldAt(fields[name], value));
}

function withheldAt(field: Field | undefined, value: unknown): Leaf[] {
  if (!field) return [];
  if (field.meta.secret === true || field.meta.sensitive === true) return leavesIn(value);
  if (Array.isArray(value)) return value.flatMap((item) => withheldAt(fieldAt(field, 0), item));
  return isObject(value)
    ? Object.entries(value).flatMap(([name, inner]) => withheldAt(fieldAt(field, name), inner))
    : [];
}
