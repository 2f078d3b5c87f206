// Processes that may outlive the service.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

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
