// The processes of a Pod, as the `ps` of its image lists them.
import type { V1Pod } from "@kubernetes/client-node";
import { refuse } from "../../refusal.ts";
import type { Process } from "../runtime.ts";
import type { Cluster } from "./cluster.ts";
import { runCommand } from "./exec.ts";

/** Seconds of a time as ps prints it: `01:02:03` or `1-02:03:04`. */
const secondsOf = (time: string): number => {
  const [clock = "", days = "0"] = time.split("-").reverse();
  return clock.split(":").reduce((sum, part) => sum * 60 + Number(part), Number(days) * 24);
};

/** Bytes of a size as ps prints it: in KiB, or with a unit. */
const bytesOf = (size: string): number => {
  const unit = { m: 2 ** 20, g: 2 ** 30 }[size.at(-1) ?? ""];
  return unit === undefined ? Number(size) * 1024 : Number.parseFloat(size) * unit;
};

/**
 * The processes of a Pod. A cluster has no list of them.
 * @throws Refusal 422 if the image has no `ps`.
 */
export async function processesOf(cluster: Cluster, pod: V1Pod): Promise<readonly Process[]> {
  const { code, stdout } = await runCommand(cluster, pod, ["ps", "-o", "pid,rss,time,args"]);
  if (code !== 0) throw refuse(422, "the image of the machine has no ps, which the cluster needs to list processes");
  return stdout
    .trim()
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const [, pid, rss = "0", time = "0", command = ""] = /^\s*(\d+)\s+(\S+)\s+(\S+)\s+(.+)$/.exec(line) ?? [];
      if (pid === undefined || command.startsWith("ps -o pid,rss")) return [];
      const base = { directory: "", cpu: 0, rtime: 0, listen_sockets: [] };
      return [{ ...base, pid: Number(pid), command, rss: bytesOf(rss), stime: secondsOf(time) }];
    });
}
