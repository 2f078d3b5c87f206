import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { ifKnown } from "../core/unknown.ts";
import { validateMachine } from "../validators.ts";

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
      // Checks use TCP: for a UDP service any check of the Machine shows whether it is healthy.
      const isChecked = (port: number | undefined): boolean =>
        protocol === "udp" || port === undefined || port === internalPort;
      const ports = [
        ...Object.values(config.checks ?? {}).map((check) => () => check.port ?? 0),
        ...(config.containers ?? []).flatMap(({ healthchecks }) =>
          (healthchecks ?? []).map((check) => () => check.http?.port ?? check.tcp?.port),
        ),
      ];
      if (ports.some((port) => ifKnown(() => isChecked(port())) === true)) return;
      // None of the known ones; reading the others reports the unknown values.
      for (const port of ports) port();
      report(
        protocol === "udp"
          ? `config.services[${i}] has no check. Add one of the Machine: checks: { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } }.`
          : `config.services[${i}] has no check. Add checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }].`,
      );
    });
  }),
};
