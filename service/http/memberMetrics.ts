// Metrics of a member: where it stands, and how large the log is.
import { metric } from "./metrics.ts";

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
}

/** The metrics as text. */
export function memberMetrics(numbers: MemberNumbers): string {
  const { isLeader, epoch, seq, endSeq, replaced, logBytes, snapshots } = numbers;
  const metrics = [
    metric("machines_service_member_leads", "gauge", "1 if this member leads.", [[{}, isLeader ? 1 : 0]]),
    metric("machines_service_leaderships_total", "counter", "Leaderships so far: each takeover adds one.", [
      [{}, epoch],
    ]),
    metric("machines_service_member_entry", "gauge", "The last entry of the log that this member has.", [[{}, seq]]),
    metric("machines_service_member_behind", "gauge", "Entries of the log that this member does not have yet.", [
      [{}, Math.max(0, endSeq - seq)],
    ]),
    metric(
      "machines_service_member_copies_replaced_total",
      "counter",
      "Copies that did not fit the log, and were replaced.",
      [[{}, replaced]],
    ),
    metric("machines_service_log_bytes", "gauge", "Size of the log in its database.", [[{}, logBytes]]),
    metric("machines_service_log_snapshots", "gauge", "Snapshots in the log.", [[{}, snapshots]]),
  ];
  return `${metrics.join("\n")}\n`;
}
