// The team's pack: the policies for the Machines Control Service at the levels of production, and one of its own.
import type { ResourceValidationPolicy } from "@pulumi/policy";
import { baselines, guestOf, machinesPolicies, policyPack, validateMachine } from "pulumi-machines-policy";

/** The shop caches what it serves: with less memory it is slow, and nobody sees why. */
const memoryForCaches: ResourceValidationPolicy = {
  name: "memory-for-caches",
  description: "Machines that serve have the memory their caches need.",
  enforcementLevel: "mandatory",
  configSchema: { properties: { minMb: { type: "integer", minimum: 256, default: 512 } } },
  validateResource: validateMachine(({ config }, args, report) => {
    const { minMb } = args.getConfig<{ minMb: number }>();
    if ((config.services ?? []).length === 0) return;
    // What a Machine gets follows from its guest or its named size, and from what these leave out.
    const { memoryMb } = guestOf(config.guest, config.size);
    if (memoryMb < minMb)
      report(`config.guest gives it ${memoryMb} MiB; at least ${minMb} are wanted: memoryMb: ${minMb}.`);
  }),
};

policyPack("shop", { policies: [...machinesPolicies(), memoryForCaches] }, baselines.production);
