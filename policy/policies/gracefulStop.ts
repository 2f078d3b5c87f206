import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { parseDuration } from "../../api/schema.ts";
import { serves } from "../core/machine.ts";
import { defineSettings } from "../core/settings.ts";
import type { MachineStopConfig } from "../resources.ts";
import { validateMachine } from "../validators.ts";

const settings = defineSettings({
  minSeconds: z
    .number()
    .min(0)
    .max(300)
    .default(10)
    .describe("Least time in seconds, up to 300, that a service has to finish its work."),
});

/** A Machine with services can finish its work before it is replaced. */
export const gracefulStop: ResourceValidationPolicy = {
  name: "graceful-stop",
  description: "A Machine with services is asked to stop, and given time to finish its work.",
  severity: "medium",
  remediationSteps: 'Set `config.stopConfig`, for example { signal: "SIGTERM", timeout: "30s" }.',
  configSchema: settings.schema,
  validateResource: validateMachine((machine, args, report) => {
    const { minSeconds } = settings.of(args);
    if (!serves(machine)) return;
    const check = (stop: MachineStopConfig | undefined, path: string): void => {
      args.whenKnown(() => {
        if (stop?.signal === "SIGKILL")
          report(`${path}.signal is "SIGKILL", which ends every connection at once. Use "SIGTERM" or "SIGINT".`);
      });
      const seconds = (parseDuration(stop?.timeout ?? "5s") ?? 0) / 1e9;
      const is = stop?.timeout === undefined ? "left out, which is 5 s" : `${seconds} s`;
      if (seconds < minSeconds)
        report(`${path}.timeout is ${is}; at least ${minSeconds} s are wanted: timeout: "${minSeconds}s".`);
    };
    const { stopConfig, containers = [] } = machine.config;
    // ASSUMED: a container is stopped as its own `stop` says, and where it has none as the Machine is.
    args.each(containers, ({ stop }, i) => {
      if (stop !== undefined) check(stop, `config.containers[${i}].stop`);
    });
    if (containers.length === 0 || containers.some(({ stop }) => stop === undefined))
      check(stopConfig, "config.stopConfig");
  }),
};
