// Kills a program at its statements, one process for each, and looks at what it leaves behind.
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";

/** Milliseconds a test that kills may take; all of the statements are an hour's work. */
export const killTimeout = isThorough ? 24 * wholeTest : wholeTest;

/** A program that counts its statements (killedSelf.ts), and what to do around it. */
export interface Killed {
  /** File in test/service. The last line it prints begins with the number of its statements. */
  readonly program: string;
  /** How many statements it is killed at in `npm test`; in `npm run test:all` at all of them. */
  readonly kills: number;
  /** Makes the data folder it begins with; there is none when left out. */
  readonly prepare?: (data: string) => void;
  /** Looks at what a run left; `printed` is what it said before it ended. */
  readonly verify: (data: string, printed: string) => Promise<void>;
}

/** Runs the program to its end, and then kills it at some of its statements, or at every single one. Gives their number. */
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
  // A stride that is no divisor of anything, so that it falls on all kinds of statements.
  const step = isThorough ? 1 : Math.floor(statements / kills) + 1;
  // Killed at every one, what is just after the one is just before the next.
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
