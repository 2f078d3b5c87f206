// What several policies ask of a Machine.
import { sizeOf } from "../../api/machineConfig.ts";
import type { MachineGuest, MachineInputs } from "../resources.ts";

/** CPUs and memory, by `guest`, by the named `size`, or the smallest there is. */
export const guestOf = (
  guest: MachineGuest | undefined,
  size?: string,
): { readonly kind: "shared" | "performance"; readonly cpus: number; readonly memoryMb: number } =>
  sizeOf({
    size,
    guest: guest && {
      cpu_kind: guest.cpuKind === "performance" ? "performance" : "shared",
      cpus: guest.cpus,
      memory_mb: guest.memoryMb,
    },
  });

/** Whether it serves: has services that the platform's proxy makes public. */
export const serves = ({ config }: Pick<MachineInputs, "config">): boolean => (config.services ?? []).length > 0;

/** Whether it works to an end and is not expected to run all the time. */
export const isJob = ({ config }: Pick<MachineInputs, "config">): boolean =>
  config.autoDestroy === true || config.schedule !== undefined;
