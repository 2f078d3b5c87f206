// Removes secrets from all messages, including those of other parties. A value is a secret by its place: the schema
// declares it, or the program marks it. A mark on an object says only that something in it is secret, because some SDKs
// move the mark of one variable up to the whole configuration. Then the places inside decide, or messages would lose words
// such as "http" (F56).
import { homepage } from "../../api/homepage.ts";
import { isObject, type Field } from "../../api/schema.ts";
import { cutMark, oneLine, printable, quotable } from "../../api/printable.ts";
import { spellings } from "../client/spellings.ts";
import { isCommonWord } from "./commonWords.ts";
import { fieldAt, UNKNOWN } from "./values.ts";

/** A value that a message could quote. */
export type Leaf = string | number;

/** A value that no message may quote. */
export interface Withheld {
  readonly value: Leaf;
  /** Whether the schema or the program says that exactly this value is secret. Otherwise it only may be. */
  readonly isCertain: boolean;
}

/** The marks of the program: whether a value is secret, and the marks inside it. */
export interface SecretMarks {
  readonly secret: boolean;
  readonly within: ReadonlyMap<string | number, SecretMarks>;
}

/**
 * The length from which a text is a secret wherever it stands. ASSUMED: 6. Shorter texts are parts of ordinary words, such
 * as "http" of "https".
 */
export const shortest = 6;

/** The number of digits from which a number is recognized. A shorter one could be a count, a port or a size. */
const fewestDigits = 3;

/** The length from which a text inside a secret object is withheld, although its place seldom holds a secret. */
const shortestElsewhere = 8;

/** The length up to which a text is also searched for in other encodings. Files may have megabytes. */
const longestEncoded = 4096;

const shown = "[secret]";

// --- which values ----------------------------------------------------------------------------------------------------

/** What is known about the values around a value. */
interface Around {
  /** The schema declares them secret. */
  readonly isSecret: boolean;
  /** They are at a place for secrets, such as a variable or the contents of a file. */
  readonly isSensitive: boolean;
  /** The program marks them secret, or could have done it. */
  readonly isMarked: boolean;
}

/**
 * The texts and numbers that are secret, or may be.
 * @param fields the places; a value that they do not have is secret only if it is marked
 * @param marks those of the program; "unreported" if the host does not pass them on. Then everything at a place for
 *   secrets may be one.
 */
export function withheld(
  fields: Readonly<Record<string, Field>>,
  values: Readonly<Record<string, unknown>>,
  marks: SecretMarks | "unreported" | undefined,
): Withheld[] {
  const around = { isSecret: false, isSensitive: false, isMarked: false };
  return Object.entries(values).flatMap(([name, value]) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (marks !== "unreported") return withheldAt(field, value, marks?.within.get(name), around);
    return field === undefined ? [] : withheldAt(field, value, "unreported", around);
  });
}

function withheldAt(
  field: Field | undefined,
  value: unknown,
  marks: SecretMarks | "unreported" | undefined,
  around: Around,
): Withheld[] {
  const { secret = false, sensitive = false } = field?.meta ?? {};
  const isSecret = around.isSecret || secret;
  const isSensitive = around.isSensitive || sensitive;
  const isMarkedHere = marks !== "unreported" && marks?.secret === true;
  if (typeof value === "string" || typeof value === "number") {
    if (value === UNKNOWN) return [];
    const texts = isSecret ? [value] : isMarkedHere && !isAllowedWord(field, value) ? [value] : [];
    if (texts.length > 0) return [value, ...contentsOf(value)].map((one) => ({ value: one, isCertain: true }));
    const mayBeSecret = isSensitive
      ? around.isMarked || marks === "unreported"
      : around.isMarked && mayHoldSecret(field, value);
    if (!mayBeSecret || typeof value === "number" || isAllowedWord(field, value)) return [];
    return [value, ...contentsOf(value)].map((one) => ({ value: one, isCertain: false }));
  }
  const inside = { isSecret, isSensitive, isMarked: around.isMarked || isMarkedHere };
  const at = (name: string | number, inner: unknown): Withheld[] => {
    const place = field && fieldAt(field, name);
    return withheldAt(place, inner, marks === "unreported" ? marks : marks?.within.get(name), inside);
  };
  if (Array.isArray(value)) return value.flatMap((inner: unknown, i) => at(i, inner));
  return isObject(value) ? Object.entries(value).flatMap(([name, inner]) => at(name, inner)) : [];
}

