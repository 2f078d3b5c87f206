import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { resourceName, type CheckArgs } from "../core/validate.ts";
import {
  validateFleet,
  validateIpAssignment,
  validateMachine,
  validatePostgresCluster,
  validateVolume,
} from "../validators.ts";

const settings = defineSettings({
  regions: z
    .array(z.string().min(1))
    .default([])
    .describe("Codes of the regions that may be used, for example `ams`. An empty list allows any."),
});

type Report = (message: string) => void;

function check(region: string | undefined, path: string, args: CheckArgs, report: Report): void {
  const { regions } = settings.of(args);
  if (regions.length === 0) return;
  const allowed = `Allowed ${regions.length === 1 ? "is" : "are"} ${regions.join(", ")}.`;
  if (region === undefined) report(`${path} is left out, and the service may pick any. ${allowed}`);
  else if (!regions.includes(region)) report(`${path} is one that is not allowed. ${allowed}`);
}

/** Whether a property is given, known or not: the engine omits undefined properties. */
const isSet = <T extends object>(inputs: T, property: keyof T): boolean => Object.hasOwn(inputs, property);

/** Data and work stay in the allowed regions. */
export const allowedRegions: ResourceValidationPolicy = {
  name: "allowed-regions",
  description: "Machines, volumes, clusters and addresses are in regions that are allowed.",
  severity: "high",
  remediationSteps: "Set `region` to one that is allowed, or add the region to `regions`.",
  configSchema: settings.schema,
  validateResource: [
    validateMachine((machine, args, report) => {
      if (resourceName(args.type) === "Fleet") args.notApplicable("the regions of a fleet are checked as a whole");
      args.whenKnown(() => {
        // A Machine with a volume runs in the volume's region, which was allowed.
        if (machine.region !== undefined || (machine.config.mounts ?? []).length === 0)
          check(machine.region, "region", args, report);
      });
      args.each(machine.fallbackRegions, (region, i) => check(region, `fallbackRegions[${i}]`, args, report));
    }),
    validateFleet((fleet, args, report) => {
      args.whenKnown(() => {
        for (const region of Object.keys(fleet.regions ?? {})) check(region, `regions.${region}`, args, report);
      });
      args.each(fleet.spreadOver, (region, i) => check(region, `spreadOver[${i}]`, args, report));
      args.each(fleet.fallbackRegions, (region, i) => check(region, `fallbackRegions[${i}]`, args, report));
    }),
    validateVolume((volume, args, report) => {
      // A copy without a region is created in its source's region, which was allowed.
      if (volume.region === undefined && (isSet(volume, "snapshotId") || isSet(volume, "sourceVolumeId"))) return;
      check(volume.region, "region", args, report);
    }),
    validatePostgresCluster((cluster, args, report) => {
      if (cluster.region === undefined && (isSet(cluster, "restore") || isSet(cluster, "fork"))) return;
      check(cluster.region, "region", args, report);
    }),
    validateIpAssignment((address, args, report) => {
      // If omitted or `global`, it serves all regions of the App, which are checked for its Machines.
      if (address.region !== undefined && address.region !== "global") check(address.region, "region", args, report);
    }),
  ],
};
