// Names the run of Pulumi (`up`, `destroy` …) that sends a request, so that the service can show what belongs together.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

/** When a process was started; empty where the system does not say. It tells apart processes that had the same id. */
function startOf(pid: number): string {
  try {
    // After the name of the program, which is in parentheses, it is the 20th field.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "").trim().split(" ");
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${fields[19]}`;
  } catch {
    return "";
  }
}

let engine: string | undefined;
let runs = 0;

/** Begins the next run of this process. */
export function beginUpdate(): void {
  runs++;
}

/**
 * The header that names the run. The engine starts one process for each provider of a run, with its own address as the argument: they
 * all name the same run.
 */
export function updateHeader(): Readonly<Record<string, string>> {
  if (runs === 0) return {};
  engine ??= [hostname(), process.ppid, startOf(process.ppid), ...process.argv.slice(2)].join("\n");
  const id = createHash("sha256").update(`${engine}\n${runs}`).digest("hex").slice(0, 16);
  return { "pulumi-update": id };
}
