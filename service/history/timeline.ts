// The course of a rollout for each of its Machines, from the events.
import type { EventEntry, Member } from "./entry.ts";
import { hasFailed, lastWords, wayOf } from "./exits.ts";

/** What a Machine is doing: the words of the timeline. */
export type Doing =
  | "waiting"
  | "updating"
  | "starting"
  | "checks"
  | "healthy"
  | "failed"
  | "stopped"
  | "destroying"
  | "destroyed"
  | "rolling back"
  | "rolled back";

/** A part of a bar. */
export interface Segment {
  readonly doing: Doing;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
}

/** The bar of a Machine. */
export interface Bar extends Member {
  readonly segments: readonly Segment[];
  /** What it does at the end. */
  readonly now: Doing;
  /** Why it failed last, as a sentence; null if it did not. */
  readonly reason: string | null;
}

/** A rollout, as its bars need it. */
export interface Course {
  readonly began: number;
  /** The end of the bars: of the rollout, or now. */
  readonly until: number;
  /** When it began to go back; null if it did not. */
  readonly backFrom: number | null;
  readonly members: readonly Member[];
  /** Oldest first. */
  readonly events: readonly EventEntry[];
}

/** What a Machine does after an event. */
function doingAfter({ status, type, checks, exit }: EventEntry): Doing {
  switch (status) {
    case "created":
    case "replacing":
    case "restarting":
      return "updating";
    case "starting":
      return "starting";
    case "started":
      return checks === "warning" ? "checks" : checks === "critical" ? "failed" : "healthy";
    case "failed":
      return "failed";
    case "destroying":
      return "destroying";
    case "destroyed":
      return "destroyed";
    default:
      return type === "exit" && exit && hasFailed(exit) ? "failed" : "stopped";
  }
}

const isOnItsWay = (doing: Doing): boolean => doing === "updating" || doing === "starting" || doing === "checks";

/** Why a Machine is not as it should be after an event; null if it is. */
export function problemIn(event: EventEntry): string | null {
  const { exit, checks, status } = event;
  if (exit && hasFailed(exit)) return `${wayOf(exit)}${lastWords(exit)}`;
  return status === "started" && checks === "critical" ? "a check is critical" : null;
}

/** The bars of a rollout, in the order in which their Machines were met. */
export function barsOf({ began, until, backFrom, members, events }: Course): readonly Bar[] {
  const bars = new Map<string, { member: Member; segments: Segment[]; reason: string | null }>();
  const barOf = (member: Member, first?: Doing) => {
    let bar = bars.get(member.machine);
    if (!bar) {
      bar = { member, segments: first === undefined ? [] : [{ doing: first, from: began, to: until }], reason: null };
      bars.set(member.machine, bar);
    }
    return bar;
  };
  for (const member of members) barOf(member, "waiting");
  for (const event of events) {
    const { machine, name, region, at } = event;
    const bar = barOf({ machine, name, region });
    const last = bar.segments.at(-1);
    // A Machine that waits is only as it was: what a check says about it is not part of the rollout.
    if (last?.doing === "waiting" && event.type === "checks" && event.checks === "passing") continue;
    const doing = inDirection(doingAfter(event), at, backFrom);
    bar.reason = problemIn(event) ?? (doing === "healthy" || doing === "rolled back" ? null : bar.reason);
    if (last?.doing === doing) continue;
    const from = Math.min(Math.max(at, began), until);
    if (last) bar.segments[bar.segments.length - 1] = { ...last, to: from };
    bar.segments.push({ doing, from, to: until });
  }
  return [...bars.values()].map(({ member, segments, reason }) => ({
    ...member,
    segments: segments.filter(({ from, to }, i) => to > from || i === segments.length - 1),
    now: segments.at(-1)?.doing ?? "waiting",
    reason,
  }));
}

/** After a rollout began to go back, the same steps have other names. */
function inDirection(doing: Doing, at: number, backFrom: number | null): Doing {
  if (backFrom === null || at < backFrom) return doing;
  return isOnItsWay(doing) ? "rolling back" : doing === "healthy" ? "rolled back" : doing;
}
