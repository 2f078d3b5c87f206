import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import { validateApp, validatePostgresDatabase, validateSecretKey, validateVolume } from "../resources.ts";

const settings = defineSettings({});

/** What lets a change destroy data is set for one change, and never left. */
export const noDataLossSwitches: ResourceValidationPolicy = {
  name: "no-data-loss-switches",
  description: "Nothing lets a change destroy what an App, a volume, a database or a key holds.",
  severity: "critical",
  remediationSteps:
    "Take out `allowDataLoss` and `forceDestroy`. Where the loss is meant: an exception with a reason, until the day of the change.",
  configSchema: settings.schema,
  validateResource: [
    validateApp(({ forceDestroy }, args, report) => {
      settings.of(args);
      if (forceDestroy === true) report("forceDestroy is true: deleting the App deletes Machines and volumes with it.");
    }),
    ...[validateVolume, validatePostgresDatabase, validateSecretKey].map((validate) =>
      validate(({ allowDataLoss }, args, report) => {
        settings.of(args);
        if (allowDataLoss === true) report("allowDataLoss is true: a change that replaces it destroys what it holds.");
      }),
    ),
  ],
};
