// The events of a Machine as sentences. Pure, so that every kind of event can be tested alone.
import { signalNumbers } from "../../api/signals.ts";
import type { EventRow } from "../store/rows.ts";

/** An event as the store has it, with what it needs for its sentence. */
export type MachineEvent = Pick<EventRow, "id" | "type" | "status" | "source" | "timestamp" | "version"> & {
  readonly request: Readonly<Record<string, unknown>> | null;
};

/** How the main process of a Machine ended. */
export interface Exit {
  readonly code: number | undefined;
  /** Number of the signal that ended it; undefined without one. */
  readonly signal: number | undefined;
  readonly isOutOfMemory: boolean;
  readonly isRequested: boolean;
  readonly isRestarting: boolean;
  readonly error: string;
  /** Restarts by the restart policy before it. */
  readonly restarts: number;
  readonly lines: readonly string[];
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/** The exit that an event reports; undefined for other events. */
export function exitOf({ request }: Pick<MachineEvent, "request">): Exit | undefined {
  const details = request?.["exit_event"] as Readonly<Record<string, unknown>> | undefined;
  if (details === undefined) return undefined;
  const number = (name: string): number | undefined => {
    const value = details[name];
    return typeof value === "number" ? value : undefined;
  };
  const [signal = -1, restarts] = [number("guest_signal"), request?.["restart_count"]];
  return {
    code: number("exit_code"),
    signal: signal > 0 ? signal : undefined,
    isOutOfMemory: details["oom_killed"] === true,
    isRequested: details["requested_stop"] === true,
    isRestarting: details["restarting"] === true,
    error: typeof details["error"] === "string" ? details["error"] : "",
    restarts: typeof restarts === "number" ? restarts : 0,
    lines: isTexts(details["last_lines"]) ? details["last_lines"] : [],
  };
}

/** Whether a process ended by itself with a failure. */
export const hasFailed = ({ isRequested, code, isOutOfMemory, error }: Exit): boolean =>
  !isRequested && (code !== 0 || isOutOfMemory || error !== "");

const signalName = (wanted: number): string =>
  Object.entries(signalNumbers).find(([, number]) => number === wanted)?.[0] ?? `signal ${wanted}`;

/** How a process ended, without a full stop: `Exited with code 3`. */
export function wayOf({ code, signal, isOutOfMemory, error }: Exit): string {
  if (isOutOfMemory) return "Killed: out of memory";
  if (error !== "") return `Ended: ${withoutStop(error)}`;
  if (signal !== undefined) return `Ended by ${signalName(signal)}`;
  return code === undefined ? "Exited" : `Exited with code ${code}`;
}

/** A sentence of someone else, to be continued. */
export const withoutStop = (text: string): string => text.trim().replace(/\.+$/, "");

/** The sentence of an error before a process ran. */
export function unpreparedText(error: string): string {
  const isOfImage = /\b(?:image|registry|manifest|pull)/i.test(error);
  const reason = withoutStop(error).replace(/^the image cannot be fetched: /, "");
  return `${isOfImage ? "Its image could not be fetched" : "It could not be prepared"}: ${reason}`;
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

function exitText(event: MachineEvent, exit: Exit, older: readonly MachineEvent[]): string {
  if (exit.isRequested) return event.status === "starting" ? "Stopped for a restart" : "Stopped on request";
  if (isUnprepared(exit, older)) return unpreparedText(exit.error);
  const next = exit.isRestarting
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
