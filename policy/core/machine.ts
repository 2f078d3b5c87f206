// What several policies ask of a Machine.
import { sizeOf } from "../../api/machineConfig.ts";
import type { MachineGuest, MachineInputs } from "../resources.ts";
import type { CheckArgs } from "./validate.ts";

/**
 * CPUs and memory of a Machine: by `config.guest`, by the named `config.size`, or the smallest there is.
 * @param guest what `config.guest` says
 * @param size what `config.size` says
 */
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

/** Calls back with every image a Machine is made of, each by itself: what is unknown of one leaves the others. */
export function eachImage(
  { config }: MachineInputs,
  { each, whenKnown }: Pick<CheckArgs, "each" | "whenKnown">,
  check: (image: string, path: string) => void,
): void {
  const look = (image: string | undefined, path: string): void => {
    if (image !== undefined) check(image, path);
  };
  whenKnown(() => look(config.image, "config.image"));
  whenKnown(() => each(config.containers, ({ image }, i) => look(image, `config.containers[${i}].image`)));
  whenKnown(() => each(config.volumes, ({ image }, i) => look(image, `config.volumes[${i}].image`)));
  whenKnown(() => each(config.files, ({ imageConfig }, i) => look(imageConfig, `config.files[${i}].imageConfig`)));
}

/** Whether it serves: has services that the platform's proxy makes public. */
export const serves = ({ config }: Pick<MachineInputs, "config">): boolean => (config.services ?? []).length > 0;

/** Whether it works to an end and is not expected to run all the time. */
export const isJob = ({ config }: Pick<MachineInputs, "config">): boolean =>
  config.autoDestroy === true || config.schedule !== undefined;
