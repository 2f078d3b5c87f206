import type { ResourceValidationPolicy } from "@pulumi/policy";
import { docsUrl } from "../../api/docsUrl.ts";
import { defineSettings } from "../core/settings.ts";
import { validateFleet, validateMachine, validateVolume } from "../validators.ts";

const settings = defineSettings({});

/** Data is encrypted at rest. */
export const volumesEncrypted: ResourceValidationPolicy = {
  name: "volumes-encrypted",
  description: "Volumes are encrypted.",
  severity: "high",
  remediationSteps: `Leave out \`encrypted\`, or set it to true. An existing volume is replaced by that: move its data first (${docsUrl("volumes.md#moving-a-volume")}).`,
  configSchema: settings.schema,
  validateResource: [
    validateVolume(({ encrypted }, args, report) => {
      settings.of(args);
      if (encrypted === false) report("encrypted is false. Leave it out, or set it to true.");
    }),
    validateFleet(({ volume }, args, report) => {
      settings.of(args);
      if (volume?.encrypted === false) report("volume.encrypted is false. Leave it out, or set it to true.");
    }),
    validateMachine(({ config }, args, report) => {
      settings.of(args);
      args.each(config.mounts, ({ encrypted }, i) => {
        if (encrypted === false) report(`config.mounts[${i}].encrypted is false. Leave it out, or set it to true.`);
      });
    }),
  ],
};
