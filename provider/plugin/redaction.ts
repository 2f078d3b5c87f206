// Removes the program's secrets from all messages, including those of other parties.
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import { hide, leavesIn, type Leaf } from "../core/redaction.ts";
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
  const leaves = structs.flatMap((message) => {
    const { values, marks } = decode(message);
    return secretLeaves(values, marks);
  });
  // As the engine does: a secret of a letter or two would take every such letter along.
  return hide(leaves, text, 3);
}

function secretLeaves(value: unknown, marks: Marks | undefined): Leaf[] {
  if (!marks) return [];
  if (marks.secret) return leavesIn(value);
  return [...marks.within].flatMap(([name, inner]) =>
    secretLeaves((value as Readonly<Record<string | number, unknown>>)[name], inner),
  );
}
