// Why a Machine does not do what it should, and which version did. Pure: from its events, its checks and its versions.
import type { MachineState } from "../states/machineStates.ts";
import { hasFailed, lastWords, unpreparedText, wayOf, withoutStop } from "../history/exits.ts";
import { exitOf, isUnprepared, type MachineEvent, type ReportedExit } from "./eventText.ts";
import type { Failure, Words } from "./types.ts";

/**
 * ASSUMED: a Machine that runs again counts as one that crashes again and again while its last crash is no longer ago than the restart
 * policy counts its restarts, which is five minutes.
 */
export const loopingMs = 300_000;

/** A check of a Machine with its result. */
export interface CheckedCheck {
  readonly name: string;
  readonly status: string;
  readonly output: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A Machine with what tells whether it has failed. */
export interface Examined {
  readonly state: MachineState;
  /** The kept events, newest first. */
  readonly events: readonly MachineEvent[];
  readonly checks: readonly CheckedCheck[];
  readonly now: number;
}

const inWords = ["three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"] as const;

/** `twice`, `eleven times`, `13 times`. */
export const times = (n: number): string =>
  n === 1 ? "once" : n === 2 ? "twice" : `${inWords[n - 3] ?? n.toLocaleString("en")} times`;

/** Whether something else than the restart policy has started the Machine with this event. */
const isFreshStart = ({ type, source, status }: MachineEvent): boolean =>
  type === "launch" ||
  type === "update" ||
  (type === "restart" && source === "user") ||
  (type === "start" && status === "starting");

interface Crash {
  readonly event: MachineEvent;
  readonly exit: ReportedExit;
  /** Events before it, newest first. */
  readonly older: readonly MachineEvent[];
}

/** The exits with a failure since the Machine was last started, newest first; none if its newest exit was requested or went well. */
function crashesOf(events: readonly MachineEvent[]): { readonly crashes: readonly Crash[]; readonly isWhole: boolean } {
  const crashes: Crash[] = [];
  for (const [i, event] of events.entries()) {
    const exit = exitOf(event);
    if (exit && hasFailed(exit)) crashes.push({ event, exit, older: events.slice(i + 1) });
    else if (exit && crashes.length === 0) return { crashes, isWhole: true };
    if (isFreshStart(event)) return { crashes, isWhole: true };
  }
  return { crashes, isWhole: false };
}

/** The sentence of the crashes since the Machine was last started. */
function causeOf(crashes: readonly Crash[], isWhole: boolean): Words {
  const [latest, first] = [crashes[0], crashes.at(-1)];
  if (!latest || !first) return ["It has failed, and no event says why."];
  const { exit, event, older } = latest;
  if (isUnprepared(exit, older)) return [`${unpreparedText(exit.error)}.`];
  const way = wayOf(exit);
  const isSame = crashes.every((one) => wayOf(one.exit) === way);
  const total = Math.max(crashes.length, exit.restarts + 1);
  const end = `${lastWords(exit)}.`;
  if (total === 1) return [`${way} at `, { at: event.timestamp }, end];
  const count = isSame ? `, ${times(total)}` : `; it has ended ${times(total)}`;
  // The oldest events are not kept.
  const since = isWhole && total === crashes.length ? " since" : ", the first time before";
  return [`${way}${count}${since} `, { at: first.event.timestamp }, end];
}

function criticalCause(checks: readonly CheckedCheck[]): Words | undefined {
  const [first, ...others] = checks.filter(({ status }) => status === "critical");
  if (!first) return undefined;
  const output = withoutStop(first.output);
  const more =
    others.length === 0
      ? ""
      : others.length === 1
        ? " Another check is also critical."
        : ` ${others.length} others are also critical.`;
  return [
    `Its check ${first.name} has been critical since `,
    { at: first.at },
    `${output === "" ? "" : `: ${output}`}.${more}`,
  ];
}

/** Why a Machine does not do what it should; undefined if it does, or if someone has stopped it. */
export function failureOf({ state, events, checks, now }: Examined): Failure | undefined {
  const { crashes, isWhole } = crashesOf(events);
  const [latest] = crashes;
  const total = latest === undefined ? 0 : Math.max(crashes.length, latest.exit.restarts + 1);
  const found = (kind: Failure["kind"]): Failure => ({
    kind,
    cause: causeOf(crashes, isWhole),
    lines: latest?.exit.lines ?? [],
  });
  if (state === "failed") return found("failed");
  const isTried = state === "stopped" || state === "starting" || state === "started";
  if (
    latest?.exit.restarting &&
    isTried &&
    total > 1 &&
    (state !== "started" || now - latest.event.timestamp < loopingMs)
  )
    return found("looping");
  if (state === "stopped" && latest) return found("ended");
  const critical = state === "started" ? criticalCause(checks) : undefined;
  return critical && { kind: "critical", cause: critical, lines: [] };
}

/**
 * The newest version before the current one that ran well: it was started, and its process did not end by itself with a failure. If no
 * event tells that of any, the newest one of which no event is kept, with `ranWell` false.
 */
export function versionBefore<V extends { readonly version: string }>(
  versions: readonly V[],
  current: string,
  events: readonly MachineEvent[],
): (V & { readonly ranWell: boolean }) | undefined {
  const earlier = versions.filter(({ version }) => version < current);
  const of = (version: string) => events.filter((event) => event.version === version);
  const ranWell = ({ version }: V): boolean => {
    const own = of(version);
    return own.some(({ status }) => status === "started") && !own.some((event) => isCrash(event));
  };
  const good = earlier.find(ranWell);
  if (good) return { ...good, ranWell: true };
  const unknown = earlier.find(({ version }) => of(version).length === 0);
  return unknown && { ...unknown, ranWell: false };
}

function isCrash(event: MachineEvent): boolean {
  const exit = exitOf(event);
  return exit !== undefined && hasFailed(exit);
}
