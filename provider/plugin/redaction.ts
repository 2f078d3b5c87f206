// Removes the program's secrets from all messages, including those of other parties.
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import type { Field } from "../../api/schema.ts";
import { hide, withheld, type Withheld } from "../core/redaction.ts";
import { decode } from "./marshal.ts";

/** The properties that a request may have. */
type Fields = Readonly<Record<string, Field>>;

/** A request that may contain secrets. */
export interface Telling {
  getArgs?(): Struct | undefined;
  getInputs?(): Struct | undefined;
  getNews?(): Struct | undefined;
  getOlds?(): Struct | undefined;
  getProperties?(): Struct | undefined;
}

/** Removes all secrets of a request from a text, and `others` that no request repeats. */
export const withoutSecretsOf = (
  request: Telling,
  fields: Fields,
  text: string,
  others: readonly Withheld[] = [],
): string =>
  withoutSecrets(
    [request.getArgs?.(), request.getInputs?.(), request.getNews?.(), request.getOlds?.(), request.getProperties?.()],
    fields,
    text,
    others,
  );

/** Removes all secrets in property structs, and others, from a text. */
export function withoutSecrets(
  structs: readonly (Struct | undefined)[],
  fields: Fields,
  text: string,
  others: readonly Withheld[] = [],
): string {
  const found = structs.flatMap((message) => {
    const { values, marks } = decode(message);
    return withheld(fields, values, marks);
  });
  return hide([...found, ...others], text);
}
