// Previews and updates of a stack: what matters of the engine's output.
import type * as automation from "@pulumi/pulumi/automation/index.js";
import { resourceName } from "../../policy/core/validate.ts";
import { untilItEnds } from "../terminal.ts";

type Event = automation.EngineEvent;

/** Options for the engine that show its progress. */
type Progress = Pick<automation.UpOptions, "color" | "onOutput" | "onError" | "onEvent">;

/** How a run of the engine ended. */
export interface Ran {
  readonly events: readonly Event[];
  /** The error that it ended with. */
  readonly error?: unknown;
}

/**
 * Runs the engine to its end.
 * @param print gets all of its output; nothing does when left out
 * @param onEvent gets every event as it comes
 */
export async function runEngine(
  work: (progress: Progress) => Promise<unknown>,
  print: ((text: string) => void) | undefined,
  onEvent: (event: Event) => void = () => undefined,
): Promise<Ran> {
  const events: Event[] = [];
  const note = (event: Event): void => {
    events.push(event);
    onEvent(event);
  };
  try {
    await untilItEnds(() =>
      work({ color: "never", onEvent: note, ...(print === undefined ? {} : { onOutput: print, onError: print }) }),
    );
    return { events };
  } catch (error) {
    return { events, error };
  }
}

/** A text of the engine without its marks for colours. */
const plain = (text: string): string => text.replaceAll(/<\{%.*?%\}>/g, "").trim();

const nameIn = (urn: string): string => urn.slice(urn.lastIndexOf("::") + 2);

/** The resource of a URN, as people call it: `Machine web`. */
function titleOf(urn: string): string {
  const types = urn.split("::")[2] ?? "";
  const type = types.slice(types.lastIndexOf("$") + 1);
  return `${resourceName(type) ?? type} ${nameIn(urn)}`;
}

/** Removes "1 error occurred:", which the engine puts before the error of a half-made object. */
export const withoutCount = (text: string): string => text.replaceAll(/\d+ errors? occurred:\s*\*\s*/g, "");

/** The errors of a run, each with its resource. */
export const errorsIn = (events: readonly Event[]): string[] => [
  ...new Set(
    events.flatMap(({ diagnosticEvent: found }) => {
      if (found?.severity !== "error") return [];
      const text = withoutCount(plain(found.message).replace(/^error: /, ""));
      // The engine repeats at its end that it failed.
      if (text === "" || /^(preview|update) failed$/.test(text)) return [];
      const { urn = "" } = found;
      return [urn === "" || urn.includes("::pulumi:pulumi:Stack::") ? text : `${titleOf(urn)}: ${text}`];
    }),
  ),
];

/** A violation of a policy. */
export interface Violation {
  readonly policy: string;
  readonly isMandatory: boolean;
  readonly text: string;
}

/** The engine puts the description of the policy before the message. */
const messageIn = (text: string): string => plain(text.slice(text.indexOf("\n") + 1));

/** The violations of policies in a run. */
export const violationsIn = (events: readonly Event[]): Violation[] =>
  events.flatMap(({ policyEvent: found }) =>
    found === undefined
      ? []
      : [
          {
            policy: found.policyName,
            isMandatory: found.enforcementLevel === "mandatory",
            text: `${found.policyName}${found.resourceUrn ? `, ${titleOf(found.resourceUrn)}` : ""}: ${messageIn(found.message)}`,
          },
        ],
  );

const pastOf: Readonly<Record<string, string>> = {
  create: "created",
  update: "updated",
  delete: "deleted",
  "create-replacement": "created",
  "delete-replaced": "deleted",
  import: "imported",
  refresh: "read",
};

/** The line for a step that is done; undefined for an event that is none, and for steps that change nothing. */
export function stepText({ resOutputsEvent, resOpFailedEvent }: Event): string | undefined {
  const { op = "same", urn = "", type = "pulumi:" } = (resOutputsEvent ?? resOpFailedEvent)?.metadata ?? {};
  const word = resOpFailedEvent ? "failed" : pastOf[op];
  if (type.startsWith("pulumi:") || word === undefined) return undefined;
  return `  ${word.padEnd(9)} ${titleOf(urn)}`;
}

/** How many resources of the program a run changed, and left: `2 updated, 5 unchanged`. */
export function countsText(events: readonly Event[]): string {
  const counts = new Map<string, number>();
  for (const { resOutputsEvent } of events) {
    const { op = "same", type = "pulumi:" } = resOutputsEvent?.metadata ?? {};
    const word = op === "same" ? "unchanged" : pastOf[op];
    if (!type.startsWith("pulumi:") && word !== undefined) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts].map(([word, count]) => `${count} ${word}`).join(", ") || "nothing to do";
}
