// The processes of a Pod. A cluster has no list of them, so the `sh` of the image reads what the kernel says.
import type { V1Pod } from "@kubernetes/client-node";
import type { SignalName } from "../../../api/signals.ts";
import { refuse } from "../../refusal.ts";
import type { Process } from "../runtime.ts";
import type { Cluster } from "./cluster.ts";
import { runCommand } from "./exec.ts";

/**
 * Writes the seconds since the node started and the shell's own pid. Then it writes for each process its memory in KiB and its
 * `stat`, and in the next lines its command. A process that ends meanwhile is left out.
 */
export const listProcesses = `
read -r uptime rest < /proc/uptime
printf '%s %s\\0\\0\\n' "$uptime" "$$"
for each in /proc/[0-9]*; do
  read -r stat < "$each/stat" || continue
  rss=0
  while read -r name value rest; do [ "$name" = VmRSS: ] && rss=$value; done < "$each/status"
  printf '%s %s\\n' "$rss" "$stat"
  cat "$each/cmdline"
  printf '\\0\\0\\n'
done 2>/dev/null
`;
const endOfEntry = "\0\0\n";

/** The kernel counts time for programs in hundredths of a second, on all processors. */
const perSecond = 100;

/** A process, with what the kernel says of its origin. */
export interface Listed extends Process {
  readonly parent: number;
  /** Hundredths of a second between the start of the node and its own. */
  readonly begun: number;
}

/** Reads what the list wrote. The shell that wrote it is left out. */
export function parseProcesses(text: string): readonly Listed[] {
  const [first = "", ...entries] = text.split(endOfEntry);
  const [uptime = 0, shell] = first.split(" ").map(Number);
  return entries.flatMap((entry) => {
    const [, rss, pid, name = "", fields = "", words = ""] =
      /^(\d+) (\d+) \((.*)\) ([^)\n]+)\n([^]*)$/.exec(entry) ?? [];
    if (pid === undefined || Number(pid) === shell) return [];
    const values = fields.split(" ").map(Number);
    // The fields of `stat` from the third one on.
    const [parent = 0, user = 0, system = 0, begun = 0] = [1, 11, 12, 19].map((i) => values[i]);
    const used = (user + system) / perSecond;
    const lived = uptime - begun / perSecond;
    return [
      {
        pid: Number(pid),
        // Without a command, it is a process that has ended and whose parent has not noticed.
        command: words.replaceAll(/\0+$/g, "").replaceAll("\0", " ") || `[${name}]`,
        directory: "",
        cpu: lived > 0 ? Math.round((100 * used) / lived) : 0,
        rss: Number(rss) * 1024,
        rtime: 0,
        stime: Math.floor(used),
        listen_sockets: [],
        parent,
        begun,
      },
    ];
  });
}

/**
 * The processes of a Pod.
 * @throws Refusal 422 if the image has no `sh`.
 */
export async function processesOf(cluster: Cluster, pod: V1Pod): Promise<readonly Process[]> {
  return (await listed(cluster, pod)).map(({ parent: _parent, begun: _begun, ...process }) => process);
}

/**
 * Sends a signal to the main process of a Pod.
 * @throws Refusal 422 if the image has no `sh`.
 */
export async function sendSignal(cluster: Cluster, pod: V1Pod, signal: SignalName): Promise<void> {
  const main = mainOf(await listed(cluster, pod));
  if (main === undefined) return; // it has just ended
  const kill = `kill -s ${signal.replace(/^SIG/, "")} ${main.pid}`;
  const done = await runCommand(cluster, pod, ["sh", "-c", kill]);
  if (done?.exitCode !== 0) throw new Error(done?.stderr.trim());
}

/** The main process. The first process of a Pod is the cluster's own; those that commands start began later. */
export const mainOf = (processes: readonly Listed[]): Listed | undefined =>
  processes.filter(({ pid, parent }) => parent === 0 && pid !== 1).sort((a, b) => a.begun - b.begun)[0];

async function listed(cluster: Cluster, pod: V1Pod): Promise<readonly Listed[]> {
  const done = await runCommand(cluster, pod, ["sh", "-c", listProcesses]);
  if (!done) throw new Error("the list of processes was not complete in time");
  if (done.exitCode === 126 || done.exitCode === 127)
    throw refuse(422, "the image of the machine has no sh, which the cluster needs to see processes");
  return parseProcesses(done.stdout);
}