/** Whether the schema lists a value among those of its place: it says which one was chosen, and is no secret. */
const isAllowedWord = (field: Field | undefined, value: Leaf): boolean =>
  field?.shape.kind === "leaf" && [...(field.shape.values ?? []), ...(field.meta.open ?? [])].includes(String(value));

/**
 * Whether a text in a secret object may be a secret although its place is not one for secrets: an argument of a command,
 * or metadata. A plain word is none. An image says where the program comes from, and the user needs it to see why it
 * cannot be pulled; a program that marks the image itself is obeyed.
 */
function mayHoldSecret(field: Field | undefined, value: Leaf): boolean {
  if (field === undefined) return true;
  const { shape, meta } = field;
  if (shape.kind !== "leaf" || (shape.type !== "string" && shape.type !== "any")) return false;
  // A value that is not listed is refused, and the message quotes it: it may have been meant for another place.
  if (shape.values !== undefined) return true;
  if (meta.open !== undefined || meta.format !== undefined) return false;
  return String(value).length >= shortestElsewhere && !/^\p{L}+$/u.test(String(value));
}

/** The text that a value contains in base64, such as the contents of a file: a program may print it. */
function contentsOf(value: Leaf): string[] {
  const isBase64 =
    typeof value === "string" &&
    value.length >= shortestElsewhere &&
    value.length % 4 === 0 &&
    /^[A-Za-z0-9+/]+={0,2}$/.test(value);
  if (!isBase64) return [];
  const text = Buffer.from(value, "base64").toString();
  // Bytes that are no text, and words that happen to be base64.
  return /[\uFFFD\0]/.test(text) ? [] : [text];
}

/** Every text and number in a value. */
export function leavesIn(value: unknown): Leaf[] {
  if (typeof value === "string" || typeof value === "number") return [value];
  if (Array.isArray(value)) return value.flatMap(leavesIn);
  return isObject(value) ? Object.values(value).flatMap(leavesIn) : [];
}

// --- where they are in a text ----------------------------------------------------------------------------------------

/** A part of a text: from one position to before another. */
type Span = readonly [from: number, to: number];

/**
 * Removes values from a text.
 *
 * | value | is removed |
 * |---|---|
 * | a text of at least {@link shortest} characters | everywhere and in every encoding |
 * | a shorter text that is certainly secret, such as a password of four letters | where it is a whole word or a quoted value, never inside another word |
 * | a shorter text that may be secret | where it is a quoted value |
 * | a common word, such as "production" | where it is a quoted value |
 * | a number of at least {@link fewestDigits} digits that is certainly secret | where it is a whole number |
 */
export function hide(values: Iterable<Withheld>, text: string): string {
  const known = new Map<Leaf, boolean>();
  for (const { value, isCertain } of values) known.set(value, known.get(value) === true || isCertain);
  const found = [...known].flatMap(([value, isCertain]) => spansOf(value, isCertain, text));
  if (found.length === 0) return text;
  // Secrets may overlap: each character is judged once, so that no part of one remains.
  const own = ownSpans(text);
  const hidden = found.filter(([from, to]) => !own.some(([start, end]) => start <= from && to <= end));
  return without(merged(hidden), text);
}

function spansOf(value: Leaf, isCertain: boolean, text: string): Span[] {
  if (typeof value === "number") return isCertain ? spansOfNumber(value, text) : [];
  if (value === "") return [];
  const quoted = inJson(value);
  const asValue = quoted.flatMap((one) => occurrences(one, text));
  const isShort = value.length < shortest;
  if (isCommonWord(value) || (isShort && !isCertain)) return asValue;
  // A message may have escaped its control characters.
  const plain = [value, ...quoted.map((one) => one.slice(1, -1)), printable(value), oneLine(value)];
  if (isShort) return [...asValue, ...wholeWords(plain, text)];
  const forms = [...new Set([...plain, ...(value.length <= longestEncoded ? spellings(value) : [])])];
  return [...asValue, ...forms.flatMap((form) => occurrences(form, text)), ...beginnings(forms, text)];
}

