// Sorts long lists without keeping other requests waiting.
import type { Work } from "../time/costly.ts";

/** Number of members that are sorted or merged between two pauses. */
const size = 2000;

/** The keys in ascending order; all are texts, or all are numbers. */
export async function sortedInParts<K extends string | number>(keys: readonly K[], work: Work): Promise<K[]> {
  let runs: K[][] = [];
  for (let at = 0; at < keys.length; at += size) {
    runs.push(keys.slice(at, at + size).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    await work.pause();
  }
  while (runs.length > 1) {
    const merged: K[][] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i] ?? [], runs[i + 1] ?? [], work));
    runs = merged;
  }
  return runs[0] ?? [];
}

async function merge<K extends string | number>(one: readonly K[], other: readonly K[], work: Work): Promise<K[]> {
  const all: K[] = [];
  for (let i = 0, k = 0; i < one.length || k < other.length;) {
    const [a, b] = [one[i], other[k]];
    if (b === undefined || (a !== undefined && a <= b)) {
      all.push(a as K);
      i++;
    } else {
      all.push(b as K);
      k++;
    }
    if (all.length % size === 0) await work.pause();
  }
  return all;
}
