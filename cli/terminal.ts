// The output of commands, and the interaction with the user for those that change something.
import { createInterface } from "node:readline/promises";
import { MachinesError } from "../provider/client/errors.ts";

/** The streams that a command writes to. */
export interface Streams {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Options of such a command. */
export interface Asking {
  readonly yes?: true;
  readonly dryRun?: true;
}

/** @throws MachinesError `invalid-input` if no one can answer a question */
export function requireInteractiveTerminal(
  { yes, dryRun }: Asking,
  wayOut = "add --yes, or --dry-run to change nothing",
): void {
  if (!yes && !dryRun && !process.stdin.isTTY)
    throw new MachinesError("invalid-input", `no one can answer here: ${wayOut}`);
}

/** Whether the user says yes to a question, or has said so before. */
export const agreed = async ({ yes }: Asking, question: string): Promise<boolean> =>
  yes === true || /^y(es)?$/i.test(await answer(`${question} [y/N] `));

/** Whether the user types a text. */
export const typed = async (question: string, text: string): Promise<boolean> => (await answer(question)) === text;

async function answer(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return (await terminal.question(question)).trim();
  } catch {
    return ""; // ^D or ^C
  } finally {
    terminal.close();
  }
}

/**
 * Runs something to its end, even after an interrupt. An update gets the same ^C, and first finishes its step.
 * @param work gets a signal that an interrupt aborts, so that work of several steps begins no other one
 */
export async function untilItEnds<T>(work: (interrupt: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const wait = (): void => interrupt.abort();
  process.on("SIGINT", wait);
  try {
    return await work(interrupt.signal);
  } finally {
    process.off("SIGINT", wait);
  }
}
