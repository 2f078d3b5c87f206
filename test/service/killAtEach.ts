// Kills a program at its statements, in one process for each, and checks the folder it leaves.
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";

/** The timeout in milliseconds of a test that kills; all of the statements take an hour. */
export const killTimeout = isThorough ? 24 * wholeTest : wholeTest;

/** A program that counts its statements (killedSelf.ts), with its preparation and its check. */
export interface Killed {
  /** File in test/service. The last line it prints begins with the number of its statements. */
  readonly program: string;
  /** The number of statements at which `npm test` kills it; `npm run test:all` uses all. */
  readonly kills: number;
  /** Creates the initial data folder; there is none if omitted. */
  readonly prepare?: (data: string) => void;
  /** Checks the data folder after a run; `printed` is the run's output before it was killed. */
  readonly verify: (data: string, printed: string) => Promise<void>;
}

/** Runs the program to its end, then kills it at some or all of its statements. Returns their number. */
export async function killAtEach(folder: string, { program, kills, prepare, verify }: Killed): Promise<number> {
  const command = (data: string, ...more: string[]): string[] => [
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
    join(__dirname, program),
    data,
    ...more,
  ];
  const begin = (name: string): string => {
    const data = join(folder, name);
    prepare?.(data);
    return data;
  };
  const whole = begin("whole");
  const printed = execFileSync(process.execPath, command(whole), { encoding: "utf8" });
  const statements = Number.parseInt(printed.trimEnd().split("\n").at(-1) ?? "", 10);
  await verify(whole, "");
  // A stride with a remainder, so that it selects all kinds of statements.
  const step = isThorough ? 1 : Math.floor(statements / kills) + 1;
  // If every statement is used, the end of one is the beginning of the next.
  const whens = step === 1 ? ["before"] : ["before", "after"];
  for (let nth = step === 1 ? 1 : Math.ceil(step / 2); nth <= statements; nth += step) {
    for (const when of whens) {
      const data = begin(`${nth}-${when}`);
      const { stdout, signal } = spawnSync(process.execPath, command(data, String(nth), when), { encoding: "utf8" });
      expect([nth, when, signal]).toEqual([nth, when, "SIGKILL"]);
      await verify(data, stdout);
      rmSync(data, { recursive: true, force: true });
    }
  }
  return statements;
}
