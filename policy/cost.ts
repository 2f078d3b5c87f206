// Estimates the cost of resources per month from their inputs.
import { machineOf, machinesIn } from "./core/fleet.ts";
import { guestOf } from "./core/machine.ts";
import * as cost from "../api/cost.ts";
import type { Prices } from "../api/prices.ts";
import type {
  FleetInputs,
  IpAssignmentInputs,
  MachineInputs,
  PostgresClusterInputs,
  VolumeInputs,
} from "./resources.ts";

/** Cost of a Machine. One that is kept stopped costs nothing; one that stops when idle costs as if it never did. */
export function machineCost({ config, state }: MachineInputs, prices: Prices): number {
  if (state === "stopped" || state === "suspended") return 0;
  const { gpuKind, gpus } = config.guest ?? {};
  return cost.sizeCost({ ...guestOf(config.guest, config.size), gpuKind, gpus }, prices);
}

/** Cost of a fleet, without the Machines that exist only during a rollout. */
export const fleetCost = (fleet: FleetInputs, prices: Prices): number =>
  machinesIn(fleet) * machineCost(machineOf(fleet), prices);

/** Cost of a volume. */
export const volumeCost = ({ sizeGb = 3 }: VolumeInputs, prices: Prices): number => cost.volumeCost(sizeGb, prices);

/** Cost of an address. */
export const addressCost = ({ type }: IpAssignmentInputs, prices: Prices): number => cost.addressCost(type, prices);

/** Cost of a cluster with its disk. */
export const clusterCost = ({ plan = "", diskSizeGb = 10 }: PostgresClusterInputs, prices: Prices): number =>
  cost.clusterCost(plan, diskSizeGb, prices);
