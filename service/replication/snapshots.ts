// Snapshots of the log: a new member starts from the latest one, and the entries before may be removed.
import type { Log, Snapshot } from "./log.ts";

/** A snapshot of a copy, with the leadership that appended its last entry. */
export interface MadeSnapshot extends Snapshot {
  readonly epoch: number;
}

/** How the log is kept. */
export interface Keeping {
  /** A snapshot is made when the entries after the latest one have this many bytes, and at least half as many as that one. */
  readonly everyBytes: number;
  /** Any moment of so many milliseconds before now can be read. */
  readonly keepMs: number;
}

/** ASSUMED: a snapshot for each 8 MB of the log, or more if it is large itself. Applying so much takes a new member some seconds. */
export const usualBytes = 8 * 2 ** 20;

/** Makes a snapshot if one is due, and removes what is no longer needed. Returns the number of the snapshot's last entry. */
export async function keepLog(
  log: Pick<Log, "extent" | "read" | "addSnapshot" | "snapshot" | "removeSnapshot" | "trim">,
  make: () => Promise<MadeSnapshot>,
  { everyBytes, keepMs }: Keeping,
): Promise<number | undefined> {
  const before = await log.extent();
  const due = Math.max(everyBytes, (before.snapshots[0]?.bytes ?? 0) / 2);
  const made = before.bytesSince >= due ? await store(log, make) : undefined;
  const { snapshots, now } = made === undefined ? before : await log.extent();
  // One that was made before that time has an earlier moment.
  const oldest = snapshots.find(({ at }) => at <= now - keepMs);
  const [, previous] = snapshots;
  if (oldest && previous) await log.trim(Math.min(oldest.seq, previous.seq));
  return made;
}

/** Stores a snapshot, and reads it back before anything relies on it. */
async function store(
  log: Pick<Log, "read" | "addSnapshot" | "snapshot" | "removeSnapshot">,
  make: () => Promise<MadeSnapshot>,
): Promise<number | undefined> {
  const { epoch, seq, bytes } = await make();
  // The copy of a leader may have an entry that the log does not have yet, and may never have.
  const [last] = await log.read(seq - 1, 1, 1);
  if (last?.seq !== seq || last.epoch !== epoch) return undefined;
  const id = await log.addSnapshot({ seq, bytes });
  const stored = await log.snapshot(id);
  if (stored?.seq === seq && Buffer.from(stored.bytes).equals(bytes)) return seq;
  await log.removeSnapshot(id);
  throw new Error(`snapshot ${seq} is not in the log as it was stored`);
}
