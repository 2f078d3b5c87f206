// Validates requests: parameters, query and body are checked against the row of the operation.
import type { z } from "zod";
import type { Operation } from "../../api/operation.ts";
import { define, fieldOf, isObject, tidy, type Field, type Shape } from "../../api/schema.ts";
import { firstIssue, meantText, valueAtIssue } from "../../api/validated.ts";
import { namesOf, pathText, requireShortQuery, requireBodyRules } from "./bodyLimits.ts";
import { refuse, Refusal } from "../refusal.ts";
import { badStatus, validationMessages } from "./validationMessages.ts";

type Issue = z.core.$ZodIssue;

// ASSUMED: the error for a bad value is one sentence: the field, what it got, what is allowed. For a value of the wrong type it
// names only the type, because the value may be a misplaced secret.
function received(issue: Issue, value: unknown, hidden: boolean): string {
  if (value === undefined) return "nothing";
  if (hidden && typeof value === "string") return `a text of ${value.length} characters`;
  if (issue.code === "invalid_type" || issue.code === "invalid_union")
    return value === null ? "null" : Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
  const text = JSON.stringify(value) ?? typeof value;
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function allowed(issue: Issue): string {
  if (issue.code === "invalid_value")
    return `allowed are ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
  if (issue.code === "invalid_type") return `must be of type ${issue.expected === "int" ? "integer" : issue.expected}`;
  return issue.message;
}

/** Whether a field or a field around it is secret. Bytes count as secret: they are of no use in an error. */
function isSecretAt(schema: z.ZodType, path: readonly PropertyKey[]): boolean {
  let field: Field | undefined = fieldOf(schema);
  for (const part of path) {
    const shape: Shape = field.shape;
    field = shape.kind === "array" ? shape.item : shape.kind === "record" ? shape.value : fieldAt(shape, String(part));
    if (!field) return false;
    if (field.meta.secret || field.meta.sensitive || field.meta.format === "bytes") return true;
  }
  return false;
}

/** The error for a value as one sentence: the field, what it got, what is allowed. */
export function problemText(schema: z.ZodType, issue: Issue, whole: unknown): string {
  // The name of the entry is wrong. Its value is left out because it may be a secret.
  if (issue.code === "invalid_key") {
    const name = JSON.stringify(String(issue.path.at(-1)).slice(0, 80));
    return `invalid name in ${pathText(issue.path.slice(0, -1))}, got ${name}, ${issue.issues[0]?.message ?? "is not allowed"}`;
  }
  const path = pathText(issue.path);
  const [value, hidden] = [valueAtIssue(issue, whole), isSecretAt(schema, issue.path)];
  const meant = hidden ? "" : meantText(issue, value);
  return `invalid ${path === "" ? "body" : path}, got ${received(issue, value, hidden)}, ${allowed(issue)}${meant}`;
}

/** Checks entries named `__proto__`, which zod skips in maps. */
function checkProto({ shape }: Field, value: unknown, path: readonly PropertyKey[]): Issue | undefined {
  if (shape.kind === "array" && Array.isArray(value))
    return firstOf(value, (item, i) => checkProto(shape.item, item, [...path, i]));
  if (!isObject(value) || shape.kind === "leaf" || shape.kind === "array") return undefined;
  return firstOf(Object.entries(value), ([name, inner]) => {
    const field = shape.kind === "record" ? shape.value : fieldAt(shape, name);
    if (!field) return undefined;
    const within = [...path, name];
    const issue =
      name === "__proto__" && !(field.nullable && inner === null) ? firstIssue(field.shape.schema, inner) : undefined;
    return issue ? { ...issue, path: [...within, ...issue.path] } : checkProto(field, inner, within);
  });
}

function firstOf<T, Found>(items: readonly T[], find: (item: T, i: number) => Found | undefined): Found | undefined {
  for (const [i, item] of items.entries()) {
    const found = find(item, i);
    if (found !== undefined) return found;
  }
  return undefined;
}

function check(row: Operation, schema: z.ZodType, value: unknown, hasProto = true): unknown {
  const issue = firstIssue(schema, value) ?? (hasProto ? checkProto(fieldOf(schema), value, []) : undefined);
  if (!issue) return value;
  throw (
    validationMessages[row.id]?.(issue.path, valueAtIssue(issue, value)) ??
    refuse(badStatus(row.id), problemText(schema, issue, value))
  );
}

// Most requests repeat the path and query of an earlier one. What was valid once stays valid, because no schema depends on anything
// else.
const mostValid = 1000;
const longestValid = 300;
const valid = new Map<string, Operation>();

function addValid(row: Operation, address: string): void {
  if (valid.size >= mostValid) valid.clear();
  if (address.length <= longestValid) valid.set(address, row);
}

/** A validated request with its unknown fields, which are ignored, or refused by a strict service. */
export interface Valid {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly unknown: readonly string[];
}

/**
 * Checks a request against its row and returns the tidied values, unknown fields included. `address` is the path and query as they
 * were sent; with it, what an earlier request sent is not checked again.
 */
export function validate(row: Operation, params: unknown, query: unknown, body: unknown, address?: string): Valid {
  const isValid = address !== undefined && valid.get(address) === row;
  if (!isValid) check(row, row.params, params, false);
  const unknown: string[] = [];
  const queried = row.query ? readQuery(row, row.query, query, unknown) : {};
  if (row.query && !isValid) check(row, row.query, queried);
  if (address !== undefined && !isValid) addValid(row, address);
  if (!row.query && isObject(query)) unknown.push(...Object.keys(query));
  if (!row.body) return { params, query: queried, body: undefined, unknown };
  const present = body === undefined && row.bodyOptional === true ? {} : body;
  if (present === undefined) throw refuse(400, "invalid body, got nothing, must be a JSON object");
  const hasProto = requireBodyRules(row, row.body, present);
  const tidied = tidy(row.body, present, "request");
  unknown.push(...tidied.unknown);
  return { params, query: queried, body: check(row, row.body, tidied.value, hasProto), unknown };
}

function readQuery(row: Operation, schema: z.ZodObject, query: unknown, unknown: string[]): Record<string, unknown> {
  const { shape } = fieldOf(schema);
  const read: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(isObject(query) ? query : {})) {
    // `metadata.{key}=value` is an entry of a map.
    const dot = name.indexOf(".");
    const map = dot > 0 ? fieldAt(shape, name.slice(0, dot)) : undefined;
    if (map?.shape.kind === "record") {
      const entries = (read[name.slice(0, dot)] ??= {}) as Record<string, unknown>;
      define(entries, name.slice(dot + 1), String(Array.isArray(value) ? value.at(-1) : value));
      requireShortQuery(row, name.slice(0, dot), Object.keys(entries).length);
      continue;
    }
    const field = fieldAt(shape, name);
    if (!field || field.shape.kind === "record") unknown.push(name);
    else if (value !== "" || isStrict(row)) read[name] = queryValue(row, name, field, value);
  }
  return read;
}

const fieldAt = (shape: Shape, name: string): Field | undefined =>
  shape.kind === "object" && Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;

// ASSUMED: numbers, flags and lists of the query may be empty, too, and count as absent then; flags are `true`, `false`, `1` and `0`.
const truths: Readonly<Record<string, boolean>> = { true: true, "1": true, false: false, "0": false };

/** The list of clusters accepts only `true` and `false` (docs/interface.md#managed-postgres). */
export const isStrict = ({ id }: Operation): boolean => id === "postgres.list";

/**
 * A value of the query, converted to the type of its field; a list is repeated or separated by commas
 * (docs/interface.md#waits).
 */
function queryValue(row: Operation, name: string, { shape }: Field, value: unknown): unknown {
  if (shape.kind === "array") {
    const list = (Array.isArray(value) ? value : [value]).flatMap((text) => String(text).split(","));
    requireShortQuery(row, name, list.length);
    return list;
  }
  const text = String(Array.isArray(value) ? value.at(-1) : value);
  if (shape.kind !== "leaf") return text;
  if (shape.type === "boolean") {
    const spellings = isStrict(row) ? { true: true, false: false } : truths;
    const truth = Object.hasOwn(spellings, text) ? spellings[text] : undefined;
    if (truth === undefined)
      throw refuse(
        badStatus(row.id),
        `invalid ${name}, got ${JSON.stringify(text.slice(0, 80))}, must be true or false`,
      );
    return truth;
  }
  if (shape.type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (shape.type === "integer")
    throw refuse(400, `invalid ${name}, got ${JSON.stringify(text.slice(0, 80))}, must be an integer`);
  return text;
}

/** Checks an answer of a strict service against its row, so that a bug of the service shows at once. */
export function checkAnswer(row: Operation, status: number, text: string | undefined): void {
  if (!row.answer) return;
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  const issue = firstIssue(row.answer, value);
  const unknown = tidy(row.answer, value, "answer").unknown.filter(
    (path) => !/(^|\.)config\.|user_config\./.test(path),
  );
  const mistake = issue
    ? problemText(row.answer, issue, value)
    : unknown.length > 0
      ? `unknown ${namesOf(unknown).join(", ")}`
      : undefined;
  if (mistake !== undefined)
    throw new Refusal(500, {
      error: `${row.id} built an answer (${status}) that its row does not describe: ${mistake}`,
    });
}
