// The decisions of a member: a pure function of its state, an event and the time. It sends no requests, so that a simulation can
// play events in any order.
import type { Leadership, Member } from "./log.ts";

/** Times in milliseconds. */
export interface Timing {
  /** How long a leadership lasts after it was last renewed. */
  readonly leaseMs: number;
  /** How often the leader renews it. */
  readonly renewMs: number;
  /** How often the others look who leads. */
  readonly lookMs: number;
  /** Pause after a request to the log that failed. */
  readonly retryMs: number;
}

/**
 * After the leader's death another member looks until its lease has ended; after a hand-over within `lookMs`. Then it has to read the
 * end of the log.
 */
export const usualTiming: Timing = { leaseMs: 2000, renewMs: 500, lookMs: 50, retryMs: 100 };

/**
 * `following`: another member leads, or none. `catching up`: it has the leadership, and reads the log to its end. `leading`: it answers.
 * `ended`: it does nothing more, and its process ends.
 */
export type Role = "following" | "catching up" | "leading" | "ended";

/** The state of a member. All times are by its own monotonic clock. */
export interface MemberState {
  readonly me: Member;
  /** Whether it may lead at all: what runs the Machines may be on another computer. */
  readonly mayLead: boolean;
  readonly role: Role;
  /** The latest leadership that it knows of: its own, unless it follows. 0 before the first. */
  readonly epoch: number;
  /** Who leads, as far as it knows. */
  readonly leader: Member | undefined;
  /** No other member can lead before this. The lease counts from the time before the request that renewed it. */
  readonly leaseUntil: number;
  /** Whether a request about the leadership is under way; there is one at a time. */
  readonly isAsking: boolean;
  /** When the next one is due. */
  readonly nextAt: number;
  /** The latest renewal of another leader's lease that it has seen, and when it saw it first. */
  readonly seen: { readonly renewal: string; readonly since: number } | undefined;
}

/** What happened. `sentAt` is the time before the request that is answered. */
export type Happened =
  | { readonly kind: "time passed" }
  /** `isBehind`: the copy has not reached the end of the log since the look before. */
  | { readonly kind: "leadership"; readonly found: Leadership | undefined; readonly isBehind: boolean }
  | { readonly kind: "took over"; readonly epoch: number | undefined; readonly sentAt: number }
  | { readonly kind: "renewed"; readonly isMine: boolean; readonly sentAt: number }
  /** The log did not answer a request about the leadership. */
  | { readonly kind: "unavailable" }
  /** The copy has the whole log, whose last entry is of this leadership; 0 if there is none. */
  | { readonly kind: "caught up"; readonly epoch: number }
  /** An append found a later leadership. */
  | { readonly kind: "lost" }
  /** The process is to end. */
  | { readonly kind: "stop" }
  /** All that the leader has accepted is in the log. */
  | { readonly kind: "drained" }
  /** Where the Machines run has changed, and with it whether this member may lead. */
  | { readonly kind: "moved"; readonly mayLead: boolean };

/** What is to be done now. */
export type Action =
  | { readonly kind: "look" }
  | { readonly kind: "take over"; readonly from: number; readonly renewal?: string }
  | { readonly kind: "renew"; readonly epoch: number }
  /** Read the log to its end, and report that. */
  | { readonly kind: "catch up"; readonly epoch: number }
  /** Begin to answer. */
  | { readonly kind: "lead"; readonly epoch: number }
  /** Accept nothing more, and report when all that was accepted is in the log. */
  | { readonly kind: "drain" }
  | { readonly kind: "release"; readonly epoch: number }
  /** End: connections are closed without an answer if the leadership was lost, because its outcome is unknown. */
  | { readonly kind: "end"; readonly isLost: boolean };

/** A member at its start. */
export const beginning = (me: Member, now: number, mayLead = true): MemberState => ({
  ...{ me, mayLead, role: "following", epoch: 0, leader: undefined, leaseUntil: 0 },
  ...{ isAsking: false, nextAt: now, seen: undefined },
});

/**
 * Whether the leader may send an answer. It is checked after the data was read: no other member led until `leaseUntil`, so the data
 * was up to date when it was read, even if the process was paused in between.
 */
export const mayAnswer = ({ role, leaseUntil }: MemberState, now: number): boolean =>
  role === "leading" && now < leaseUntil;

type Decision = readonly [MemberState, readonly Action[]];

