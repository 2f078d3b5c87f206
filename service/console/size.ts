// The size of a Machine, as the columns of its row have it.
import { sizeCost, type PricedSize } from "../../api/cost.ts";
import { sizeOf, type MachineConfig } from "../../api/machineConfig.ts";
import { prices } from "../../api/prices.ts";
import type { MachineExtras, MachineRow } from "../store/rows.ts";

interface Sized extends Pick<MachineRow & MachineExtras, "size" | "cpu_kind"> {
  readonly guest: MachineConfig["guest"];
}

/** The size of a Machine. */
export function sizeIn({ guest, size, cpu_kind }: Sized): PricedSize {
  const kind = cpu_kind === "performance" ? "performance" : "shared";
  const of = sizeOf(guest ? { guest: { ...guest, cpu_kind: kind } } : { size: size ?? undefined });
  return { ...of, gpuKind: guest?.gpu_kind, gpus: guest?.gpus };
}

// ASSUMED: the console's estimate counts Machines that run or are about to; one that is stopped, suspended or failed costs nothing.
const idle: readonly string[] = ["stopped", "suspended", "failed"];

/** Estimated cost of a Machine per month. */
export const machineCost = (machine: Sized & Pick<MachineRow, "state">): number =>
  idle.includes(machine.state) ? 0 : sizeCost(sizeIn(machine), prices);
