// What Pods use, as the metrics API of the cluster says. It knows processors and memory alone: network and disk are only with the
// kubelets, whose right to tell would also be one to run commands on each node.
import type { KubernetesObject } from "@kubernetes/client-node";
import type { Usage } from "../runtime.ts";
import { allowing, type Cluster } from "./cluster.ts";
import { kinds, labels, selectorOf } from "./names.ts";
import { quantity } from "./nodes.ts";

interface PodMetrics extends KubernetesObject {
  readonly timestamp?: string;
  readonly containers?: readonly { readonly usage: { readonly cpu?: string; readonly memory?: string } }[];
}

/** What Pods use, by the Machines that they are of. */
export async function usageOf(cluster: Cluster, dataId: string, now: number): Promise<ReadonlyMap<string, Usage>> {
  // 503: the API is registered, and nothing serves it.
  const listed = await allowing([404, 503], cluster.list(kinds.podMetrics, selectorOf(dataId)));
  if (!listed) throw new Error("it has no metrics API (metrics.k8s.io), for example that of metrics-server");
  return new Map(
    (listed.items as readonly PodMetrics[]).flatMap(({ metadata, timestamp, containers = [] }): [string, Usage][] => {
      const machine = metadata?.labels?.[labels.machine];
      if (machine === undefined) return [];
      const sumOf = (name: "cpu" | "memory"): number =>
        containers.reduce((sum, { usage }) => sum + quantity(usage[name]), 0);
      const at = timestamp === undefined ? now : Date.parse(timestamp);
      return [[machine, { run: metadata?.name ?? "", at, cpus: sumOf("cpu"), memory: sumOf("memory") }]];
    }),
  );
}
