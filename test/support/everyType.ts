// Tables with an entry for every resource type: a new type does not compile until each of them names it.
import type { ResourceName } from "../../provider/registry.ts";

/** A type that a table leaves out on purpose. */
export interface LeftOut {
  readonly leftOut: string;
}

/** Leaves a type out, with the reason. */
export const none = (leftOut: string): LeftOut => ({ leftOut });

/** An entry for every type, or the reason why it has none. */
export type EveryType<T> = Readonly<Record<ResourceName, T | LeftOut>>;

const isLeftOut = (entry: unknown): entry is LeftOut =>
  typeof entry === "object" && entry !== null && "leftOut" in entry;

/** The entry of a type; undefined if it is left out. */
export function entryOf<T>(table: EveryType<T>, type: ResourceName): T | undefined {
  const entry = table[type];
  return isLeftOut(entry) ? undefined : entry;
}

/** The types that have an entry, with it. */
export const entriesOf = <T>(table: EveryType<T>): (readonly [ResourceName, T])[] =>
  (Object.keys(table) as ResourceName[]).flatMap((type) => {
    const entry = entryOf(table, type);
    return entry === undefined ? [] : [[type, entry] as const];
  });
