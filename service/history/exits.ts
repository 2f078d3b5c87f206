// How the program of a Machine ended: read from the event of the interface, and in words. Pure.
import { signalNumbers } from "../../api/signals.ts";

/** How the program of a Machine ended, as the history has it. */
export interface Exit {
  /** Null if it is not known. */
  readonly code: number | null;
  /** Number of the signal; 0 for none. */
  readonly signal: number;
  readonly oom: boolean;
  /** Whether it was asked to end. */
  readonly requested: boolean;
  readonly restarting: boolean;
  /** Why it could not run; empty if it ran. */
  readonly error: string;
  /** What it wrote last, without secrets. */
  readonly lines: readonly string[];
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/** The exit that the `request` of an event reports; undefined for other events. */
export function exitIn(request: object | null | undefined): Exit | undefined {
  const { exit_event: exit } = (request ?? {}) as { readonly exit_event?: Readonly<Record<string, unknown>> };
  if (!exit) return undefined;
  const { exit_code, guest_signal, oom_killed, requested_stop, restarting, error, last_lines } = exit;
  return {
    code: typeof exit_code === "number" ? exit_code : null,
    signal: typeof guest_signal === "number" ? Math.max(0, guest_signal) : 0,
    oom: oom_killed === true,
    requested: requested_stop === true,
    restarting: restarting === true,
    error: typeof error === "string" ? error : "",
    lines: isTexts(last_lines) ? last_lines : [],
  };
}

/** Whether a program ended by itself with a failure. */
export const hasFailed = ({ requested, code, oom, error }: Exit): boolean =>
  !requested && (code !== 0 || oom || error !== "");

const signalName = (wanted: number): string =>
  Object.entries(signalNumbers).find(([, number]) => number === wanted)?.[0] ?? `signal ${wanted}`;

/** How a program ended, without a full stop: `Exited with code 3`. */
export function wayOf({ code, signal, oom, error }: Exit): string {
  if (oom) return "Killed: out of memory";
  if (error !== "") return `Ended: ${withoutStop(error)}`;
  if (signal > 0) return `Ended by ${signalName(signal)}`;
  return code === null ? "Exited" : `Exited with code ${code}`;
}

/** A sentence of someone else, to be continued. */
export const withoutStop = (text: string): string => text.trim().replace(/\.+$/, "");

/** The sentence of an error before a program ran. */
export function unpreparedText(error: string): string {
  const isOfImage = /\b(?:image|registry|manifest|pull)/i.test(error);
  const reason = withoutStop(error).replace(/^the image cannot be fetched: /, "");
  return `${isOfImage ? "Its image could not be fetched" : "It could not be prepared"}: ${reason}`;
}

const longestWords = 200;

/** The last line that says something, to continue a sentence: `; last words: cannot read config`. Empty without one. */
export function lastWords({ lines }: Pick<Exit, "lines">): string {
  const last = withoutStop(lines.findLast((line) => line.trim() !== "") ?? "");
  if (last === "") return "";
  const characters = Array.from(last);
  const shown = characters.length > longestWords ? `${characters.slice(0, longestWords - 1).join("")}…` : last;
  return `; last words: ${shown}`;
}

/** A sentence that continues another. */
export const continued = (text: string): string => `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
