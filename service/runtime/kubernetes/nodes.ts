// Whether a node has capacity for a Machine. The scheduler of the cluster decides later; this refuses what cannot succeed.
import type { V1Node, V1Pod } from "@kubernetes/client-node";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import { regionLabel } from "./names.ts";
import { needsOf } from "./pod.ts";
import { hasEnded } from "./podStatus.ts";

const units: Readonly<Record<string, number>> = {
  m: 1e-3,
  n: 1e-9,
  u: 1e-6,
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

/** Whether a node is in a region. All nodes of a cluster that has only one are in it. */
const isIn = ({ metadata }: V1Node, region: string, onlyRegion: string | undefined): boolean =>
  (onlyRegion ?? metadata?.labels?.[regionLabel]) === region;

const takesMachines = ({ spec }: V1Node): boolean =>
  spec?.unschedulable !== true &&
  !spec?.taints?.some(({ effect }) => effect === "NoSchedule" || effect === "NoExecute");

const nothing: Amount = { cpus: 0, bytes: 0, pods: 0 };

const plus = (one: Amount, other: Amount, sign: 1 | -1 = 1): Amount => ({
  cpus: one.cpus + sign * other.cpus,
  bytes: one.bytes + sign * other.bytes,
  pods: one.pods + sign * other.pods,
});

/**
 * Since when the cluster has not reached a node, in milliseconds since 1970; undefined if it does. A node that says itself that it is
 * not ready counts, too: nothing can be done there.
 */
export function lostSince(node: V1Node | undefined): number | undefined {
  // It was removed.
  if (!node) return 0;
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  // A new node has not said anything yet.
  if (!ready || ready.status === "True") return undefined;
  return ready.lastTransitionTime === undefined ? 0 : new Date(ready.lastTransitionTime).getTime();
}

/** The name of a node of a region that takes Machines; undefined if there is none. */
export const nodeIn = (region: string, nodes: readonly V1Node[], onlyRegion: string | undefined): string | undefined =>
  nodes.find((node) => isIn(node, region, onlyRegion) && takesMachines(node))?.metadata?.name;

/** What the Pods of the service request of each node. */
export class Room {
  /** What each Pod requests, by Machine. */
  readonly #pods = new Map<string, { readonly node: string; readonly requests: Amount }>();
  /** What is requested of each node. */
  readonly #nodes = new Map<string, Amount>();

  /** The cluster has said something about the Pod of a Machine. */
  seen(machine: string, pod: V1Pod, isGone: boolean): void {
    const before = this.#pods.get(machine);
    if (before) this.#nodes.set(before.node, plus(this.#requested(before.node), before.requests, -1));
    const node = pod.spec?.nodeName;
    if (isGone || node === undefined || hasEnded(pod)) {
      this.#pods.delete(machine);
      return;
    }
    const requests = requestsOf(pod);
    this.#pods.set(machine, { node, requests });
    this.#nodes.set(node, plus(this.#requested(node), requests));
  }

  /**
   * Whether a node of the region has capacity for one more Machine, instead of the one that it replaces.
   * ASSUMED: Pods of others are not counted, which the service need not see; the scheduler counts them.
   */
  hasRoom(
    config: MachineConfig,
    region: string,
    nodes: readonly V1Node[],
    replaced = "",
    onlyRegion?: string,
  ): boolean {
    const needs = needsOf(config);
    const freed = this.#pods.get(replaced);
    return nodes.some((node) => {
      if (!isIn(node, region, onlyRegion) || !takesMachines(node)) return false;
      const { cpu, memory, pods } = node.status?.allocatable ?? {};
      const name = node.metadata?.name ?? "";
      const taken = plus(this.#requested(name), freed?.node === name ? freed.requests : nothing, -1);
      return (
        quantity(cpu) - taken.cpus >= needs.cpus - rounding &&
        quantity(memory) - taken.bytes >= needs.memoryMb * 2 ** 20 &&
        quantity(pods) - taken.pods >= 1
      );
    });
  }

  #requested(node: string): Amount {
    return this.#nodes.get(node) ?? nothing;
  }
}

/** CPUs that sums of fractions may differ by. The smallest part of a CPU is a thousandth. */
const rounding = 1e-6;
