import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { guestOf } from "../core/machine.ts";
import { defineSettings } from "../core/settings.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({
  sizes: z
    .array(z.string().regex(/^(shared-cpu|performance)-\d+x$/))
    .default([])
    .describe(
      "Sizes that Machines may have, for example `shared-cpu-2x` or `performance-4x`. An empty list allows any.",
    ),
  maxMemoryMb: z.int().min(256).optional().describe("Most memory a Machine may have, in MiB."),
  gpus: z.boolean().default(false).describe("Whether Machines may have GPUs."),
});

/** Machines are not larger than the team allows. */
export const allowedMachineSizes: ResourceValidationPolicy = {
  name: "allowed-machine-sizes",
  description: "Machines have sizes that are allowed.",
  severity: "medium",
  remediationSteps: "Set `config.guest` to a size that is allowed, or add the size to `sizes`.",
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    const { sizes, maxMemoryMb, gpus } = settings.of(args);
    args.whenKnown(() => {
      const { kind, cpus, memoryMb } = guestOf(config.guest, config.size);
      const path = config.guest === undefined && config.size !== undefined ? "config.size" : "config.guest";
      const size = `${kind === "shared" ? "shared-cpu" : kind}-${cpus}x`;
      if (sizes.length > 0 && !sizes.includes(size))
        report(
          `${path} is the size ${size}, which is not allowed. Allowed ${sizes.length === 1 ? "is" : "are"} ${sizes.join(", ")}.`,
        );
      if (maxMemoryMb !== undefined && memoryMb > maxMemoryMb)
        report(
          path === "config.size"
            ? `${path} has ${memoryMb} MiB of memory; ${maxMemoryMb} MiB are allowed.`
            : `${path}.memoryMb is ${memoryMb}; ${maxMemoryMb} MiB are allowed.`,
        );
    });
    args.whenKnown(() => {
      if (!gpus && ((config.guest?.gpus ?? 0) > 0 || config.guest?.gpuKind !== undefined))
        report("config.guest requests GPUs, which are not allowed. Leave out gpus and gpuKind.");
    });
  }),
};
