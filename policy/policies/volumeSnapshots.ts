import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { remediateVolume, validateVolume } from "../validators.ts";

const settings = defineSettings({
  minDays: z.int().min(1).max(60).default(7).describe("Lowest number of days that a snapshot is stored, up to 60."),
});

/** The data of a volume can be restored. */
export const volumeSnapshots: ResourceValidationPolicy = {
  name: "volume-snapshots",
  description: "Snapshots of volumes are taken every day, and stored long enough.",
  severity: "high",
  remediationSteps: "Leave out `autoBackupEnabled`, and set `snapshotRetention` to the days wanted.",
  configSchema: settings.schema,
  validateResource: validateVolume((volume, args, report) => {
    const { minDays } = settings.of(args);
    args.whenKnown(() => {
      if (volume.autoBackupEnabled === false) report("autoBackupEnabled is false. Leave it out, or set it to true.");
    });
    const days = volume.snapshotRetention ?? 5;
    if (days < minDays)
      report(`snapshotRetention is ${days} days; at least ${minDays} are wanted: snapshotRetention: ${minDays}.`);
  }),
  remediateResource: remediateVolume((volume, args) => {
    const { minDays } = settings.of(args);
    let isChanged = false;
    args.whenKnown(() => {
      if (volume.autoBackupEnabled !== false) return;
      volume.autoBackupEnabled = true;
      isChanged = true;
    });
    args.whenKnown(() => {
      if ((volume.snapshotRetention ?? 5) >= minDays) return;
      volume.snapshotRetention = minDays;
      isChanged = true;
    });
    return isChanged;
  }),
};
