// Metrics of a member: where it stands, and how large the log is.
import { membersMetrics as of } from "../watch/catalogue.ts";
import type { Measured } from "../watch/exposition.ts";

/** Where a member stands. */
export interface MemberNumbers {
  readonly isLeader: boolean;
  /** Number of the latest leadership. */
  readonly epoch: number;
  /** The last entry of its copy. */
  readonly seq: number;
  /** The last entry of the log. */
  readonly endSeq: number;
  /** How often its copy was replaced, because it did not fit the log. */
  readonly replaced: number;
  /** Bytes of the log on the disk of the database. */
  readonly logBytes: number;
  readonly snapshots: number;
  /** How many members there are, by role. */
  readonly members: Readonly<Record<string, number>>;
}

/** The metrics of a member. */
export function memberMetrics(numbers: MemberNumbers): readonly Measured[] {
  const { isLeader, epoch, seq, endSeq, replaced, logBytes, snapshots, members } = numbers;
  return [
    [of.members, Object.entries(members).map(([role, n]) => [{ role }, n])],
    [of.leads, [[{}, isLeader ? 1 : 0]]],
    [of.leaderships, [[{}, epoch]]],
    [of.entry, [[{}, seq]]],
    [of.behind, [[{}, Math.max(0, endSeq - seq)]]],
    [of.replaced, [[{}, replaced]]],
    [of.logBytes, [[{}, logBytes]]],
    [of.snapshots, [[{}, snapshots]]],
  ];
}
