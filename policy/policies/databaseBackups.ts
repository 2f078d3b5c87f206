import type { StackValidationPolicy } from "@pulumi/policy";
import { isReferredTo } from "../core/references.ts";
import { defineSettings } from "../core/settings.ts";
import { validateStack } from "../core/validate.ts";

const settings = defineSettings({});

/** The data of a database can be restored. */
export const databaseBackups: StackValidationPolicy = {
  name: "database-backups",
  description: "Every Postgres cluster has a backup.",
  severity: "high",
  remediationSteps: "Add a PostgresBackup of the cluster; its `triggers` say when another one is taken.",
  configSchema: settings.schema,
  validateStack: validateStack((args, report) => {
    settings.of(args);
    const backups = args.all("PostgresBackup");
    args.each(args.all("PostgresCluster"), (cluster) => {
      if (!isReferredTo(cluster, "cluster", backups))
        report("There is no backup of it. Add a PostgresBackup with its id as `cluster`.", cluster.urn);
    });
  }),
};
