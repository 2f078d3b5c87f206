import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { docsUrl } from "../../api/docsUrl.ts";
import { defineSettings } from "../core/settings.ts";
import { validatePostgresCluster } from "../validators.ts";

const plans = ["basic", "starter", "launch", "scale", "performance"] as const;

const settings = defineSettings({
  minimum: z.enum(plans).default("starter").describe("The smallest plan a cluster may have."),
});

/** Production databases are large enough for production. */
export const databasePlan: ResourceValidationPolicy = {
  name: "database-plan",
  description: "Postgres clusters have a plan that is large enough.",
  severity: "medium",
  remediationSteps: `Set \`plan\` to a larger one. An existing cluster is replaced by that: fork or restore it instead (${docsUrl("postgres.md#restoring-and-forking")}).`,
  configSchema: settings.schema,
  validateResource: validatePostgresCluster(({ plan }, args, report) => {
    const { minimum } = settings.of(args);
    // If omitted, it is the source cluster's plan.
    const given = plans.find((name) => name === plan?.toLowerCase());
    if (given !== undefined && plans.indexOf(given) < plans.indexOf(minimum))
      report(`plan is "${given}"; "${minimum}" is the smallest allowed.`);
  }),
};
