// What containers use, as their engine counts it.
import type Dockerode from "dockerode";
import type { Usage } from "../runtime.ts";
import { allowing, type Engine } from "./engine.ts";

/** Containers that the engine is asked about at a time. */
const atATime = 4;

/** What containers use, by the Machines that they are of. */
export async function usageOf(
  { docker }: Engine,
  containers: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, Usage>> {
  const found = new Map<string, Usage>();
  const left = [...containers];
  const ask = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [machine, id] = next;
      // Without `one-shot`, the engine waits a second for a second reading.
      const read = docker.getContainer(id).stats({ stream: false, "one-shot": true });
      // It may have ended meanwhile.
      const stats = await allowing([404, 409], read);
      if (stats?.cpu_stats.cpu_usage.total_usage) found.set(machine, usageIn(id, stats));
    }
  };
  await Promise.all(Array.from({ length: atATime }, ask));
  return found;
}

type Stats = Dockerode.ContainerStats;

/** What the engine has counted. Of a container without a network or without files of its own, it says nothing about them. */
function usageIn(id: string, { read, cpu_stats, memory_stats, networks, blkio_stats }: Stats): Usage {
  const all = Object.values((networks as Stats["networks"] | undefined) ?? {});
  const moved = blkio_stats?.io_service_bytes_recursive as Stats["blkio_stats"] extends undefined
    ? never
    : readonly { readonly op: string; readonly value: number }[] | null | undefined;
  const bytesOf = (op: string): number =>
    (moved ?? []).filter((one) => one.op.toLowerCase() === op).reduce((sum, { value }) => sum + value, 0);
  const { usage, stats } = memory_stats as {
    usage?: number;
    stats?: { inactive_file?: number; total_inactive_file?: number };
  };
  return {
    run: id,
    at: Date.parse(read),
    cpuSeconds: cpu_stats.cpu_usage.total_usage / 1e9,
    // Files that are cached and not in use can be reclaimed.
    memory:
      usage === undefined ? undefined : Math.max(0, usage - (stats?.inactive_file ?? stats?.total_inactive_file ?? 0)),
    received: all.reduce((sum, { rx_bytes }) => sum + rx_bytes, 0),
    sent: all.reduce((sum, { tx_bytes }) => sum + tx_bytes, 0),
    read: bytesOf("read"),
    written: bytesOf("write"),
  };
}
