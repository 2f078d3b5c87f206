// Checks whether a declared fleet is valid, by its own fields.
import { toWire } from "../../api/case.ts";
import { machineConfig, type MachineConfig } from "../../api/machineConfig.ts";
import type { Problem } from "../core/resource.ts";
import { memoryProblems } from "../machines/memory.ts";
import { validate as validateMachine } from "../machines/validation.ts";
import { isJob } from "../machines/settings.ts";
import { optionsOf, type FleetInputs } from "./inputs.ts";

/** Rules about several fields. */
export function validate(inputs: Partial<FleetInputs>): Problem[] {
  const { config, strategy } = inputs;
  return [
    ...volumeProblems(inputs),
    ...standbyProblems(inputs),
    ...placementProblems(inputs),
    ...(config === undefined ? [] : templateProblems(config)),
    ...(config === undefined
      ? []
      : memoryProblems(inputs.memoryLimitMb, toWire(machineConfig, config) as MachineConfig)),
    ...(strategy === undefined ? [] : strategyProblems(strategy)),
  ];
}

function placementProblems({ regions, count, spreadOver, fallbackRegions = [] }: Partial<FleetInputs>): Problem[] {
  const problems: Problem[] = [];
  if (regions === undefined && count === undefined)
    problems.push({
      path: ["regions"],
      message: "is missing: how many Machines by region, such as { ams: 3 }, or count",
      about: ["regions", "count"],
    });
  if (regions !== undefined && count !== undefined)
    problems.push({ path: ["count"], message: "cannot be combined with regions, which has the counts" });
  if (count !== undefined && spreadOver === undefined)
    problems.push({
      path: ["spreadOver"],
      message: "is missing: the regions that count is spread over",
      about: ["spreadOver", "count"],
    });
  if (spreadOver !== undefined && regions !== undefined)
    problems.push({ path: ["spreadOver"], message: "needs count instead of regions" });
  const wanted = new Set([...Object.keys(regions ?? {}), ...(spreadOver ?? [])]);
  fallbackRegions.forEach((region, i) => {
    if (wanted.size === 1 && wanted.has(region))
      problems.push({ path: ["fallbackRegions", i], message: `${region} is the fleet's only region itself` });
  });
  return problems;
}

function volumeProblems({ volume, strategy, fallbackRegions = [], name }: Partial<FleetInputs>): Problem[] {
  if (volume === undefined) return [];
  const problems: Problem[] = [];
  if (strategy?.type === "bluegreen" && volume.copy !== true)
    problems.push({
      path: ["strategy", "type"],
      message:
        "bluegreen creates Machines beside the old ones, which hold the volumes; choose rolling or canary, or set volume.copy",
    });
  if (strategy?.maxSurge !== undefined && Number(strategy.maxSurge.replace("%", "")) > 0)
    problems.push({ path: ["strategy", "maxSurge"], message: "an extra Machine would have no volume; leave it out" });
  if (fallbackRegions.length > 0)
    problems.push({ path: ["fallbackRegions"], message: "a Machine runs in its volume's region; leave it out" });
  // The volumes are named `web_ams_1`, and a volume's name has 30 characters at most.
  if (name !== undefined && name.length > 17)
    problems.push({ path: ["name"], message: `got ${name.length} characters; with volumes, 17 are the most` });
  return problems;
}

function standbyProblems({ standbys = 0, config, volume }: Partial<FleetInputs>): Problem[] {
  if (standbys === 0) return [];
  const problems: Problem[] = [];
  if ((config?.services ?? []).length > 0)
    problems.push({ path: ["standbys"], message: "only Machines without config.services have standbys" });
  if (volume !== undefined)
    problems.push({ path: ["standbys"], message: "a standby would have no volume; leave it out" });
  return problems;
}

function templateProblems(config: FleetInputs["config"]): Problem[] {
  const problems = [...validateMachine({ config })];
  if ((config.mounts ?? []).length > 0)
    problems.push({
      path: ["config", "mounts"],
      message: "a volume is mounted by one Machine; set the fleet's volume, which gives each Machine its own",
    });
  if (config.standbys !== undefined)
    problems.push({
      path: ["config", "standbys"],
      message: "a fleet's Machines run, and a standby does not; set the fleet's standbys",
    });
  if (isJob(config))
    problems.push({
      path: ["config"],
      message: 'a fleet keeps its Machines running: schedule, autoDestroy and the restart policy "no" are for Machines',
    });
  return problems;
}

function strategyProblems(strategy: NonNullable<FleetInputs["strategy"]>): Problem[] {
  const { type = "rolling", maxUnavailable, maxSurge = "0" } = strategy;
  const isNone = (share: string | undefined): boolean => share !== undefined && Number(share.replace("%", "")) === 0;
  const problems: Problem[] = Object.entries(optionsOf)
    .filter(([name, types]) => strategy[name as keyof typeof strategy] !== undefined && !types.includes(type))
    .map(([name, types]) => ({
      path: ["strategy", name],
      message: `is for the strategy ${types.join(" and ")}; this one is ${type}`,
    }));
  if (isNone(maxUnavailable) && isNone(maxSurge))
    problems.push({
      path: ["strategy", "maxUnavailable"],
      message: `got ${JSON.stringify(maxUnavailable)}: without maxSurge, no Machine could ever be updated`,
    });
  if (maxUnavailable?.endsWith("%") && Number(maxUnavailable.slice(0, -1)) > 100)
    problems.push({
      path: ["strategy", "maxUnavailable"],
      message: `got ${JSON.stringify(maxUnavailable)}; 100% is the most`,
    });
  return problems;
}
