// Brings a copy to the end of the log. A copy whose last entry is not in the log is replaced: a leader committed changes in it that
// nobody acknowledged.
import type { Position } from "./changes.ts";
import type { Log, Logged, Snapshot } from "./log.ts";

/** A copy that a member has. */
export interface Copy {
  readonly position: Position;
  /** Applies the next entry. Throws DoesNotApply if it does not fit. */
  apply(entry: Logged): Promise<void>;
  /** Replaces it by a snapshot, or by an empty one. */
  replace(snapshot: Snapshot | undefined): Promise<void>;
}

/** Entries that are read at once. */
const mostEntries = 100;
const mostBytes = 8 * 2 ** 20;

/** What bringing a copy to the end of the log needed. */
export interface CaughtUp {
  /** Entries that were applied. */
  readonly applied: number;
  /** Whether the copy was replaced. */
  readonly isReplaced: boolean;
}

/** Applies what the log has after the copy's position; replaces the copy if that is not possible. */
export async function catchUp(copy: Copy, log: Pick<Log, "read" | "latestSnapshot">): Promise<CaughtUp> {
  let [applied, isReplaced] = [0, false];
  if (!(await isInLog(copy, log))) {
    await copy.replace(await log.latestSnapshot());
    isReplaced = true;
  }
  for (;;) {
    const entries = await log.read(copy.position.seq, mostEntries, mostBytes);
    if (entries.length === 0) return { applied, isReplaced };
    for (const entry of entries) await copy.apply(entry);
    applied += entries.length;
  }
}

/** Whether the log continues the copy: it has the copy's last entry, of the same leadership, or its first entry follows. */
async function isInLog({ position }: Copy, log: Pick<Log, "read">): Promise<boolean> {
  const [found] = await log.read(Math.max(0, position.seq - 1), 1, 1);
  if (position.seq === 0) return found === undefined || found.seq === 1;
  return found?.seq === position.seq && found.epoch === position.epoch;
}
