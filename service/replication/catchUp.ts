// Brings a copy to the end of the log. A copy whose last entry is not in the log is replaced: it contains changes that were never
// acknowledged.
import { DoesNotApply, type Position } from "./changes.ts";
import type { Log, Logged, Snapshot } from "./log.ts";

/** A copy that a member has. */
export interface Copy {
  readonly position: Position;
  /** Applies the next entries. Throws DoesNotApply if one does not fit; those before it may be applied then. */
  apply(entries: readonly Logged[]): Promise<void>;
  /** Replaces it by a snapshot, or by an empty one. */
  replace(snapshot: Snapshot | undefined): Promise<void>;
}

/** Entries that are read at once. */
const mostEntries = 100;
const mostBytes = 8 * 2 ** 20;

/**
 * Applies what the log has after the copy's position; replaces the copy if that is not possible.
 * @throws DoesNotApply if the log does not continue its own latest snapshot.
 */
export async function catchUp(copy: Copy, log: Pick<Log, "read" | "latestSnapshot">): Promise<void> {
  let from: number | undefined;
  /** False if it started from the latest snapshot already. */
  const replaceBy = async (snapshot: Snapshot | undefined): Promise<boolean> => {
    const seq = snapshot?.seq ?? 0;
    if (seq === from) return false;
    from = seq;
    await copy.replace(snapshot);
    return true;
  };
  for (;;) {
    const next = await following(copy.position, log);
    if (next?.length === 0) return;
    // For an empty copy, a snapshot is much faster than all entries before it.
    const start = copy.position.seq === 0 ? await log.latestSnapshot() : undefined;
    if (start && (await replaceBy(start))) continue;
    try {
      if (!next) throw new DoesNotApply(`the log does not continue entry ${copy.position.seq} of this copy`);
      await copy.apply(next);
    } catch (error) {
      // The copy is damaged, or what it needs next was trimmed meanwhile.
      if (!(error instanceof DoesNotApply) || !(await replaceBy(await log.latestSnapshot()))) throw error;
    }
  }
}

/**
 * The entries after a position; undefined if the log does not continue it. Each time, the entry before is read with them: a database that
 * fails over may forget an entry that it has shown.
 */
async function following({ seq, epoch }: Position, log: Pick<Log, "read">): Promise<readonly Logged[] | undefined> {
  const entries = await log.read(Math.max(0, seq - 1), mostEntries, mostBytes);
  const [first, ...others] = entries;
  if (seq === 0) return first === undefined || first.seq === 1 ? entries : undefined;
  if (first?.seq !== seq || first.epoch !== epoch) return undefined;
  // So large an entry comes alone.
  return first.bytes.length < mostBytes ? others : log.read(seq, mostEntries, mostBytes);
}

/**
 * Makes a copy contain the entries up to and including `seq`.
 * @throws DoesNotApply if the log no longer has what that needs.
 */
export async function readUntil(copy: Copy, log: Pick<Log, "read" | "latestSnapshot">, seq: number): Promise<void> {
  await copy.replace(await log.latestSnapshot(seq));
  while (copy.position.seq < seq) {
    const entries = await log.read(copy.position.seq, Math.min(mostEntries, seq - copy.position.seq), mostBytes);
    if (entries.length === 0) throw new DoesNotApply(`the log has no entry ${copy.position.seq + 1}`);
    await copy.apply(entries);
  }
}
