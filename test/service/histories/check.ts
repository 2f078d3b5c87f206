// Runs the checker of histories (tools/histories).
import { spawnSync } from "node:child_process";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { goProgram } from "../../../tools/setup/goProgram.mjs";
import type { History } from "./history.ts";

/** The verdict on a history. */
export interface Verdict {
  readonly id: string;
  readonly result: "ok" | "illegal" | "unknown";
  /** The answers that no order of the operations explains. */
  readonly problems: readonly string[];
}

/** Checks histories. */
export type Check = (histories: readonly Pick<History, "id" | "operations">[]) => Verdict[];

/** The checker; undefined, said once, where it cannot be built. */
export async function findChecker(): Promise<Check | undefined> {
  const wanted = { name: "histories", what: "the checker of histories", source: "tools/histories" };
  const { program, reason } = await goProgram(wanted, process.env);
  if (program === undefined) {
    leaveOut("histories of concurrent clients", reason);
    return undefined;
  }
  return (histories) => {
    const input = histories.map(({ id, operations }) => `${JSON.stringify({ id, operations })}\n`).join("");
    const { status, stdout, stderr } = spawnSync(program, { input, encoding: "utf8", maxBuffer: 2 ** 28 });
    if (status !== 0) throw new Error(`the checker of histories failed: ${stderr}`);
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line): Verdict => JSON.parse(line));
  };
}
