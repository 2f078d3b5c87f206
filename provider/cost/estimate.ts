// Estimates what resources cost a month, from their inputs: for the policy `budget`, for promotions and for `pulumi-machines cost`.
import * as cost from "../../api/cost.ts";
import { sizeOf } from "../../api/machineConfig.ts";
import { isObject } from "../../api/schema.ts";
import type { Prices } from "../../api/prices.ts";
import type { Values } from "../core/resource.ts";
import { UNKNOWN } from "../core/values.ts";
import { regionsOf, totalOf, type Placement } from "../fleets/placement.ts";

/** What the price of a Machine's configuration depends on. */
interface PricedConfig {
  readonly size?: string | undefined;
  readonly guest?:
    | {
        readonly cpuKind?: string | undefined;
        readonly cpus?: number | undefined;
        readonly memoryMb?: number | undefined;
        readonly gpuKind?: string | undefined;
        readonly gpus?: number | undefined;
      }
    | undefined;
}

interface PricedMachine {
  readonly config: PricedConfig;
  readonly state?: string | undefined;
}

interface PricedFleet extends Placement {
  readonly config: PricedConfig;
  readonly volume?: { readonly sizeGb?: number | undefined } | undefined;
}

/** Cost of a Machine. One that is kept stopped costs nothing; one that stops when idle costs as if it never did. */
export function machineCost({ config, state }: PricedMachine, prices: Prices): number {
  if (state === "stopped" || state === "suspended") return 0;
  const { guest, size } = config;
  const { gpuKind, gpus } = guest ?? {};
  const guestOfSize = guest && {
    cpu_kind: guest.cpuKind === "performance" ? ("performance" as const) : ("shared" as const),
    cpus: guest.cpus,
    memory_mb: guest.memoryMb,
  };
  return cost.sizeCost({ ...sizeOf({ size, guest: guestOfSize }), gpuKind, gpus }, prices);
}

/**
 * Cost of a fleet with the volumes of its Machines. Standbys are stopped, so they cost nothing, and neither do the Machines that exist
 * only during a rollout.
 */
export function fleetCost(fleet: PricedFleet, prices: Prices): number {
  const { config, volume } = fleet;
  const one = machineCost({ config }, prices) + (volume ? volumeCost(volume, prices) : 0);
  return totalOf(regionsOf(fleet)) * one;
}

/** Cost of a volume. */
export const volumeCost = ({ sizeGb = 3 }: { readonly sizeGb?: number | undefined }, prices: Prices): number =>
  cost.volumeCost(sizeGb, prices);

/** Cost of an address. */
export const addressCost = ({ type }: { readonly type: string }, prices: Prices): number =>
  cost.addressCost(type, prices);

/** Cost of a cluster with its disk. */
export const clusterCost = (
  { plan = "", diskSizeGb = 10 }: { readonly plan?: string | undefined; readonly diskSizeGb?: number | undefined },
  prices: Prices,
): number => cost.clusterCost(plan, diskSizeGb, prices);

/** What a resource costs a month. */
export interface Estimate {
  readonly monthly: number;
  /** Whether a value that the price depends on is known only at the update, so that this is the least. */
  readonly isLeast: boolean;
}

/** Reads inputs, and notes whether one of them was unknown, or is no value of its property. */
class Reader {
  foundUnknown = false;

  /** A text, or what counts as long as it is unknown. */
  text(values: Values, name: string, least: string | undefined): string | undefined {
    const found = values[name] ?? undefined;
    if (found === undefined || (typeof found === "string" && found !== UNKNOWN)) return found;
    this.foundUnknown = true;
    return least;
  }

  /** A number, or what counts as long as it is unknown. */
  number(values: Values, name: string, least = 0): number | undefined {
    const found = values[name] ?? undefined;
    if (found === undefined || (typeof found === "number" && Number.isFinite(found))) return found;
    this.foundUnknown = true;
    return least;
  }

  /** The object at a name; undefined if there is none. An unknown one is empty. */
  object(values: Values, name: string): Values | undefined {
    const found = values[name] ?? undefined;
    if (found === undefined || isObject(found)) return found;
    this.foundUnknown = true;
    return {};
  }
}

/** The least configuration that unknown values allow. */
function leastConfig(inputs: Values, read: Reader): PricedConfig {
  const config = read.object(inputs, "config") ?? {};
  const size = read.text(config, "size", "");
  const guest = read.object(config, "guest");
  if (guest === undefined) return { size };
  const gpuKind = read.text(guest, "gpuKind", undefined);
  const gpus = read.number(guest, "gpus");
  // A GPU of a kind that is not known may have any price.
  const hasUnknownKind = gpuKind === undefined && (guest["gpuKind"] ?? undefined) !== undefined;
  return {
    size,
    guest: {
      cpuKind: read.text(guest, "cpuKind", "shared"),
      cpus: read.number(guest, "cpus", 1),
      memoryMb: read.number(guest, "memoryMb"),
      ...(hasUnknownKind ? {} : { gpuKind, gpus }),
    },
  };
}

/** The least number of Machines by region that unknown values allow. */
function leastPlacement(inputs: Values, read: Reader): Placement {
  const regions = read.object(inputs, "regions");
  if (regions !== undefined)
    return {
      regions: Object.fromEntries(Object.keys(regions).map((name) => [name, read.number(regions, name) ?? 0])),
    };
  const count = read.number(inputs, "count");
  const { spreadOver } = inputs;
  // Where they are changes no price.
  return { count, spreadOver: Array.isArray(spreadOver) ? spreadOver.map(String) : [UNKNOWN] };
}

/** The types that cost something, each with its least cost. */
const costs: Readonly<Record<string, (inputs: Values, read: Reader, prices: Prices) => number>> = {
  Machine: (inputs, read, prices) =>
    machineCost({ config: leastConfig(inputs, read), state: read.text(inputs, "state", "stopped") }, prices),
  Fleet(inputs, read, prices) {
    const volume = read.object(inputs, "volume");
    const sized = volume && { sizeGb: read.number(volume, "sizeGb") };
    return fleetCost({ ...leastPlacement(inputs, read), config: leastConfig(inputs, read), volume: sized }, prices);
  },
  Volume: (inputs, read, prices) => volumeCost({ sizeGb: read.number(inputs, "sizeGb") }, prices),
  IpAssignment: (inputs, read, prices) => addressCost({ type: read.text(inputs, "type", "") ?? "" }, prices),
  PostgresCluster: (inputs, read, prices) =>
    clusterCost({ plan: read.text(inputs, "plan", ""), diskSizeGb: read.number(inputs, "diskSizeGb") }, prices),
};

/** Whether resources of a type can cost something. */
export const isPriced = (type: string): boolean => Object.hasOwn(costs, type);

/**
 * What a resource costs a month.
 * @param type name of its type, as `Machine`
 * @param inputs its inputs; `UNKNOWN` stands for what is not known
 */
export function estimateOf(type: string, inputs: Values, prices: Prices): Estimate {
  const read = new Reader();
  const monthly = isPriced(type) ? (costs[type]?.(inputs, read, prices) ?? 0) : 0;
  return { monthly, isLeast: read.foundUnknown };
}
