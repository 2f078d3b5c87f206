// Estimates costs per month by the price table: for the budget of the policy pack, and for the service's console.
import type { Prices } from "./prices.ts";

/** What the price of a Machine depends on. */
export interface PricedSize {
  readonly kind: "shared" | "performance";
  readonly cpus: number;
  /** Memory in MiB. */
  readonly memoryMb: number;
  readonly gpuKind?: string | undefined;
  /** Number of GPUs. Default: one if it has a kind, else none. */
  readonly gpus?: number | undefined;
}

/** An unknown kind costs as much as the most expensive one in the table. */
const gpuPrice = ({ gpu }: Prices, kind: string | undefined): number =>
  gpu[kind ?? ""] ?? Math.max(0, ...Object.values(gpu));

/** Cost of a Machine of that size that runs. */
export function sizeCost({ kind, cpus, memoryMb, gpuKind, gpus }: PricedSize, prices: Prices): number {
  const cpu = kind === "performance" ? prices.performanceCpu : prices.sharedCpu;
  const gpu = (gpus ?? (gpuKind === undefined ? 0 : 1)) * gpuPrice(prices, gpuKind);
  return cpus * cpu + (memoryMb / 1024) * prices.memoryGb + gpu;
}

/** Cost of a volume. */
export const volumeCost = (sizeGb: number, { volumeGb }: Prices): number => sizeGb * volumeGb;

/** Cost of an address of that type. */
export const addressCost = (type: string, { address }: Prices): number => address[type] ?? 0;

/** Cost of a cluster of that plan with its disk. */
export const clusterCost = (plan: string, diskGb: number, prices: Prices): number =>
  (prices.postgres[plan.toLowerCase()] ?? 0) + diskGb * prices.postgresDiskGb;
