import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({});

/** Outside production, an unused Machine costs nothing. */
export const autostop: ResourceValidationPolicy = {
  name: "autostop",
  description: "Machines with services stop when they are not used, and start with the next request.",
  severity: "low",
  remediationSteps: 'Set autostop: "stop" (or "suspend") and autostart: true on each service.',
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    settings.of(args);
    const never = config.disableMachineAutostart === true;
    args.each(config.services, (service, i) => {
      if (service.protocol === "udp") return; // no UDP packet starts a Machine again
      if (["stop", "suspend", true].includes(service.autostop ?? "off")) {
        const path = never ? "config.disableMachineAutostart is true" : `config.services[${i}].autostart is false`;
        if (never || service.autostart === false) report(`${path}: once stopped, no request starts it. Leave it out.`);
      } else report(`config.services[${i}] never stops. Set autostop: "stop" and autostart: true.`);
    });
  }),
};
