// What the commands that change something have to do with the user in front of them.
import { createInterface } from "node:readline/promises";
import { MachinesError } from "../provider/client/errors.ts";

/** What such a command is told. */
export interface Asking {
  readonly yes?: true;
  readonly dryRun?: true;
}

/** @throws MachinesError `invalid-input` where a question would reach nobody */
export function requireSomebody({ yes, dryRun }: Asking): void {
  if (!yes && !dryRun && !process.stdin.isTTY)
    throw new MachinesError("invalid-input", "there is nobody to ask: say --yes, or --dry-run to only look");
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

/** Runs the CLI to its end also when this is interrupted: ^C reaches both, and the CLI first finishes what it has begun. */
export async function untilItEnds<T>(work: () => Promise<T>): Promise<T> {
  const wait = (): void => undefined;
  process.on("SIGINT", wait);
  try {
    return await work();
  } finally {
    process.off("SIGINT", wait);
  }
}
