import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { validateFleet } from "../validators.ts";

const settings = defineSettings({});

/** A fleet can see that a new configuration fails, before all of its Machines have it. */
export const safeRollouts: ResourceValidationPolicy = {
  name: "safe-rollouts",
  description: "Fleets have checks, and are not updated all at once.",
  severity: "high",
  remediationSteps:
    'Give the configuration checks, for example { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } }, and choose the strategy rolling, canary or bluegreen.',
  configSchema: settings.schema,
  validateResource: validateFleet((fleet, args, report) => {
    settings.of(args);
    args.whenKnown(() => {
      const { type, maxUnavailable } = fleet.strategy ?? {};
      if (type === "immediate") report('strategy.type is "immediate", which interrupts all Machines at once.');
      else if (maxUnavailable === "100%") report('strategy.maxUnavailable is "100%", which lets all Machines be down.');
    });
    args.whenKnown(() => {
      const { checks = {}, services = [], containers = [] } = fleet.config;
      const isChecked =
        Object.keys(checks).length > 0 ||
        services.some((service) => (service.checks ?? []).length > 0) ||
        containers.some(({ healthchecks }) => (healthchecks ?? []).length > 0);
      if (!isChecked) report("config has no checks, so that a rollout cannot see whether a Machine works.");
    });
  }),
};
