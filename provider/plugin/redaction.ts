// What the program calls a secret stands in no message, whoever worded it.
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import { isObject } from "../../api/schema.ts";
import { decode, type Marks } from "./marshal.ts";

/** A request, as far as it can hold secrets. */
export interface Telling {
  getArgs?(): Struct | undefined;
  getInputs?(): Struct | undefined;
  getNews?(): Struct | undefined;
  getOlds?(): Struct | undefined;
  getProperties?(): Struct | undefined;
}

/** Everything secret in a request, taken out of a text. */
export const withoutSecretsOf = (request: Telling, text: string): string =>
  withoutSecrets(
    [request.getArgs?.(), request.getInputs?.(), request.getNews?.(), request.getOlds?.(), request.getProperties?.()],
    text,
  );

/** Everything secret in property structs, taken out of a text. */
export function withoutSecrets(structs: readonly (Struct | undefined)[], text: string): string {
  const leaves = new Set<string | number>();
  for (const message of structs) {
    const { values, marks } = decode(message);
    collect(values, marks, leaves);
  }
  // The longest first: one secret may be part of another.
  return [...leaves]
    .sort((a, b) => String(b).length - String(a).length)
    .reduce((cleaned: string, leaf) => without(leaf, cleaned), text);
}

function collect(value: unknown, marks: Marks | undefined, leaves: Set<string | number>): void {
  if (!marks) return;
  if (marks.secret) return collectAll(value, leaves);
  for (const [name, inner] of marks.within)
    collect((value as Readonly<Record<string | number, unknown>>)[name], inner, leaves);
}

function collectAll(value: unknown, leaves: Set<string | number>): void {
  if (typeof value === "string" || typeof value === "number") leaves.add(value);
  else if (Array.isArray(value)) value.forEach((item) => collectAll(item, leaves));
  else if (isObject(value)) Object.values(value).forEach((inner) => collectAll(inner, leaves));
}

function without(leaf: string | number, text: string): string {
  const shown = "[secret]";
  if (typeof leaf === "number") {
    const digits = String(leaf).replace(/[.+]/g, "\\$&");
    return text.replace(new RegExp(`(?<![\\w.])${digits}(?!\\w|\\.\\d)`, "g"), shown);
  }
  const quoted = JSON.stringify(leaf);
  const cleaned = text.replaceAll(quoted, shown);
  // As the engine does: a secret of a letter or two would take every such letter along.
  return leaf.length < 3 ? cleaned : cleaned.replaceAll(leaf, shown).replaceAll(quoted.slice(1, -1), shown);
}
