// Compares what an App had at a moment with what it has now.
import type { ComparedPart, Fields, Change } from "./types.ts";

/** Objects of a part by their key. */
export type Objects = ReadonlyMap<string, Fields>;

/** The fields that differ. One that is left out is null. */
export const differing = (was: Fields, is: Fields): readonly string[] =>
  [...new Set([...Object.keys(was), ...Object.keys(is)])].filter((name) => (was[name] ?? null) !== (is[name] ?? null));

const changeOf = (was: Fields | undefined, is: Fields | undefined): Change =>
  was === undefined
    ? "created"
    : is === undefined
      ? "deleted"
      : differing(was, is).length > 0
        ? "changed"
        : "unchanged";

const order: readonly Change[] = ["changed", "deleted", "created", "unchanged"];

/**
 * Every object that was or is there. Of each kind of change, the first `most` are shown, in the order in which they are given: those that were
 * there first.
 */
export function compare(was: Objects, is: Objects, most: number): ComparedPart {
  const counts: Record<Change, number> = { changed: 0, deleted: 0, created: 0, unchanged: 0 };
  const found: Record<Change, ComparedPart["rows"][number][]> = {
    changed: [],
    deleted: [],
    created: [],
    unchanged: [],
  };
  for (const key of new Set([...was.keys(), ...is.keys()])) {
    const [before, now] = [was.get(key), is.get(key)];
    const change = changeOf(before, now);
    counts[change]++;
    if (found[change].length < most) found[change].push({ key, change, was: before ?? null, is: now ?? null });
  }
  return { counts, rows: order.flatMap((change) => found[change]).slice(0, most) };
}
