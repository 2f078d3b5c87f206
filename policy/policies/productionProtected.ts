import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import type { CheckArgs } from "../core/validate.ts";
import { validateApp, validatePostgresCluster, validateVolume } from "../validators.ts";

const settings = defineSettings({});

function check(args: CheckArgs, report: (message: string) => void, isProtected = false): void {
  settings.of(args);
  if (!args.opts.protect && !isProtected)
    report("It is not protected: taking it out of the program deletes it. Add { protect: true } to its options.");
}

/** Removing a line from a program must not delete data, or, if so configured, anything. */
export const productionProtected: ResourceValidationPolicy = {
  name: "production-protected",
  description: "Apps, volumes and clusters are protected from being deleted.",
  severity: "critical",
  remediationSteps:
    "Give the resource the option { protect: true }; a PostgresCluster has `deletionProtection` as well. To delete it anyway, run `pulumi state unprotect`, in a change of its own.",
  configSchema: settings.schema,
  validateResource: [
    validateApp((_, args, report) => check(args, report)),
    validateVolume((_, args, report) => check(args, report)),
    validatePostgresCluster(({ deletionProtection }, args, report) =>
      check(args, report, deletionProtection !== false),
    ),
  ],
};
