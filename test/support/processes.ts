// The processes that a run of the CLI consists of, found in /proc.
import { readdirSync, readFileSync } from "node:fs";

const textOf = (pid: number, file: "stat" | "cmdline"): string | undefined => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined; // it has ended
  }
};

/** The process and everything it started, children first. */
export function family(pid: number): number[] {
  const parents = readdirSync("/proc").flatMap((name) => {
    const stat = /^\d+$/.test(name) ? textOf(Number(name), "stat") : undefined;
    return stat === undefined
      ? []
      : [{ pid: Number(name), parent: Number(stat.replace(/\(.*\)/s, "x").split(" ")[3]) }];
  });
  const below = (of: number): number[] =>
    parents.filter(({ parent }) => parent === of).flatMap((child) => [...below(child.pid), child.pid]);
  return [...below(pid), pid];
}

/** Those of a run of the CLI that hold our code, of either binding. */
export const providersOf = (cli: number): number[] =>
  family(cli).filter((pid) => /dynamic-provider|pulumi-machines-plugin\/plugin/.test(textOf(pid, "cmdline") ?? ""));

/** Kills processes without a chance to do anything more (`kill -9`). */
export function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  }
}
