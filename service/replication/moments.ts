// Past moments of a log: which entry was the last one then, and whether the log still has what a copy of that moment needs.
import type { Log } from "./log.ts";

/** What is read to find a moment. */
type Read = Pick<Log, "lastBefore" | "read" | "extent">;

/** The first moment that a log has, in milliseconds since 1970; undefined if it is empty. */
export async function firstMoment(log: Pick<Log, "read">): Promise<number | undefined> {
  return (await log.read(0, 1, 1))[0]?.at;
}

/** The last entry at a moment, in milliseconds since 1970; undefined if no copy of that moment can be made any more. */
export async function entryAt(log: Read, moment: number): Promise<number | undefined> {
  const seq = await log.lastBefore(moment);
  if (seq === 0) return undefined;
  const [oldest] = await log.read(0, 1, 1);
  if (oldest?.seq === 1) return seq;
  const { snapshots } = await log.extent();
  return snapshots.some((one) => one.seq <= seq) ? seq : undefined;
}
