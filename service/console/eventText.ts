// The events of a Machine as sentences. Pure, so that every kind of event can be tested alone.
import { exitIn, unpreparedText, wayOf, type Exit } from "../history/exits.ts";
import type { EventRow } from "../store/rows.ts";

/** An event as the store has it, with what it needs for its sentence. */
export type MachineEvent = Pick<EventRow, "id" | "type" | "status" | "source" | "timestamp" | "version"> & {
  readonly request: Readonly<Record<string, unknown>> | null;
};

/** How the main process of a Machine ended, with the restarts by the restart policy before it. */
export interface ReportedExit extends Exit {
  readonly restarts: number;
}

/** The exit that an event reports; undefined for other events. */
export function exitOf({ request }: Pick<MachineEvent, "request">): ReportedExit | undefined {
  const [exit, restarts] = [exitIn(request), request?.["restart_count"]];
  return exit && { ...exit, restarts: typeof restarts === "number" ? restarts : 0 };
}

/** Whether an exit was reported before any process ran: nothing was started between the launch or update and it. */
export function isUnprepared(exit: Exit, older: readonly MachineEvent[]): boolean {
  const before = older.find(({ type }) => type !== "cordon" && type !== "uncordon");
  return exit.error !== "" && (before?.status === "created" || before?.status === "replacing");
}

const seconds = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const parts = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
  ] as const;
  const [size, unit] = parts.find(([size]) => ms >= size) ?? parts[3];
  return `${Math.floor(ms / size)} ${unit}`;
};

/** ` after 12 s`, since the process was started; empty if it was not. */
function lifetime(at: number, older: readonly MachineEvent[]): string {
  const before = older.find(({ status }) => status === "started" || status === "starting");
  return before?.status === "started" ? ` after ${seconds(at - startOf(older, before))}` : "";
}

/** Events such as a cordon have the state of their moment: the process was started at the oldest one of that row. */
function startOf(older: readonly MachineEvent[], newest: MachineEvent): number {
  let at = newest.timestamp;
  for (const { status, timestamp } of older.slice(older.indexOf(newest))) {
    if (status !== "started") break;
    at = timestamp;
  }
  return at;
}

function exitText(event: MachineEvent, exit: ReportedExit, older: readonly MachineEvent[]): string {
  if (exit.requested) return event.status === "starting" ? "Stopped for a restart" : "Stopped on request";
  if (isUnprepared(exit, older)) return unpreparedText(exit.error);
  const next = exit.restarting
    ? `, restarting (attempt ${exit.restarts + 1})`
    : event.status === "failed"
      ? exit.restarts > 0
        ? `, given up after ${exit.restarts === 1 ? "one restart" : `${exit.restarts} restarts`}`
        : ", not restarted"
      : "";
  return `${wayOf(exit)}${lifetime(event.timestamp, older)}${next}`;
}

const requested: Readonly<Record<string, string>> = {
  launch: "Created",
  start: "Start requested",
  stop: "Stop requested",
  restart: "Restart requested",
  suspend: "Suspend requested",
  cordon: "Taken out of traffic",
  uncordon: "Put back into traffic",
  destroy: "Destroy requested",
};

/** What the service does by itself, by type and state. */
const done: Readonly<Record<string, string>> = {
  "launch stopped": "Prepared, not started",
  "launch starting": "Prepared, starting",
  "update stopped": "The new version is prepared, not started",
  "update starting": "The new version is prepared, starting",
  "start starting": "Starting",
  "start started": "Started",
  "restart starting": "Restarting",
  "stop stopped": "Stopped",
  "suspend suspended": "Suspended",
  "destroy destroyed": "Destroyed",
};

/** An event as a sentence without a full stop. `older` are those before it, newest first. */
export function sentenceOf(event: MachineEvent, older: readonly MachineEvent[]): string {
  const { type, status, source, version, request } = event;
  const exit = exitOf(event);
  if (exit) return exitText(event, exit, older);
  if (type === "update" && source === "user") return `Updated to version ${version}`;
  const attempt = request?.["restart_count"];
  if (type === "restart" && typeof attempt === "number") return `Restarting (attempt ${attempt})`;
  const known = source === "user" ? requested[type] : done[`${type} ${status}`];
  return known ?? `${type.charAt(0).toUpperCase()}${type.slice(1).replaceAll("_", " ")}: ${status}`;
}