/** The next state, and what to do. */
export function decide(state: MemberState, happened: Happened, now: number, timing: Timing): Decision {
  if (state.role === "ended") return [state, []];
  switch (happened.kind) {
    case "time passed":
      return whenDue(state, now);
    case "leadership":
      return found(state, happened, now, timing);
    case "took over":
      return tookOver(state, happened.epoch, happened.sentAt, now, timing);
    case "renewed": {
      if (!happened.isMine) return end(state, true);
      const leaseUntil = Math.max(state.leaseUntil, happened.sentAt + timing.leaseMs);
      return [{ ...state, leaseUntil, isAsking: false, nextAt: happened.sentAt + timing.renewMs }, []];
    }
    case "unavailable":
      return [{ ...state, isAsking: false, nextAt: now + timing.retryMs }, []];
    case "caught up":
      if (state.role !== "catching up") return [state, []];
      // While it was reading, its lease ended and another member led.
      if (happened.epoch > state.epoch) return end(state, true);
      return [{ ...state, role: "leading" }, [{ kind: "lead", epoch: state.epoch }]];
    case "lost":
      return end(state, true);
    case "stop":
      return state.role === "leading" ? [state, [{ kind: "drain" }]] : handOver(state);
    case "drained":
      return handOver(state);
    case "moved":
      return [{ ...state, mayLead: happened.mayLead }, []];
  }
}

function handOver(state: MemberState): Decision {
  const [ended, actions] = end(state, false);
  return [ended, state.role === "following" ? actions : [{ kind: "release", epoch: state.epoch }, ...actions]];
}

const end = (state: MemberState, isLost: boolean): Decision => [{ ...state, role: "ended" }, [{ kind: "end", isLost }]];

function whenDue(state: MemberState, now: number): Decision {
  if (state.isAsking || now < state.nextAt) return [state, []];
  const action: Action = state.role === "following" ? { kind: "look" } : { kind: "renew", epoch: state.epoch };
  return [{ ...state, isAsking: true }, [action]];
}

function found(
  state: MemberState,
  { found: leadership, isBehind }: Happened & { readonly kind: "leadership" },
  now: number,
  { lookMs }: Timing,
): Decision {
  const free = { isBehind, now, lookMs };
  if (leadership === undefined) return whenFree({ ...state, epoch: 0, leader: undefined }, { from: 0 }, free);
  const { epoch, leader, renewal, leaseMs } = leadership;
  // The answer to its takeover was lost. It is certain only when it is repeated: a database that fails over may forget what it shows.
  if (leader.id === state.me.id) return [state, [{ kind: "take over", from: epoch - 1 }]];
  const seen = state.seen?.renewal === renewal ? state.seen : { renewal, since: now };
  // At its own address, it is an earlier process, which has ended: a request would be forwarded to this member itself.
  const next = { ...state, epoch, leader: leader.address === state.me.address ? undefined : leader, seen };
  // No clock is asked but its own: the leader counts its lease from before this renewal. Clocks may differ a little in their speed.
  const leftMs = leaseMs === 0 ? 0 : seen.since + leaseMs + lookMs - now;
  if (leftMs > 0) return [{ ...next, isAsking: false, nextAt: now + Math.min(lookMs, leftMs) }, []];
  return whenFree(next, { from: epoch, renewal }, free);
}

/**
 * No member leads. One whose copy is behind leaves it to others: it could not answer before its copy has the whole log. With the
 * leadership it would only keep it from those that can.
 */
function whenFree(
  state: MemberState,
  from: { readonly from: number; readonly renewal?: string },
  { isBehind, now, lookMs }: { readonly isBehind: boolean; readonly now: number; readonly lookMs: number },
): Decision {
  if (state.mayLead && !isBehind) return [state, [{ kind: "take over", ...from }]];
  return [{ ...state, leader: undefined, isAsking: false, nextAt: now + lookMs }, []];
}

function tookOver(
  state: MemberState,
  epoch: number | undefined,
  sentAt: number,
  now: number,
  { leaseMs }: Timing,
): Decision {
  // Another member was faster.
  if (epoch === undefined) return [{ ...state, isAsking: false, nextAt: now }, []];
  return begin(state, epoch, sentAt + leaseMs, now);
}

const begin = (state: MemberState, epoch: number, leaseUntil: number, now: number): Decision => [
  { ...state, role: "catching up", epoch, leader: state.me, leaseUntil, isAsking: false, nextAt: now },
  [{ kind: "catch up", epoch }],
];
