// Interaction with the user for commands that change something.
import { createInterface } from "node:readline/promises";
import { MachinesError } from "../provider/client/errors.ts";

/** Options of such a command. */
export interface Asking {
  readonly yes?: true;
  readonly dryRun?: true;
}

/** @throws MachinesError `invalid-input` if no one can answer a question */
export function requireSomebody({ yes, dryRun }: Asking): void {
  if (!yes && !dryRun && !process.stdin.isTTY)
    throw new MachinesError("invalid-input", "no one can answer here: add --yes, or --dry-run to change nothing");
}

/** Whether the user says yes to a question, or has said so before. */
export async function agreed({ yes }: Asking, question: string): Promise<boolean> {
  if (yes) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } catch {
    return false; // ^D or ^C
  } finally {
    terminal.close();
  }
}

/** Runs the CLI to its end also after an interrupt: ^C reaches both processes, and the CLI first finishes its step. */
export async function untilItEnds<T>(work: () => Promise<T>): Promise<T> {
  const wait = (): void => undefined;
  process.on("SIGINT", wait);
  try {
    return await work();
  } finally {
    process.off("SIGINT", wait);
  }
}
