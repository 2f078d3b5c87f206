import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({
  ports: z.array(z.int().min(1).max(65535)).default([80, 443]).describe("Ports that may be public."),
});

/** Nothing is made public by accident: a database, a debugger, an admin page. */
export const knownPorts: ResourceValidationPolicy = {
  name: "known-ports",
  description: "Only known ports are public.",
  severity: "high",
  remediationSteps:
    "Remove the port from the service's `ports` (Machines of one network reach each other without it), or add it to the policy's `ports`.",
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    const known = new Set(settings.of(args).ports);
    args.each(config.services, ({ ports }, i) =>
      args.each(ports, ({ port, startPort, endPort }, k) => {
        const path = `config.services[${i}].ports[${k}]`;
        const allowed =
          known.size === 0
            ? "None may be; take it out."
            : `Known ${known.size === 1 ? "is" : "are"} ${[...known].join(", ")}.`;
        const [from, to] = [port ?? startPort ?? endPort, port ?? endPort ?? startPort];
        if (from === undefined || to === undefined) return;
        for (let each = from; each <= to; each++) {
          if (known.has(each)) continue;
          report(
            from === to
              ? `${path} makes port ${from} public. ${allowed}`
              : `${path} makes the ports ${from} to ${to} public. ${allowed}`,
          );
          return;
        }
      }),
    );
  }),
};
