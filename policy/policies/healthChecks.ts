import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { validateMachine } from "../resources.ts";

const settings = defineSettings({});

/** Every service has a check: without one, a deploy cannot know whether it worked. */
export const healthChecks: ResourceValidationPolicy = {
  name: "health-checks",
  description: "Every service has a health check, which deploys wait for.",
  severity: "high",
  remediationSteps:
    'Give the service `checks`, or the Machine a check in `config.checks` on the service\'s internal port: { type: "http", path: "/healthz", interval: "15s", timeout: "2s" }.',
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    settings.of(args);
    args.each(config.services, ({ checks, internalPort, protocol }, i) => {
      if ((checks ?? []).length > 0) return;
      const others = Object.values(config.checks ?? {});
      // Checks connect by TCP: for a service of UDP any check of the Machine says whether it is well.
      if (others.some(({ port }) => port === internalPort || protocol === "udp")) return;
      if ((config.containers ?? []).some(({ healthchecks }) => (healthchecks ?? []).length > 0)) return;
      report(
        `config.services[${i}] has no check. Add checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }].`,
      );
    });
  }),
};
