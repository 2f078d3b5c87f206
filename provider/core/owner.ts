// The owner that is stored with an object: a hash of the name that the program has for it.
import { createHash } from "node:crypto";

const hash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** The owner in the plugin, which receives the URN. */
export const ownerOf = (urn: string): string => hash(urn);

/** The identity of a dynamic resource in its program. Its class does not know its URN. */
export interface InProgram {
  readonly project: string;
  readonly stack: string;
  /** Name of the resource type: `Machine`. */
  readonly type: string;
  /** URN of the parent that the program set; empty if there is none. */
  readonly parent: string;
  readonly name: string;
}

/** The owner in the dynamic binding. */
export const dynamicOwnerOf = ({ project, stack, type, parent, name }: InProgram): string =>
  hash(JSON.stringify([project, stack, type, parent, name]));
