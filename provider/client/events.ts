// What a Machine's events say about its program (docs/interface.md#events): whether it ended, how, and what it wrote last.
import { quotable } from "../../api/printable.ts";
import { MachinesError } from "./errors.ts";
import type { Machine, MachineKey } from "./machine.ts";

type Event = NonNullable<Machine["events"]>[number];

/** How the program of a Machine ended. */
export interface Exit {
  readonly exitCode: number | undefined;
  /** Whether someone requested it: by a stop, a restart, an update or a deletion. */
  readonly requested: boolean;
  /** The last lines that the program wrote. */
  readonly lastLines: readonly string[];
  /** In words, as the end of a sentence. */
  readonly text: string;
}

/** The newest exit among the Machine's events without a later start. */
export function latestExit({ events = [] }: Machine): Exit | undefined {
  for (const event of events) {
    if (event.type === "exit") return exitOf(event);
    if (event.type === "start" && event.status === "started") return undefined;
    if (event.type === "launch" || event.type === "update") return undefined;
  }
  return undefined;
}

/**
 * The newest exit without a request since the Machine was last started on request, also if the restart policy has
 * started its program again. Events up to `lastEventId` are left out.
 */
export function exitSince(machine: Machine, lastEventId?: string): Exit | undefined {
  for (const event of eventsAfter(machine, lastEventId)) {
    if (isStartOnRequest(event)) return undefined;
    const exit = event.type === "exit" ? exitOf(event) : undefined;
    if (exit?.requested === false) return exit;
  }
  return undefined;
}

/** The events of a Machine after one of them, newest first; all of them without one. */
export const eventsAfter = ({ events = [] }: Machine, eventId: string | undefined): readonly Event[] =>
  events.filter(({ id = "" }) => eventId === undefined || id > eventId);

const isStartOnRequest = ({ type = "", source }: Event): boolean =>
  ["launch", "update"].includes(type) || (["start", "restart"].includes(type) && source === "user");

/** Whether the program has ended with an error, without a request. */
export function hasCrashed(machine: Machine): boolean {
  const exit = latestExit(machine);
  return exit !== undefined && !exit.requested && exit.exitCode !== 0;
}

function exitOf({ request }: Event): Exit {
  const monitored = request?.["MonitorEvent"] as Record<string, unknown> | undefined;
  const details = (request?.["exit_event"] ?? monitored?.["exit_event"] ?? {}) as Record<string, unknown>;
  const code = typeof details["exit_code"] === "number" ? details["exit_code"] : undefined;
  const facts = [
    code === undefined ? undefined : `code ${code}`,
    details["oom_killed"] === true ? "out of memory" : undefined,
    typeof details["signal"] === "number" && details["signal"] > 0 ? `signal ${details["signal"]}` : undefined,
    typeof details["error"] === "string" && details["error"] !== "" ? quotable(details["error"]) : undefined,
  ].filter((fact) => fact !== undefined);
  const count = request?.["restart_count"] ?? monitored?.["restart_count"];
  const lines: unknown = details["last_lines"];
  return {
    exitCode: code,
    requested: details["requested_stop"] === true,
    lastLines: Array.isArray(lines) ? lines.filter((line) => typeof line === "string").slice(-5) : [],
    text: `its main process exited${facts.length > 0 ? ` (${facts.join(", ")})` : ""}${typeof count === "number" ? restartsText(count) : ""}`,
  };
}

const restartsText = (restarts: number): string =>
  restarts === 0 ? "" : ` and was restarted ${restarts === 1 ? "once" : `${restarts} times`}`;

/** The last event of a Machine, as text. */
export function lastEvent(machine: Machine): string {
  const exit = latestExit(machine);
  if (exit) return exit.text;
  const event = machine.events?.[0];
  if (!event) return "it shows no events";
  return `its last event is ${quotable(event.type ?? "unknown", 100)} (${quotable(event.status ?? "no status", 100)})`;
}

/** A Machine does not run, or not as wanted. */
class MachineFailedError extends MachinesError {
  constructor(message: string, exit: Exit | undefined) {
    super("machine-failed", message);
    this.lastLines = exit?.lastLines ?? [];
  }
}

/** The error for a Machine that did not reach a state, with the reason. `live` is undefined for one that is gone. */
export function notReached(
  { appName, machineId }: MachineKey,
  live: Machine | undefined,
  target: string,
  lastEventId?: string,
): MachinesError {
  const name = `Machine ${appName}/${machineId}`;
  const advice = "Correct the configuration and run up again.";
  if (live === undefined)
    return new MachineFailedError(`${name} is destroyed and not ${target}: it is gone. ${advice}`, undefined);
  const exit = latestExit(live) ?? exitSince(live, lastEventId);
  const why = exit?.text ?? lastEvent(live);
  const is = live.state === target ? `did not keep running` : `is ${live.state} and not ${target}`;
  return new MachineFailedError(`${name} ${is}: ${why}. ${advice}`, exit);
}
