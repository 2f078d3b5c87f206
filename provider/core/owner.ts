// Whose an object is: the program's name for it, which the service is told as a hash alone.
import { createHash } from "node:crypto";

const hash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** The owner in the plugin, which is told the URN. */
export const ownerOf = (urn: string): string => hash(urn);

/** What a dynamic resource is in its program: its class knows no URN of its own. */
export interface InProgram {
  readonly project: string;
  readonly stack: string;
  /** Name of the resource type: `Machine`. */
  readonly type: string;
  /** URN of the parent that the program gave; empty when it gave none. */
  readonly parent: string;
  readonly name: string;
}

/** The owner in the dynamic binding. */
export const dynamicOwnerOf = ({ project, stack, type, parent, name }: InProgram): string =>
  hash(JSON.stringify([project, stack, type, parent, name]));
