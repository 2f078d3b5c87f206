// Processes that may outlive the service.
import { execFileSync, spawn, type SpawnOptions, type StdioOptions } from "node:child_process";
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from "node:fs";
import { devNull } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { dirname } from "node:path";
import { codeOf } from "../errorCode.ts";
import { readEnd } from "./files.ts";
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

/** Milliseconds after the second signal. */
const killedAfterMs = 10_000;

/** Sends a signal, and waits until the process has ended. After `patienceMs` the second signal is sent, and at last SIGKILL. */
export async function endProcess(
  pid: number,
  text: string,
  { signal, last, patienceMs }: { signal: NodeJS.Signals; last: NodeJS.Signals; patienceMs: number },
): Promise<void> {
  if (runs(pid, text)) send(pid, signal);
  const late = performance.now() + patienceMs;
  // A client who is superuser can stop its server, or start a program in its place that ignores signals.
  const later = [
    { at: late, next: last },
    { at: late + killedAfterMs, next: "SIGKILL" },
  ] as const;
  for (let sent = 0; runs(pid, text); await sleep(10)) {
    const { at = Number.POSITIVE_INFINITY, next } = later[sent] ?? {};
    if (next === undefined || performance.now() <= at) continue;
    send(pid, next);
    sent++;
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

/** Variables that programs need to be found, and to find their libraries and a folder for temporary files. */
const passedOn = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"];

/**
 * The environment of the programs of a cluster. A client who is superuser of a server can read it, so it has nothing of the service's.
 * And what a program says is read here, so it must be in English; servers in another language would also answer in that language.
 */
export function environment(): NodeJS.ProcessEnv {
  return { ...Object.fromEntries(passedOn.map((name) => [name, process.env[name]])), LC_ALL: "C" };
}

const closeOnExec = 0o2000000;

/** Descriptors that every program gets which this process starts, because this process was started with them. */
function inherited(): number[] {
  if (!isLinux) return [];
  const isOpen = (name: string): boolean => {
    const text = unlessEnded(() => readFileSync(`/proc/self/fdinfo/${name}`, "utf8"));
    const flags = /^flags:\s*(\d+)/m.exec(text ?? "")?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  };
  return readdirSync("/proc/self/fdinfo")
    .filter((name) => Number(name) > 2 && isOpen(name))
    .map(Number);
}

type Descriptor = "ignore" | "pipe" | number;

/** The first three descriptors, and no descriptor of the service: an empty one is in the place of each. */
function descriptors(first: readonly Descriptor[], empty: number): StdioOptions {
  const all = [...first];
  for (const one of inherited()) {
    while (all.length < one) all.push("ignore");
    all[one] = empty;
  }
  return all;
}

/** Bytes of a log that are read. A client who is superuser of a server can write any number. */
const longestEnd = 65_536;

/** How a program is started as a user of this computer. */
export interface ProgramUser {
  /** The program and the arguments that start a program. */
  readonly command: (program: string, args: readonly string[]) => readonly [string, string[]];
  readonly options: Pick<SpawnOptions, "uid" | "gid">;
}

/** Starts a program that may outlive the service, with a new log. */
export function launch(
  { command, options }: ProgramUser,
  program: string,
  args: readonly string[],
  { log, reason }: { readonly log: string; readonly reason: RegExp },
): Launched {
  // One of an earlier version belonged to another user.
  rmSync(log, { force: true });
  const [file, empty] = [openSync(log, "wx", 0o600), openSync(devNull, "r")];
  const [first, rest] = command(program, args);
  const stdio = descriptors(["ignore", file, file], empty);
  const started = spawn(first, rest, { ...options, ...{ env: environment(), detached: true, stdio } });
  closeSync(file);
  closeSync(empty);
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
      if (hasEnded) problem ??= lastLine(readEnd(log, longestEnd), reason);
      if (problem !== undefined) throw new PostgresError(problem);
      return true;
    },
    kill: () => void started.kill("SIGKILL"),
  };
}

/** Programs that write the data of clusters, or start one that does. */
const programs: readonly string[] = ["postgres", "initdb", "setpriv", "unshare"];

/** Processes with one of the names, of those that there are. */
const processesNamed = (names: readonly string[]): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => names.includes(unlessEnded(() => readFileSync(`/proc/${pid}/comm`, "utf8").trim()) ?? ""))
    .map(Number);

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
  const uses = (pid: number): boolean => runs(pid, folder) || workingFolder(pid)?.path.startsWith(folder) === true;
  return processesNamed(programs).filter(uses);
}

/** The folder that a process works in. */
interface WorkingFolder {
  readonly device: number;
  readonly inode: number;
  /** Its path now. */
  readonly path: string;
  /** Names the file systems that the process sees. */
  readonly mounts: string;
  /** Whether it holds the data of a server, or did until it was removed. */
  readonly isData: boolean;
}

/** The folder that a process works in; undefined if it has ended, or is not to be looked at. */
function workingFolder(pid: number): WorkingFolder | undefined {
  const link = `/proc/${pid}/cwd`;
  try {
    const { dev, ino } = statSync(link);
    const mounts = readlinkSync(`/proc/${pid}/ns/mnt`);
    return folderOf(dev, ino, readlinkSync(link), mounts, existsSync(`${link}/PG_VERSION`));
  } catch (error) {
    if (codeOf(error) !== "EACCES") return undefined;
  }
  // Root without the capability SYS_PTRACE, as in containers, may not look at it, but the user of the process may.
  const uid = userOfProcess(pid);
  const script = `stat -L -c '%d %i' ${link}/. && readlink ${link} /proc/${pid}/ns/mnt && test -e ${link}/PG_VERSION && echo data; true`;
  const said = uid === undefined ? undefined : unlessEnded(() => saidAs(uid, script));
  const [numbers = "", path, mounts, data] = said?.split("\n") ?? [];
  const [device = 0, inode = 0] = numbers.split(" ").map(Number);
  return mounts === undefined ? undefined : folderOf(device, inode, path ?? "", mounts, data === "data");
}

