// How commands show what a check has found.
import type { Finding } from "../setup/finding.ts";
import { print, printLine } from "./print.ts";

const marks = {
  ok: ["ok", "green"],
  warning: ["warning", "yellow"],
  problem: ["problem", "red"],
} as const;

/** Prints each finding, and below it what to do. */
export function printFindings(findings: readonly Finding[]): void {
  for (const { about, state, text, advice } of findings) {
    printLine(marks[state], `${about}: ${text}`);
    if (advice !== undefined) print(`   → ${advice}`);
  }
}

/** Lets the process end with status 1 if there is a problem. */
export function exitWith(findings: readonly Finding[]): void {
  if (findings.some(({ state }) => state === "problem")) process.exitCode = 1;
}
