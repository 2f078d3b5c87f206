// What a member has around it, and what the others see of it.
import type { Sent } from "../../provider/client/transport.ts";
import type { Seen, Service } from "../../service/index.ts";
import type { Copy } from "../../service/replication/catchUp.ts";
import type { GroupLog } from "../../service/replication/groupLog.ts";
import type { Log } from "../../service/replication/log.ts";
import type { Activity, SimulatedTime } from "../support/simulatedTime.ts";
import type { Bug } from "./bugs.ts";
import type { Fate } from "./fate.ts";

/** A process of a member. */
export interface Peer {
  readonly id: string;
  readonly isDead: boolean;
  /** Nothing reaches it, and it reaches nothing. */
  readonly isCut: boolean;
  /** Whether it leads and accepts requests. */
  readonly answers: boolean;
  readonly service: Service | undefined;
  /** Resolves when it ends. */
  readonly died: Promise<"lost">;
  /** Takes a request of a client or of another member. */
  take(sent: Sent): Promise<Reply>;
}

/** An answer, or that the connection ended without one. */
export type Reply =
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly text: string }
  | "lost";

/** What a member has around it. */
export interface Surroundings {
  /** Behind every identifier. */
  readonly seed: string;
  readonly folder: string;
  readonly time: SimulatedTime;
  readonly activity: Activity;
  readonly fate: Fate;
  readonly bug: Bug | undefined;
  readonly hasConsole: boolean;
  readonly log: Log;
  /** Internal errors that members logged. */
  readonly mistakes: string[];
  readonly isOver: boolean;
  /** The process at an address. */
  peerAt(address: string | undefined): Peer | undefined;
  /** Notes what happens. */
  note(text: string): void;
  /** A part of the universe cannot continue. */
  fail(error: unknown): void;
  /** A member begins to answer. */
  leads(process: Peer, epoch: number): void;
  /** A request was answered by some member. */
  answered(seen: Seen): void;
  /** A leader answers: none that came later has acknowledged a change, or what it read could be out of date. */
  replied(epoch: number, sent: Sent, status: number): void;
  /** The log, as a member with a planted bug uses it. */
  brokenLog(log: Log): Log;
  /** The copy of a member, which is busy while it changes. */
  brokenCopy(copy: Copy): Copy;
  /** How a leader's store reports its transactions. */
  brokenGroupLog(log: GroupLog): GroupLog;
}
