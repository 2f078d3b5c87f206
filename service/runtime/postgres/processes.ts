// Processes that may outlive the service.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Account } from "./account.ts";
import { PostgresError, ServerKilled } from "./postgresError.ts";

const isLinux = process.platform === "linux";

/** The result; undefined if the process has ended meanwhile. */
function unlessEnded<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}

const ps = (...args: readonly string[]): string =>
  execFileSync("ps", ["-o", "pid=,args=", ...args], { encoding: "utf8", stdio: "pipe" });

/** The command line of a process; empty if there is none. */
const commandLine = (pid: number): string =>
  unlessEnded(() =>
    isLinux ? readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") : ps("-p", String(pid)),
  ) ?? "";

/** Whether a process runs whose command line has this text; another one may have got its number. */
export const runs = (pid: number, text: string): boolean => commandLine(pid).includes(text);

const send = (pid: number, signal: NodeJS.Signals): void => void unlessEnded(() => process.kill(pid, signal));

/** Sends a signal, and waits until the process has ended; after `patienceMs` the second signal is sent. */
export async function endProcess(
  pid: number,
  text: string,
  { signal, last, patienceMs }: { signal: NodeJS.Signals; last: NodeJS.Signals; patienceMs: number },
): Promise<void> {
  if (runs(pid, text)) send(pid, signal);
  const late = performance.now() + patienceMs;
  for (let isLate = false; runs(pid, text); await sleep(10))
    if (!isLate && performance.now() > late) {
      isLate = true;
      send(pid, last);
    }
}

/** The last line of a log that matches, with the hint that follows it, or its last line. */
export function lastLine(text: string, pattern: RegExp): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const last = lines.findLastIndex((line) => pattern.test(line));
  const found = pattern.exec(lines[last] ?? "")?.[1];
  if (found === undefined) return lines.at(-1) ?? "it ended without a message";
  const hint = /HINT: +(.*)/.exec(lines[last + 1] ?? "")?.[1];
  return hint === undefined ? found : `${found} (${hint})`;
}

/** A program that was started. */
export interface Launched {
  /**
   * Whether it runs.
   * @throws ServerKilled if a signal has ended it.
   * @throws PostgresError if it has ended by itself, with the last line of its log that is a reason.
   */
  readonly isAlive: () => true;
  /** Ends it at once. */
  readonly kill: () => void;
}

/**
 * The environment of the programs of a cluster. Users set PGDATA and PGPORT for servers of their own. And what a program says is read here,
 * so it must be in English; servers in another language would also answer in that language.
 */
export function environment(): NodeJS.ProcessEnv {
  const rest = Object.entries(process.env).filter(([name]) => !/^(PG[A-Z]|LC_|LANG)/.test(name));
  return { ...Object.fromEntries(rest), LC_ALL: "C" };
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
  const started = spawn(first, rest, {
    ...options,
    ...{ env: environment(), detached: true, stdio: ["ignore", file, file] },
  });
  closeSync(file);
  let problem: string | undefined;
  let hasEnded = false;
  let killedBy: NodeJS.Signals | null = null;
  started.on("error", (error) => (problem = error.message));
  started.on("exit", (_, signal) => {
    hasEnded = true;
    killedBy = signal;
  });
  started.unref();
  return {
    isAlive: () => {
      if (killedBy !== null) throw new ServerKilled(`it was ended by ${killedBy}`);
      if (hasEnded) problem ??= lastLine(readFileSync(log, "utf8"), reason);
      if (problem !== undefined) throw new PostgresError(problem);
      return true;
    },
    kill: () => void started.kill("SIGKILL"),
  };
}

/** Programs that write the data of clusters, or start one that does. */
const programs: readonly string[] = ["postgres", "initdb", "unshare"];

/**
 * Processes of PostgreSQL that use a folder, or one whose path begins so. On Linux these are also children of a server that was
 * killed: their command line does not have the folder, but it is their working folder.
 */
export function processesIn(folder: string): number[] {
  if (!isLinux)
    return ps("-ax")
      .split("\n")
      .filter((line) => line.includes(folder) && programs.some((program) => line.includes(program)))
      .map((line) => Number.parseInt(line, 10));
  const uses = (pid: string): boolean =>
    unlessEnded(
      () =>
        programs.includes(readFileSync(`/proc/${pid}/comm`, "utf8").trim()) &&
        (runs(Number(pid), folder) || readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)),
    ) ?? false;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && uses(name))
    .map(Number);
}

/** Kills the processes that use a folder, and waits until they have ended. */
export async function endProcessesIn(folder: string): Promise<void> {
  for (let pids = processesIn(folder); pids.length > 0; pids = processesIn(folder)) {
    for (const pid of pids) send(pid, "SIGKILL");
    await sleep(10);
  }
}
