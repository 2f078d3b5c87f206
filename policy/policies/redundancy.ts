import type { StackValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { refersTo } from "../core/references.ts";
import { ifKnown } from "../core/unknown.ts";
import { defineSettings } from "../core/settings.ts";
import { validateStack, type StackResource } from "../core/validate.ts";
import { isLike } from "../core/wildcard.ts";
import { isJob } from "../core/machine.ts";

const settings = defineSettings({
  machines: z.int().min(1).default(2).describe("Lowest number of Machines of a production App."),
  regions: z.int().min(1).default(1).describe("Lowest number of their regions."),
  apps: z
    .array(z.string().min(1))
    .default([])
    .describe("Names of the program's App resources that count as production; `*` stands for any text."),
  mark: z
    .record(z.string(), z.string())
    .default({ environment: "production" })
    .describe("Metadata of production: an App counts as production if one of its Machines has all of it."),
});

/**
 * A Machine that serves the App all the time: no job, no standby. One that stops when idle starts again when needed.
 */
const isThere = ({ props }: StackResource<"Machine">): boolean =>
  !isJob(props) && !props.cordoned && (props.config.standbys ?? []).length === 0;

/** The region of a Machine, now or after its creation; a preview knows it if the program leaves no choice. */
function regionOf({ props }: StackResource<"Machine">): string | undefined {
  const placed = ifKnown(() => props.placedRegion);
  if (placed !== undefined) return placed;
  const isFixed = props.region !== undefined && (props.fallbackRegions ?? []).length === 0;
  // A preview of the dynamic binding has no such output: there, it is the region that is tried first.
  return isFixed ? props.region : (props.placedRegion ?? props.region);
}

/** One Machine, or one region, may fail. */
export const redundancy: StackValidationPolicy = {
  name: "redundancy",
  description: "Production Apps have several Machines, in several regions.",
  severity: "high",
  remediationSteps: "Add Machines of the App in other regions; jobs, standbys and cordoned Machines do not count.",
  configSchema: settings.schema,
  validateStack: validateStack((args, report) => {
    const wanted = settings.of(args);
    const marks = Object.entries(wanted.mark);
    args.each(args.all("App"), (app) => {
      const own = args.all("Machine").filter((machine) => refersTo(machine, "app", app));
      const isMarked = ({ props }: StackResource<"Machine">): boolean =>
        marks.length > 0 && marks.every(([key, value]) => props.config.metadata?.[key] === value);
      if (!isLike(app.name, wanted.apps) && !own.some((machine) => isMarked(machine))) return;
      // An App without Machines here gets them elsewhere, or contains other objects.
      if (own.length === 0 && !wanted.apps.includes(app.name)) return;
      const placed = own.filter((machine) => isThere(machine));
      if (placed.length < wanted.machines)
        report(`It has ${count(placed.length, "Machine")}; at least ${wanted.machines} are wanted.`, app.urn);
      // The region of a Machine is unknown before its creation, so it is only read if needed.
      if (wanted.regions === 1 || placed.length === 0) return;
      const regions = new Set(placed.map((machine) => regionOf(machine)));
      // If the service chooses the region, the preview of the dynamic binding does not know it.
      if (regions.size < wanted.regions && !regions.has(undefined))
        report(`Its Machines are in ${count(regions.size, "region")}; at least ${wanted.regions} are wanted.`, app.urn);
    });
  }),
};

const count = (amount: number, what: string): string => `${amount} ${what}${amount === 1 ? "" : "s"}`;
