// The comments of a program.
import { oneLine } from "../../api/printable.ts";
import { declarationsIn, type Program } from "./program.ts";

/** How to manage what the service does not show; nothing if there is no such thing. */
export function adviceOf({ sections }: Program): readonly string[] {
  const all = sections.flatMap(({ blocks }) => blocks.flatMap(declarationsIn));
  if (all.every(({ ignoreChanges }) => ignoreChanges.length === 0)) return [];
  return [
    "Secrets were not written here. Where a resource ignores changes of one, it stays as it",
    "is. To manage it, set its value in the configuration, and remove the option.",
  ];
}

/** What is not in the program. */
export const remarksOf = ({ remarks }: Program): readonly string[] =>
  remarks.length === 0
    ? []
    : ["Not in this program:", ...remarks.map((one) => `- ${one.replaceAll(/[ \t\r\n]+/g, " ")}`)];

/** Lines as a comment, which no text in it ends (F57); undefined if there are none. */
export const commented = (lines: readonly string[], sign: string): string | undefined =>
  lines.length === 0 ? undefined : lines.map((line) => titled(line, sign)).join("\n");

/** A comment of one line. */
export const titled = (line: string, sign: string): string => `${sign} ${oneLine(line)}`;
