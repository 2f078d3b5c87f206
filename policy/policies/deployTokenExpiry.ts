import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { parseDuration } from "../../api/schema.ts";
import { defineSettings } from "../core/settings.ts";
import { validateDeployToken } from "../validators.ts";

const settings = defineSettings({
  maxHours: z.number().positive().default(2160).describe("Hours for which a token may be valid at most."),
});

/** A leaked token is valid for a limited time. */
export const deployTokenExpiry: ResourceValidationPolicy = {
  name: "deploy-token-expiry",
  description: "Deploy tokens expire soon.",
  severity: "high",
  remediationSteps: "Set `expiry` to less, and create a new token in time with `rotationTriggers`.",
  configSchema: settings.schema,
  validateResource: validateDeployToken(({ expiry }, args, report) => {
    const { maxHours } = settings.of(args);
    const length = parseDuration(expiry);
    // The provider refuses invalid durations.
    if (length === undefined) return;
    const hours = length / 3600e9;
    if (hours > maxHours) report(`expiry is ${hours} h; at most ${maxHours} h are allowed: expiry: "${maxHours}h".`);
  }),
};
