import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { validatePostgresCluster } from "../validators.ts";

const settings = defineSettings({});

/** No database is deleted by mistake. */
export const databaseProtection: ResourceValidationPolicy = {
  name: "database-protection",
  description: "Postgres clusters have deletion protection.",
  severity: "critical",
  remediationSteps: "Leave out `deletionProtection`, or set it to true.",
  configSchema: settings.schema,
  validateResource: validatePostgresCluster(({ deletionProtection }, args, report) => {
    settings.of(args);
    if (deletionProtection === false) report("deletionProtection is false. Leave it out, or set it to true.");
  }),
};
