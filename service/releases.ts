// The releases, and which of them this version upgrades from.
import { version } from "./version.ts";

/**
 * The releases by their first two numbers, oldest first. A new one appends its own, and `npm run record-upgrade` records it: the tests
 * upgrade from the last two before it.
 */
export const releases: readonly string[] = ["0.1"];

/** How many releases before its own a version upgrades from. */
const upgradesFrom = 2;

/** The release of a version: `0.1` of `0.1.3`. */
export const releaseOf = (of: string): string => of.split(".", 2).join(".");

const partsOf = (text: string): readonly number[] =>
  text.split(/[.-]/, 3).map((part) => Number.parseInt(part, 10) || 0);

/** Orders versions; one such as `0.2.0-rc.1` is before `0.2.0`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (const at of [0, 1, 2]) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return Number(b.includes("-")) - Number(a.includes("-")) || a.localeCompare(b);
}

/**
 * The release to install first, if a version is too old for an upgrade to this one; undefined if it is not. `known` are the releases up to
 * that of this version.
 */
export function releaseBetween(from: string, known = releases, own = releaseOf(version)): string | undefined {
  const at = known.indexOf(own);
  const oldest = known[Math.max(0, at - upgradesFrom)] ?? own;
  return compareVersions(`${releaseOf(from)}.0`, `${oldest}.0`) < 0 ? oldest : undefined;
}
