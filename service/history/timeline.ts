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
  /** Whether it has ended. */
  readonly isOver: boolean;
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

/** The reason of a Machine with a critical check. */
const criticalCheck = "a check is critical";

/** Whether a Machine that did this is coming up: until its checks have passed once, a critical one only says that it is not ready. */
export const isComingUp = (doing: Doing | undefined): doing is "updating" | "starting" | "checks" | "rolling back" =>
  doing !== undefined && (isOnItsWay(doing) || doing === "rolling back");

const isOnItsWay = (doing: Doing): boolean => doing === "updating" || doing === "starting" || doing === "checks";

/** Whether an event says that a Machine which runs has a critical check. */
export const isCritical = (event: EventEntry): boolean => problemIn(event) === criticalCheck;

/**
 * Why a Machine is not as it should be after an event, before which `doing` and `before` were known; null if it is. A check that is
 * critical after the program has failed says less than how that ended.
 */
export function reasonAfter(event: EventEntry, doing: Doing, before: string | null): string | null {
  if (before !== null && isCritical(event)) return before;
  return problemIn(event) ?? (doing === "healthy" || doing === "rolled back" ? null : before);
}

/** Why a Machine is not as it should be after an event; null if that does not say. */
function problemIn(event: EventEntry): string | null {
  const { exit, checks, status } = event;
  if (exit && hasFailed(exit)) return `${wayOf(exit)}${lastWords(exit)}`;
  return status === "started" && checks === "critical" ? criticalCheck : null;
}

/**
 * Whether an event says nothing new about a Machine that waits: its checks pass as before, or it only gets no traffic any more, because
 * the new Machines of its fleet do.
 */
export const isAsBefore = ({ type, checks, status }: EventEntry): boolean =>
  type === "checks" ? checks === "passing" : type === "cordon" && status === "started" && checks !== "critical";

/** The bars of a rollout, in the order in which their Machines were met. */
export function barsOf({ began, until, isOver, backFrom, members, events }: Course): readonly Bar[] {
  const bars = new Map<string, { member: Member; segments: Drawn[]; reason: string | null }>();
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
    // A Machine that waits is only as it was, which is not part of the rollout.
    if (last?.doing === "waiting" && isAsBefore(event)) continue;
    const doing = inDirection(doingAfter(event), at, backFrom);
    bar.reason = reasonAfter(event, doing, bar.reason);
    if (last?.doing === doing) continue;
    const from = Math.min(Math.max(at, began), until);
    if (last) bar.segments[bar.segments.length - 1] = { ...last, to: from };
    const meanwhile = event.status === "started" && isComingUp(last?.doing) ? meanwhileOf(last.doing) : undefined;
    bar.segments.push({ doing, from, to: until, ...(doing === "failed" && meanwhile ? { meanwhile } : {}) });
  }
  return [...bars.values()].map(({ member, segments: drawn, reason }) => {
    const segments = settled(drawn, isOver);
    return { ...member, segments, now: segments.at(-1)?.doing ?? "waiting", reason };
  });
}

/** A part of a bar while it is drawn. */
interface Drawn extends Segment {
  /** What it is instead, unless the rollout ends with it. */
  readonly meanwhile?: Doing;
}

const meanwhileOf = (before: Doing): Doing => (before === "rolling back" ? before : "checks");

/** The parts of a bar: those with a duration, and the last one. Neighbours that are the same are one. */
function settled(drawn: readonly Drawn[], isOver: boolean): readonly Segment[] {
  const segments: Segment[] = [];
  for (const [i, { meanwhile, doing: drawnAs, from, to }] of drawn.entries()) {
    const isLast = i === drawn.length - 1;
    if (to <= from && !isLast) continue;
    const doing = meanwhile === undefined || (isLast && isOver) ? drawnAs : meanwhile;
    const before = segments.at(-1);
    if (before?.doing === doing) segments[segments.length - 1] = { ...before, to };
    else segments.push({ doing, from, to });
  }
  return segments;
}

/** After a rollout began to go back, the same steps have other names. */
function inDirection(doing: Doing, at: number, backFrom: number | null): Doing {
  if (backFrom === null || at < backFrom) return doing;
  return isOnItsWay(doing) ? "rolling back" : doing === "healthy" ? "rolled back" : doing;
}
