// What a repository no longer needs: backups that the policy does not keep, what only they need, and what interrupted ones have left.
import { reasonOf } from "../reasonOf.ts";
import type { Source } from "./backUp.ts";
import { Catalogue, tags, type Backup } from "./contents.ts";
import { placesOf } from "./places.ts";
import { keptBy, type Policy } from "./policy.ts";
import type { Restic, Stored } from "./restic.ts";

/** Removes what is outdated. Returns why that failed, as where a repository accepts only additions; undefined if it did not. */
export async function removeOutdated(
  restic: Restic,
  { folder, lineage, signal }: Pick<Source, "folder" | "lineage" | "signal">,
  policy: Policy,
): Promise<string | undefined> {
  try {
    const backups = await new Catalogue(restic, placesOf(folder).cache, lineage).all();
    await restic.remove(await outdated(restic, backups, lineage, policy));
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return reasonOf(error);
  }
}

// ASSUMED: no backup takes longer than two days.
const longestMs = 2 * 86_400_000;

/**
 * The snapshots of a service, with these backups, that can be removed. A service that was restored from the same backups may be making
 * one meanwhile, so what no backup names is only removed once it is older than any that is being made.
 */
export async function outdated(
  restic: Pick<Restic, "snapshots">,
  backups: readonly Backup[],
  lineage: string,
  policy: Policy,
): Promise<readonly string[]> {
  const dated = backups.map(({ id, manifest }) => ({
    ...{ id, time: manifest.at },
    isComplete: manifest.missing.length === 0,
  }));
  const kept = keptBy(policy, dated);
  const needed = new Set(backups.filter(({ id }) => kept.has(id)).flatMap(snapshotsOf));
  const all = await restic.snapshots(tags.service(lineage));
  for (const { id } of lastLogs(all, kept)) needed.add(id);
  const named = new Set(backups.flatMap(snapshotsOf));
  const ids = new Set(backups.map(({ id }) => id));
  const newest = all.at(-1)?.time ?? 0;
  const isNamed = (one: Stored): boolean => named.has(one.id) || ids.has(sinceOf(one) ?? "");
  return all
    .filter((one) => !needed.has(one.id) && (isNamed(one) || one.time < newest - longestMs))
    .map(({ id }) => id);
}

/** The snapshots that a backup consists of. */
const snapshotsOf = ({ snapshot, manifest }: Backup): readonly string[] => [
  snapshot,
  ...Object.values(manifest.volumes).map(({ stored }) => stored),
];

/** The last log since each of these backups: it has all changes of the earlier ones. */
function lastLogs(all: readonly Stored[], kept: ReadonlySet<string>): readonly Stored[] {
  const last = new Map<string, Stored>();
  for (const one of all) {
    const since = one.tags.includes(tags.log) ? sinceOf(one) : undefined;
    if (since !== undefined && kept.has(since)) last.set(since, one);
  }
  return [...last.values()];
}

/** The backup since which a log is. */
export const sinceOf = ({ tags: all }: Stored): string | undefined =>
  all.find((tag) => tag.startsWith(tags.since("")))?.slice(tags.since("").length);
