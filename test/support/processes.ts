// The processes of a CLI run, found in /proc.
import { readdirSync, readFileSync } from "node:fs";

const textOf = (pid: number, file: "stat" | "cmdline"): string | undefined => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined; // it has ended
  }
};

/** The process and all its descendants, children first. */
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

/** Those processes of a CLI run that run our code, of either binding. */
export const providersOf = (cli: number): number[] =>
  family(cli).filter((pid) => /dynamic-provider|pulumi-machines-plugin\/plugin/.test(textOf(pid, "cmdline") ?? ""));

/** Whether a process has not ended. */
export const isRunning = (pid: number): boolean => !/\) [XZ] /.test(textOf(pid, "stat") ?? ") X ");

/** The processes whose program and arguments match. */
export const processesWith = (matches: (words: readonly string[]) => boolean): number[] =>
  readdirSync("/proc").flatMap((name) => {
    const words = /^\d+$/.test(name) ? textOf(Number(name), "cmdline")?.split("\0") : undefined;
    return words !== undefined && matches(words) ? [Number(name)] : [];
  });

/** Sends a signal to a process, unless it has exited. */
export const signal = (pid: number, name: "SIGSTOP" | "SIGKILL" | "SIGTERM"): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It has already exited.
  }
};

/**
 * Kills processes immediately (`kill -9`). All are stopped first: a CLI that
 * sees its children end before its own turn comes would clean up after itself.
 */
export function kill(pids: readonly number[]): void {
  for (const pid of pids) signal(pid, "SIGSTOP");
  for (const pid of pids) signal(pid, "SIGKILL");
}
