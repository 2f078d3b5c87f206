// Validation whose messages are in our words: zod's own are written for programmers of TypeScript.
import { z } from "zod";
import { didYouMean } from "./didYouMean.ts";

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Validates a value. The message of an issue says what is allowed; a message in the schema takes precedence. */
export const validated = <S extends z.ZodType>(
  schema: S,
  value: unknown,
  options: { readonly jitless?: boolean } = {},
): z.ZodSafeParseResult<z.output<S>> => schema.safeParse(value, { ...options, error: allowedText });

/** The first problem of a value, if there is one. */
export const firstIssue = (schema: z.ZodType, value: unknown): Issue | undefined =>
  validated(schema, value).error?.issues[0];

/** Whether an issue of a value is about its type, and not about which value of the type it is. */
export const isWrongType = (issue: Issue, value: unknown): boolean =>
  issue.code === "invalid_type" ||
  (issue.code === "invalid_value" && !issue.values.some((allowed) => typeof allowed === typeof value)) ||
  (issue.code === "invalid_union" && issue.errors.every((option) => option.some((one) => isWrongType(one, value))));

/** The value at the path of an issue. */
export const valueAtIssue = (issue: Issue, whole: unknown): unknown =>
  issue.path.reduce<unknown>(
    (inner, part) =>
      typeof inner === "object" && inner !== null ? (inner as Record<PropertyKey, unknown>)[part] : undefined,
    whole,
  );

/** Whether the value is an unknown one where the service may know more: `open` has the values of today. */
export const isOtherOption = (issue: Issue, value: unknown, open: readonly string[] | undefined): value is string =>
  open !== undefined && typeof value === "string" && value !== "" && valuesOf(issue).length > 0;

/** The end of a message that names the allowed value which is nearest to the given one; empty if none is near. */
export function meantAmong(value: unknown, allowed: readonly string[]): string {
  const meant = typeof value === "string" ? didYouMean(value, allowed) : undefined;
  return meant === undefined ? "" : `; did you mean ${JSON.stringify(meant)}?`;
}

/** As {@link meantAmong}, among the values that an issue says are allowed. */
export const meantText = (issue: Issue, value: unknown): string => meantAmong(value, valuesOf(issue));

/** The texts that an issue says are allowed. */
function valuesOf(issue: Issue): string[] {
  if (issue.code === "invalid_value") return issue.values.filter((value) => typeof value === "string");
  return issue.code === "invalid_union" ? issue.errors.flat().flatMap(valuesOf) : [];
}

const quoted = (value: unknown): string => (typeof value === "string" ? JSON.stringify(value) : String(value));

function allowedText(issue: RawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${typeText(issue.expected, issue.schema)}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(quoted).join(", ")}`;
    case "invalid_union":
      return unionText(issue.errors);
    case "too_small":
      return sizeText(issue, "at least", Number(issue.minimum));
    case "too_big":
      return sizeText(issue, "at most", Number(issue.maximum));
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return unknownName(
        issue.keys[0] ?? "",
        issue.schema instanceof z.ZodObject ? Object.keys(issue.schema.shape) : [],
      );
    case "invalid_format":
      return issue.format === "regex" ? `must match ${issue.pattern}` : `must be a valid ${issue.format}`;
    case "invalid_key":
    case "invalid_element":
      return issue.issues[0]?.message ?? "is not allowed";
    case "custom":
    default:
      return "is not allowed";
  }
}

/** What any of the options of a union allows. */
function unionText(options: readonly (readonly Issue[])[]): string {
  const texts = options.map(([first]) => first?.message.replace(/^must be /, "") ?? "something else");
  return `must be ${[...new Set(texts)].join(", or ")}`;
}

const typeTexts: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "a map",
  null: "null",
};

const typeText = (expected: string, schema: z.core.$ZodType | undefined): string =>
  schema instanceof z.ZodNumber ? rangeText(schema) : (typeTexts[expected] ?? expected);

function sizeText(
  { origin, schema }: { readonly origin: string; readonly schema?: z.core.$ZodType | undefined },
  bound: "at least" | "at most",
  limit: number,
): string {
  if (origin === "string")
    return limit === 1 && bound === "at least"
      ? "must not be empty"
      : `must have ${bound} ${counted(limit, "character")}`;
  if (origin === "array" || origin === "set") return `must have ${bound} ${counted(limit, "item")}`;
  return schema instanceof z.ZodNumber ? `must be ${rangeText(schema)}` : `must be ${bound} ${limit}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** `a whole number from 1 to 500`. */
function rangeText(schema: z.ZodNumber): string {
  const what = schema.isInt ? "a whole number" : "a number";
  const { minValue, maxValue } = schema;
  const [least, most] = [minValue, maxValue].map((limit) =>
    limit !== null && Math.abs(limit) < Number.MAX_SAFE_INTEGER ? limit : undefined,
  );
  const excludes = (limit: number): boolean =>
    (schema.def.checks ?? []).some((check) => {
      const { value, inclusive } = check._zod.def as { readonly value?: number; readonly inclusive?: boolean };
      return value === limit && inclusive === false;
    });
  if (least !== undefined && most !== undefined && !excludes(least) && !excludes(most))
    return `${what} from ${least} to ${most}`;
  const limits = [
    least === undefined ? [] : `${excludes(least) ? "above" : "at least"} ${least}`,
    most === undefined ? [] : `${excludes(most) ? "below" : "at most"} ${most}`,
  ].flat();
  return limits.length === 0 ? what : `${what}, ${limits.join(" and ")}`;
}

/** The problem of a property that does not exist, with the one that is probably meant. */
export function unknownName(name: string, known: readonly string[]): string {
  const meant = didYouMean(name, known);
  return `there is no such property${meant === undefined ? `; known are ${known.join(", ")}` : `; did you mean ${meant}?`}`;
}
