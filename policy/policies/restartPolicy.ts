import type { ResourceValidationPolicy } from "@pulumi/policy";
import { isJob, serves } from "../core/machine.ts";
import { defineSettings } from "../core/settings.ts";
import { remediateMachine, validateMachine, type MachineInputs } from "../resources.ts";

const settings = defineSettings({});

const staysDown = (machine: MachineInputs): boolean =>
  serves(machine) && !isJob(machine) && machine.config.restart?.policy === "no";

/** What serves comes back by itself. */
export const restartPolicy: ResourceValidationPolicy = {
  name: "restart-policy",
  description: "A Machine with services is started again when its process fails.",
  severity: "medium",
  remediationSteps: 'Leave out `config.restart`, or set its policy to "on-failure" or "always".',
  configSchema: settings.schema,
  validateResource: validateMachine((machine, args, report) => {
    settings.of(args);
    if (staysDown(machine))
      report(
        'config.restart.policy is "no": after a crash the service stays down. Set it to "on-failure" or "always".',
      );
  }),
  remediateResource: remediateMachine((machine) => {
    if (!staysDown(machine) || !machine.config.restart) return false;
    machine.config.restart.policy = "on-failure";
    return true;
  }),
};