function spansOfNumber(value: number, text: string): Span[] {
  const digits = String(value);
  if (digits.replaceAll(/\D/g, "").length < fewestDigits) return [];
  const whole = new RegExp(`(?<![\\w.])${digits.replaceAll(/[.+]/g, "\\$&")}(?!\\w|\\.\\d)`, "g");
  return [...text.matchAll(whole)].map(({ index }) => [index, index + digits.length]);
}

/** A text as JSON quotes it, and as JSON in JSON does. Go also escapes what HTML could misread. */
function inJson(text: string): string[] {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const quoted = JSON.stringify(text);
  const forms = [quoted, quoted.replaceAll(/[<>&\u2028\u2029]/g, escape)];
  return [...new Set([...forms, ...forms.map((form) => JSON.stringify(form.slice(1, -1)))])];
}

function occurrences(form: string, text: string): Span[] {
  const found: Span[] = [];
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1)) found.push([at, at + form.length]);
  return found;
}

/** The occurrences that are not parts of longer words. */
function wholeWords(forms: readonly string[], text: string): Span[] {
  const isWord = (characters: string): boolean => /^[\p{L}\p{N}_]{2}$/u.test(characters);
  return [...new Set(forms)].flatMap((form) =>
    occurrences(form, text).filter(
      ([from, to]) => !isWord(text.slice(from - 1, from + 1)) && !isWord(text.slice(to - 1, to + 1)),
    ),
  );
}

/** The beginning of a value where a text was truncated in the middle of it. */
function beginnings(forms: readonly string[], text: string): Span[] {
  return occurrences(cutMark.charAt(0), text).flatMap(([at]) => {
    const length = Math.max(...forms.map((form) => commonAt(form, text, at)));
    return length < shortest ? [] : [[at - length, at] as const];
  });
}

/** The number of characters before a position in a text that are the beginning of a value. */
function commonAt(value: string, text: string, at: number): number {
  let length = Math.min(value.length - 1, at);
  while (length > 0 && !text.startsWith(value.slice(0, length), at - length)) length--;
  return length;
}

const ownTexts = new RegExp(
  `${homepage.replaceAll(".", "\\.")}(?:/blob/main/docs/[a-z-]+\\.md(?:#[a-z-]+)?)?|\\[secret\\]|\\[token\\]`,
  "g",
);

/** The parts of a text that we write ourselves, whatever the secrets are: addresses of the documentation, for instance. */
const ownSpans = (text: string): Span[] =>
  [...text.matchAll(ownTexts)].map(({ 0: found, index }) => [index, index + found.length]);

function merged(spans: readonly Span[]): Span[] {
  const all: [from: number, to: number][] = [];
  for (const [from, to] of spans.toSorted(([a], [b]) => a - b)) {
    const last = all.at(-1);
    if (last !== undefined && from < last[1]) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
  }
  return all;
}

function without(spans: readonly Span[], text: string): string {
  let cleaned = "";
  let end = 0;
  for (const [from, to] of spans) {
    cleaned += text.slice(end, from) + shown;
    end = to;
  }
  return cleaned + text.slice(end);
}

// --- the output of programs ------------------------------------------------------------------------------------------

/** The maximum number of characters of a line of a program that a message quotes. */
const longestLine = 200;

/**
 * Lines that a program wrote, for a message: without the secrets that a run knows, with escaped control characters, and
 * truncated if they are long. A program may print only some lines of a secret, such as a private key.
 */
export function programLines(run: { secrets(): Iterable<Withheld> }, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const known = [...run.secrets()].flatMap((one) => [one, ...linesOf(one)]);
  return hide(known, lines.join("\n"))
    .split("\n")
    .map((line) => quotable(line, longestLine));
}

/** The lines of a secret with several. Those that begin and end a key are the same in every key. */
export const linesOf = ({ value, isCertain }: Withheld): Withheld[] =>
  typeof value === "string" && value.includes("\n")
    ? value
        .split(/\r?\n/)
        .filter((line) => line.length >= shortest && !line.startsWith("-----"))
        .map((line) => ({ value: line, isCertain }))
    : [];
