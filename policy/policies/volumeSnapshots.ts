import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { resourceName } from "../core/validate.ts";
import { remediateFleet, remediateVolume, validateFleet, validateVolume } from "../validators.ts";

const settings = defineSettings({
  minDays: z.int().min(1).max(60).default(7).describe("Lowest number of days that a snapshot is stored, up to 60."),
});

/** Days that a snapshot is stored, without a setting. */
const usual = 5;

const tooShort = (name: string, days: number, minDays: number): string =>
  `${name} is ${days} days; at least ${minDays} are wanted: snapshotRetention: ${minDays}.`;

const repairVolume = remediateVolume((volume, args) => {
  const { minDays } = settings.of(args);
  let isChanged = false;
  args.whenKnown(() => {
    if (volume.autoBackupEnabled !== false) return;
    volume.autoBackupEnabled = true;
    isChanged = true;
  });
  args.whenKnown(() => {
    if ((volume.snapshotRetention ?? usual) >= minDays) return;
    volume.snapshotRetention = minDays;
    isChanged = true;
  });
  return isChanged;
});

const repairFleet = remediateFleet(({ volume }, args) => {
  const { minDays } = settings.of(args);
  if (volume === undefined || (volume.snapshotRetention ?? usual) >= minDays) return false;
  volume.snapshotRetention = minDays;
  return true;
});

/** The data of a volume can be restored. */
export const volumeSnapshots: ResourceValidationPolicy = {
  name: "volume-snapshots",
  description: "Snapshots of volumes are taken every day, and stored long enough.",
  severity: "high",
  remediationSteps:
    "Leave out `autoBackupEnabled`, and set `snapshotRetention` to the days wanted; that of a fleet is for its new volumes.",
  configSchema: settings.schema,
  validateResource: [
    validateVolume((volume, args, report) => {
      const { minDays } = settings.of(args);
      args.whenKnown(() => {
        if (volume.autoBackupEnabled === false) report("autoBackupEnabled is false. Leave it out, or set it to true.");
      });
      const days = volume.snapshotRetention ?? usual;
      if (days < minDays) report(tooShort("snapshotRetention", days, minDays));
    }),
    validateFleet(({ volume }, args, report) => {
      const { minDays } = settings.of(args);
      const days = volume?.snapshotRetention ?? usual;
      if (volume !== undefined && days < minDays) report(tooShort("volume.snapshotRetention", days, minDays));
    }),
  ],
  remediateResource: (args) => (resourceName(args.type) === "Fleet" ? repairFleet(args) : repairVolume(args)),
};
