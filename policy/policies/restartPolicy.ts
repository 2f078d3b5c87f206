import type { ResourceValidationPolicy } from "@pulumi/policy";
import { isJob, serves } from "../core/machine.ts";
import { defineSettings } from "../core/settings.ts";
import type { MachineInputs, MachineRestart } from "../resources.ts";
import { remediateMachine, validateMachine } from "../validators.ts";

const settings = defineSettings({});

/** Whether it must restart by itself. */
const hasToRun = (machine: MachineInputs): boolean => serves(machine) && !isJob(machine);

/** A Machine with services restarts by itself. */
export const restartPolicy: ResourceValidationPolicy = {
  name: "restart-policy",
  description: "A Machine with services is started again when its process fails.",
  severity: "medium",
  remediationSteps: 'Leave out `config.restart`, or set its policy to "on-failure" or "always".',
  configSchema: settings.schema,
  validateResource: validateMachine((machine, args, report) => {
    settings.of(args);
    if (!hasToRun(machine)) return;
    const check = (restart: MachineRestart | undefined, path: string): void => {
      if (restart?.policy === "no")
        report(`${path}.policy is "no": after a crash the service stays down. Set it to "on-failure" or "always".`);
    };
    const { restart, containers } = machine.config;
    args.whenKnown(() => check(restart, "config.restart"));
    args.each(containers, (container, i) => check(container.restart, `config.containers[${i}].restart`));
  }),
  remediateResource: remediateMachine((machine, { each, whenKnown }) => {
    if (!hasToRun(machine)) return false;
    let isChanged = false;
    const repair = (restart: MachineRestart | undefined): void => {
      if (restart?.policy !== "no") return;
      restart.policy = "on-failure";
      isChanged = true;
    };
    whenKnown(() => repair(machine.config.restart));
    each(machine.config.containers, ({ restart }) => repair(restart));
    return isChanged;
  }),
};
