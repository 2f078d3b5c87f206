import type { ResourceValidationPolicy } from "@pulumi/policy";
import { defineSettings } from "../core/settings.ts";
import {
  validateApp,
  validateFleet,
  validatePostgresDatabase,
  validateSecretKey,
  validateVolume,
} from "../validators.ts";

const settings = defineSettings({});

/** Switches that permit data loss are set for one change, and then removed. */
export const noDataLossSwitches: ResourceValidationPolicy = {
  name: "no-data-loss-switches",
  description: "No change may destroy the contents of an App, a fleet, a volume, a database or a key.",
  severity: "critical",
  remediationSteps:
    "Remove `allowDataLoss`, `forceDestroy` and `deleteVolumes`. If the loss is intended, add an exception with a reason, until the day of the change.",
  configSchema: settings.schema,
  validateResource: [
    validateApp(({ forceDestroy }, args, report) => {
      settings.of(args);
      if (forceDestroy === true) report("forceDestroy is true: deleting the App deletes Machines and volumes with it.");
    }),
    validateFleet(({ volume, deleteVolumes }, args, report) => {
      settings.of(args);
      if (volume !== undefined && deleteVolumes === true)
        report("deleteVolumes is true: a Machine that leaves the fleet takes its volume with it.");
    }),
    ...[validateVolume, validatePostgresDatabase, validateSecretKey].map((validate) =>
      validate(({ allowDataLoss }, args, report) => {
        settings.of(args);
        if (allowDataLoss === true) report("allowDataLoss is true: a change that replaces it destroys its data.");
      }),
    ),
  ],
};
