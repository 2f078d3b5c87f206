// Shared by the benches of the service: a data folder that is removed at their end, and the table of their figures.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stop } from "./command.ts";

/** Folder of the bench. */
export const folder = mkdtempSync(join(tmpdir(), "machines-bench-"));

/** Data folder of the service in it. */
export const data = join(folder, "data");

/** Prints progress to standard error. */
export const say = (text: string): void => void process.stderr.write(`${text}\n`);

const figures: (readonly string[])[] = [];

/** Adds a line to the table, and prints it at once. */
export function report(...figure: readonly [what: string, figure: string, ...more: string[]]): void {
  figures.push(figure);
  say(`${figure[0]}: ${figure[1]}`);
}

/** The value in the middle. */
export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** The duration of some work. */
export async function milliseconds(act: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await act();
  return performance.now() - before;
}

/** Runs a bench, prints its table and stops its service. */
export async function run(heads: readonly string[], bench: () => Promise<void>): Promise<void> {
  try {
    await bench();
    for (const line of [heads, heads.map(() => "---"), ...figures]) console.log(`| ${line.join(" | ")} |`);
  } catch (error) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exitCode = 1;
  } finally {
    await stop(data);
    rmSync(folder, { recursive: true, force: true });
  }
}
