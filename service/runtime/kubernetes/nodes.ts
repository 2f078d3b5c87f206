// Whether a node has capacity for a Machine. The scheduler of the cluster decides later; this refuses what cannot succeed.
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import { labels, regionLabel } from "./names.ts";
import { needsOf } from "./pod.ts";
import { hasEnded } from "./podStatus.ts";

const units: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};

/** The number that a quantity of the cluster means, such as `500m` or `4Gi`. */
export function quantity(text = "0"): number {
  const [, number = "", unit = ""] = /^([0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(text) ?? [];
  return Number(number) * (unit === "" ? 1 : (units[unit] ?? NaN));
}

interface Amount {
  readonly cpus: number;
  readonly bytes: number;
  readonly pods: number;
}

const requestsOf = ({ spec }: V1Pod): Amount => {
  const requests = spec?.containers.map(({ resources }) => resources?.requests ?? {}) ?? [];
  const sum = (name: string): number => requests.reduce((total, one) => total + quantity(one[name]), 0);
  return { cpus: sum("cpu"), bytes: sum("memory"), pods: 1 };
};

const takesMachines = ({ spec }: V1Node): boolean =>
  spec?.unschedulable !== true &&
  !spec?.taints?.some(({ effect }) => effect === "NoSchedule" || effect === "NoExecute");

/**
 * Whether a node of the region has capacity for one more Machine, instead of the one that it replaces.
 * ASSUMED: Pods of others are not counted, which the service need not see; the scheduler counts them.
 */
export function hasRoom(
  config: MachineConfig,
  region: string,
  nodes: readonly V1Node[],
  pods: readonly V1Pod[],
  replaced?: string,
): boolean {
  const needs = needsOf(config);
  const used = new Map<string, Amount>();
  for (const pod of pods) {
    const node = pod.spec?.nodeName;
    if (node === undefined || hasEnded(pod) || pod.metadata?.labels?.[labels.machine] === replaced) continue;
    const before = used.get(node) ?? { cpus: 0, bytes: 0, pods: 0 };
    const more = requestsOf(pod);
    used.set(node, {
      cpus: before.cpus + more.cpus,
      bytes: before.bytes + more.bytes,
      pods: before.pods + more.pods,
    });
  }
  return nodes.some((node) => {
    if (node.metadata?.labels?.[regionLabel] !== region || !takesMachines(node)) return false;
    const { cpu, memory, pods: most } = node.status?.allocatable ?? {};
    const taken = used.get(node.metadata.name ?? "") ?? { cpus: 0, bytes: 0, pods: 0 };
    return (
      quantity(cpu) - taken.cpus >= needs.cpus &&
      quantity(memory) - taken.bytes >= needs.memoryMb * 2 ** 20 &&
      quantity(most) - taken.pods >= 1
    );
  });
}