/** What a short script says as another user, whose processes can read its variables, and stop it. */
function saidAs(uid: number, script: string): string {
  const empty = openSync(devNull, "r");
  const stdio = descriptors(["ignore", "pipe", "ignore"], empty);
  try {
    return execFileSync("sh", ["-c", script], {
      ...{ uid, gid: uid, env: environment(), stdio, encoding: "utf8" },
      ...{ timeout: 2000, killSignal: "SIGKILL" },
    });
  } finally {
    closeSync(empty);
  }
}

const folderOf = (device: number, inode: number, path: string, mounts: string, hasData: boolean): WorkingFolder => ({
  ...{ device, inode, path, mounts },
  isData: hasData || path.endsWith(" (deleted)"),
});

/** Whether a process works in a folder: the folder itself, as another one may have its path by now. Only Linux tells. */
export const worksIn = (pid: number, folder: string): boolean => !isLinux || isFolder(workingFolder(pid), folder);

function isFolder(working: WorkingFolder | undefined, folder: string): boolean {
  const stat = statSync(folder, { throwIfNoEntry: false });
  return stat !== undefined && stat.dev === working?.device && stat.ino === working.inode;
}

/** A server whose folder was moved or removed since its start. */
export interface MovedServer {
  readonly pid: number;
  /** Its folder when it was started. */
  readonly data: string;
  /** Where that folder is now. */
  readonly now: string;
}

/** Servers that were started in a folder, or below it, and whose own folder is no longer there. Only Linux tells. */
export function serversMovedFrom(folder: string): MovedServer[] {
  if (!isLinux) return [];
  return processesNamed(["postgres"]).flatMap((pid) => {
    const args = unlessEnded(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")) ?? [];
    const data = args[args.indexOf("-D") + 1] ?? "";
    if (!`${data}/`.startsWith(`${folder}/`)) return [];
    const working = workingFolder(pid);
    // One that just begins is not yet in its folder. And a container may have another folder at the same path.
    const isHere = working?.mounts === readlinkSync("/proc/self/ns/mnt");
    return isHere && working.isData && !isFolder(working, data) ? [{ pid, data, now: working.path }] : [];
  });
}

/**
 * Whether a server of a user works in another cluster's folder, as after a copy of the data folder with its owners. Only root can have
 * put the given file beside the data.
 */
export const worksElsewhere = (uid: number, data: string, besides: string): boolean =>
  isLinux &&
  processesNamed(["postgres"]).some((pid) => {
    if (userOfProcess(pid) !== uid || worksIn(pid, data)) return false;
    return unlessEnded(() => isOfRoot(`/proc/${pid}/cwd/..`, data, besides)) === true;
  });

/** Whether root has put a file into a folder that is another one than that of the data. */
function isOfRoot(folder: string, data: string, name: string): boolean {
  const [there, own] = [statSync(folder), statSync(dirname(data))];
  const file = lstatSync(`${folder}/${name}`);
  return there.uid === 0 && file.isFile() && file.uid === 0 && (there.dev !== own.dev || there.ino !== own.ino);
}

/** Whether this user may end a process. */
export function mayEnd(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) !== "EPERM";
  }
}

const statusOf = (pid: number | string): string => unlessEnded(() => readFileSync(`/proc/${pid}/status`, "utf8")) ?? "";

/** The user that a process runs as; undefined if it has ended, or is about to be forgotten. */
export function userOfProcess(pid: number | string): number | undefined {
  const [, uid] = /^Uid:\s*(\d+)/m.exec(isLinux ? statusOf(pid) : psUser(pid)) ?? [];
  return uid === undefined || /^State:\s*[ZX]/m.test(statusOf(pid)) ? undefined : Number(uid);
}

const psUser = (pid: number | string): string =>
  unlessEnded(() => `Uid: ${execFileSync("ps", ["-o", "uid=", "-p", String(pid)], { encoding: "utf8" }).trim()}`) ?? "";

/** The users that have processes. */
export const usersOfProcesses = (): readonly number[] =>
  isLinux ? readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (userOfProcess(name) ?? []) : [])) : [];

/** Kills all processes of a user, and waits until they have ended. A process that starts others meanwhile cannot escape. */
export async function endProcessesOf(uid: number, gid: number): Promise<void> {
  // It fails if there is none.
  const killAll = (): Promise<void> =>
    new Promise((resolve) => {
      const empty = openSync(devNull, "r");
      const stdio = descriptors(["ignore", "ignore", "ignore"], empty);
      const limits = { timeout: 2000, killSignal: "SIGKILL" } as const;
      const killer = spawn("sh", ["-c", "kill -KILL -1"], { uid, gid, env: environment(), stdio, ...limits });
      closeSync(empty);
      killer.once("error", () => resolve()).once("exit", () => resolve());
    });
  if (!isLinux) await killAll();
  else for (; usersOfProcesses().includes(uid); await sleep(10)) await killAll();
}

/** Kills the processes of these users, or of all, that use a folder, and waits until they have ended. */
export async function endProcessesIn(folder: string, users?: readonly number[]): Promise<void> {
  // A client who is superuser elsewhere can start processes whose arguments name this folder.
  const isTheirs = (pid: number): boolean => users === undefined || users.includes(userOfProcess(pid) ?? -1);
  const found = (): number[] => processesIn(folder).filter(isTheirs);
  for (let pids = found(); pids.length > 0; pids = found()) {
    for (const pid of pids) send(pid, "SIGKILL");
    await sleep(10);
  }
}
