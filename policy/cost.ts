// Estimates the cost of resources per month.
import { machineOf, machinesIn } from "./core/fleet.ts";
import { guestOf } from "./core/machine.ts";
import type { Prices } from "../api/prices.ts";
import type {
  FleetInputs,
  IpAssignmentInputs,
  MachineInputs,
  PostgresClusterInputs,
  VolumeInputs,
} from "./resources.ts";

/** An unknown kind costs as much as the most expensive one in the table. */
const gpuPrice = ({ gpu }: Prices, kind: string | undefined): number =>
  gpu[kind ?? ""] ?? Math.max(0, ...Object.values(gpu));

/** Cost of a Machine. One that is kept stopped costs nothing; one that stops when idle costs as if it never did. */
export function machineCost({ config, state }: MachineInputs, prices: Prices): number {
  if (state === "stopped" || state === "suspended") return 0;
  const { kind, cpus, memoryMb } = guestOf(config.guest, config.size);
  const { gpuKind, gpus = gpuKind === undefined ? 0 : 1 } = config.guest ?? {};
  const cpu = kind === "performance" ? prices.performanceCpu : prices.sharedCpu;
  return cpus * cpu + (memoryMb / 1024) * prices.memoryGb + gpus * gpuPrice(prices, gpuKind);
}

/** Cost of a fleet, without the Machines that exist only during a rollout. */
export const fleetCost = (fleet: FleetInputs, prices: Prices): number =>
  machinesIn(fleet) * machineCost(machineOf(fleet), prices);

/** Cost of a volume. */
export const volumeCost = ({ sizeGb = 3 }: VolumeInputs, { volumeGb }: Prices): number => sizeGb * volumeGb;

/** Cost of an address. */
export const addressCost = ({ type }: IpAssignmentInputs, { address }: Prices): number => address[type] ?? 0;

/** Cost of a cluster with its disk. */
export const clusterCost = ({ plan = "", diskSizeGb = 10 }: PostgresClusterInputs, prices: Prices): number =>
  (prices.postgres[plan.toLowerCase()] ?? 0) + diskSizeGb * prices.postgresDiskGb;
