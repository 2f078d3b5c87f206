// Removes the program's secrets from all messages, including those of other parties.
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import { hide, leavesIn, type Leaf } from "../core/redaction.ts";
import { decode, type Marks } from "./marshal.ts";

/** A request that may contain secrets. */
export interface Telling {
  getArgs?(): Struct | undefined;
  getInputs?(): Struct | undefined;
  getNews?(): Struct | undefined;
  getOlds?(): Struct | undefined;
  getProperties?(): Struct | undefined;
}

/** Removes all secrets of a request from a text, and `others` that no request repeats. */
export const withoutSecretsOf = (request: Telling, text: string, others: readonly Leaf[] = []): string =>
  withoutSecrets(
    [request.getArgs?.(), request.getInputs?.(), request.getNews?.(), request.getOlds?.(), request.getProperties?.()],
    text,
    others,
  );

/** Removes all secrets in property structs, and others, from a text. */
export function withoutSecrets(
  structs: readonly (Struct | undefined)[],
  text: string,
  others: readonly Leaf[] = [],
): string {
  const leaves = structs.flatMap((message) => {
    const { values, marks } = decode(message);
    return secretLeaves(values, marks);
  });
  // Like the engine: a secret of one or two letters would remove every such letter.
  return hide([...leaves, ...others], text, 3);
}

function secretLeaves(value: unknown, marks: Marks | undefined): Leaf[] {
  if (!marks) return [];
  if (marks.secret) return leavesIn(value);
  return [...marks.within].flatMap(([name, inner]) =>
    secretLeaves((value as Readonly<Record<string | number, unknown>>)[name], inner),
  );
}
