import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { ifKnown } from "../core/unknown.ts";
import type { MachineServicePort } from "../resources.ts";
import { remediateMachine, validateMachine } from "../validators.ts";

const settings = defineSettings({});

/** A public plain HTTP port without a redirect to HTTPS. */
const isOpen = ({ handlers = [], forceHttps }: MachineServicePort): boolean =>
  handlers.includes("http") && !handlers.includes("tls") && forceHttps !== true;

/** The target of such a redirect. */
const isHttps = ({ port, startPort = port, endPort = startPort, handlers = [] }: MachineServicePort): boolean =>
  (startPort ?? 0) <= 443 && (endPort ?? 0) >= 443 && handlers.includes("http") && handlers.includes("tls");

/** Public services are always encrypted. */
export const httpsForced: ResourceValidationPolicy = {
  name: "https-forced",
  description: "Public HTTP services redirect every request to HTTPS.",
  severity: "high",
  remediationSteps:
    'Set `forceHttps: true` on the port, and serve HTTPS on another: { port: 443, handlers: ["tls", "http"] }.',
  configSchema: settings.schema,
  validateResource: validateMachine(({ config }, args, report) => {
    settings.of(args);
    args.each(config.services, ({ ports }, i) =>
      args.each(ports, (port, k) => {
        if (isOpen(port)) report(`config.services[${i}].ports[${k}] serves HTTP unencrypted. Add forceHttps: true.`);
      }),
    );
  }),
  remediateResource: remediateMachine(({ config }, { each }) => {
    let isChanged = false;
    // Without HTTPS a redirect would have no target.
    if (!(config.services ?? []).some(({ ports }) => (ports ?? []).some((port) => ifKnown(() => isHttps(port)))))
      return false;
    each(config.services, ({ ports }) =>
      each(ports, (port) => {
        if (!isOpen(port)) return;
        port.forceHttps = true;
        isChanged = true;
      }),
    );
    return isChanged;
  }),
};
