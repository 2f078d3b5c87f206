// Processes that may outlive the service.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Account } from "./account.ts";
import { PostgresError } from "./postgresError.ts";

/** The command line of a process; empty if there is none. */
function commandLine(pid: number): string {
  try {
    if (process.platform === "linux") return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    return execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8", stdio: "pipe" });
  } catch {
    return "";
  }
}

/** Whether a process runs whose command line has this text; another one may have got its number. */
export const runs = (pid: number, text: string): boolean => commandLine(pid).includes(text);

/** Sends a signal, and waits until the process has ended; after `patienceMs` the second signal is sent. */
export async function endProcess(
  pid: number,
  text: string,
  { signal, last, patienceMs }: { signal: NodeJS.Signals; last: NodeJS.Signals; patienceMs: number },
): Promise<void> {
  const send = (one: NodeJS.Signals): void => {
    try {
      if (runs(pid, text)) process.kill(pid, one);
    } catch {
      // It has ended meanwhile.
    }
  };
  send(signal);
  const late = performance.now() + patienceMs;
  for (let isLate = false; runs(pid, text); await sleep(10))
    if (!isLate && performance.now() > late) {
      isLate = true;
      send(last);
    }
}

/** The last line of a log that matches, or its last line. */
export function lastLine(text: string, pattern: RegExp): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const found = lines.map((line) => pattern.exec(line)?.[1]).findLast((part) => part !== undefined);
  return found ?? lines.at(-1) ?? "it ended without a message";
}

/** A program that was started. */
export interface Launched {
  /**
   * Whether it runs.
   * @throws PostgresError if it has ended, with the last line of its log that is a reason.
   */
  readonly isAlive: () => true;
  /** Ends it at once. */
  readonly kill: () => void;
}

/** Starts a program that may outlive the service, with a new log. */
export function launch(
  { command, options }: Account,
  program: string,
  args: readonly string[],
  { log, reason }: { readonly log: string; readonly reason: RegExp },
): Launched {
  const file = openSync(log, "w", 0o600);
  const [first, rest] = command(program, args);
  const started = spawn(first, rest, { ...options, detached: true, stdio: ["ignore", file, file] });
  closeSync(file);
  let problem: string | undefined;
  let hasEnded = false;
  started.on("error", (error) => (problem = error.message));
  started.on("exit", () => (hasEnded = true));
  started.unref();
  return {
    isAlive: () => {
      if (hasEnded) problem ??= lastLine(readFileSync(log, "utf8"), reason);
      if (problem !== undefined) throw new PostgresError(problem);
      return true;
    },
    kill: () => void started.kill("SIGKILL"),
  };
}
