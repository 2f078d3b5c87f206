// The resources that the processes of a Pulumi run use, sampled while they run. Only on Linux; elsewhere nothing is found.
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";

/** The role of a process in a run. */
export type Role = "pulumi" | "language host" | "program" | "provider";

/** The resources that one process used. */
export interface Usage {
  readonly role: Role;
  /** CPU seconds. */
  readonly cpu: number;
  /** Its maximum memory, in MB. */
  readonly peakMb: number;
}

/** A process that may have to be killed, distinguishable from a later one with the same id. */
interface Known extends Usage {
  readonly started: string;
}

const interval = 200;
const ticksPerSecond = 100;

/** Watches a process and its descendants until it is stopped. */
export class Watch {
  readonly #root: number;
  readonly #known = new Map<number, Known>();
  readonly #timer: NodeJS.Timeout;

  constructor(root: number) {
    this.#root = root;
    this.#timer = setInterval(() => this.#look(root, undefined), interval);
  }

  /** Ends the watch. The last tenth of a second of a process is not measured. */
  stop(): Usage[] {
    clearInterval(this.#timer);
    return [...this.#known.values()].map(({ role, cpu, peakMb }) => ({ role, cpu, peakMb }));
  }

  /** Kills all watched processes that still run, including the process itself. */
  kill(): void {
    this.#look(this.#root, undefined);
    for (const [pid, { started }] of this.#known) {
      try {
        if (read(pid, "stat") !== undefined && statOf(pid)?.started === started) process.kill(pid, "SIGKILL");
      } catch {
        // It exited in between.
      }
    }
  }

  #look(pid: number, parent: Role | undefined): void {
    const stat = statOf(pid);
    if (!stat) return;
    const role = roleOf(stat.name, parent);
    const peak = /^VmHWM:\s+(\d+)/m.exec(read(pid, "status") ?? "")?.[1];
    // An exited process no longer shows its memory.
    const peakMb = peak === undefined ? (this.#known.get(pid)?.peakMb ?? 0) : Math.round(Number(peak) / 1024);
    this.#known.set(pid, { role, started: stat.started, cpu: stat.cpu, peakMb });
    for (const child of childrenOf(pid)) this.#look(child, role);
  }
}

/** Resident memory of a process in MB; undefined if it is unknown. */
export function residentMb(pid: number): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(read(pid, "status") ?? "")?.[1];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1024);
}

/** Processor time of a process in milliseconds; undefined if it is unknown. */
export function processorMs(pid: number): number | undefined {
  const stat = statOf(pid);
  return stat && stat.cpu * 1000;
}

/** The CLI starts language hosts and providers; language hosts start programs. */
function roleOf(name: string, parent: Role | undefined): Role {
  if (parent === undefined) return "pulumi";
  if (name.startsWith("pulumi-language")) return "language host";
  return parent === "pulumi" ? "provider" : parent === "language host" ? "program" : parent;
}

function statOf(pid: number): { name: string; cpu: number; started: string } | undefined {
  const stat = read(pid, "stat");
  if (stat === undefined) return undefined;
  const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const cpu = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  return { name: basename(name), cpu, started: fields[19] ?? "" };
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (read(pid, `task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

function read(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}
