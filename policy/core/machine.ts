// Facts about a Machine that several policies need.
import { sizeOf } from "../../api/machineConfig.ts";
import type { MachineGuest, MachineInputs } from "../resources.ts";
import type { CheckArgs } from "./validate.ts";

/**
 * CPUs and memory of a Machine: by `config.guest`, by the named `config.size`, or the smallest size.
 * @param guest value of `config.guest`
 * @param size value of `config.size`
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

/** Calls back with every image of a Machine separately: an unknown one does not hide the others. */
export function eachImage(
  { config }: MachineInputs,
  { each, whenKnown }: Pick<CheckArgs, "each" | "whenKnown">,
  check: (image: string, path: string) => void,
): void {
  const visit = (image: string | undefined, path: string): void => {
    if (image !== undefined) check(image, path);
  };
  whenKnown(() => visit(config.image, "config.image"));
  whenKnown(() =>
    each(config.containers, ({ image, files }, i) => {
      whenKnown(() => visit(image, `config.containers[${i}].image`));
      each(files, ({ imageConfig }, k) => visit(imageConfig, `config.containers[${i}].files[${k}].imageConfig`));
    }),
  );
  whenKnown(() => each(config.volumes, ({ image }, i) => visit(image, `config.volumes[${i}].image`)));
  whenKnown(() => each(config.files, ({ imageConfig }, i) => visit(imageConfig, `config.files[${i}].imageConfig`)));
}

/** Whether the Machine has services that the platform's proxy makes public. */
export const serves = ({ config }: Pick<MachineInputs, "config">): boolean => (config.services ?? []).length > 0;

/** Whether it is a job, which is not expected to run all the time. */
export const isJob = ({ config }: Pick<MachineInputs, "config">): boolean =>
  config.autoDestroy === true || config.schedule !== undefined;
