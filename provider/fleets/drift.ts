// What others have changed in a fleet, and whether the next update has to repair it.
import { exitSince } from "../client/events.ts";
import { equal } from "../core/values.ts";
import type { Config } from "../machines/settings.ts";
import type { FleetInputs } from "./inputs.ts";
import { differencesOf, isUntagged, lacksMemoryLimit, templateIn, type Found } from "./members.ts";
import { regionsOf } from "./placement.ts";
import type { StandbyStep } from "./standbys.ts";

/** The beginning of an entry of `drift` that is about the number of Machines in a region. */
const ofCounts = "Machines in ";

/** The end of an entry of `drift` about a Machine that the fleet knows by its id alone. */
export const noTag = "has no tag of the fleet; the update sets it without a restart";

/** What others have changed, in a few words each. */
export function driftOf(
  members: readonly Found[],
  standbys: readonly StandbyStep[],
  wanted: Partial<FleetInputs>,
  config: Config,
): string[] {
  const regions = regionsOf(wanted);
  const serving = members.filter(({ phase }) => phase === "serving");
  const counts = [...new Set([...Object.keys(regions), ...serving.map(({ region }) => region)])].flatMap((region) => {
    const [live, count] = [serving.filter((one) => one.region === region).length, regions[region] ?? 0];
    const lost = members.filter((one) => one.phase === "lost" && one.region === region).map(({ name }) => name);
    const why = lost.length === 0 ? "" : ` (the hosts of ${lost.join(", ")} cannot be reached)`;
    return live === count ? [] : [`${ofCounts}${region}: ${live} instead of ${count}${why}`];
  });
  const changed = serving.flatMap((one) => {
    const { machine, name, template, isReady } = one;
    if (template === "outdated")
      return [
        `${name} (${machine.id}): config.${differencesOf(machine, config, wanted.volume !== undefined).join(", config.")} differs`,
      ];
    const isUnlimited = lacksMemoryLimit(machine, wanted.memoryLimitMb);
    if (isUntagged(machine) && template === "metadata" && !isUnlimited) return [`${name} (${machine.id}): ${noTag}`];
    if (template === "metadata")
      return [`${name} (${machine.id}): ${isUnlimited ? "memoryLimitMb" : "config.metadata"} differs`];
    if (isReady) return [];
    const exit = exitSince(machine);
    return [`${name} (${machine.id}): is ${machine.state} and not ready${exit === undefined ? "" : `, ${exit.text}`}`];
  });
  const ofStandbys = standbys.map((step) =>
    step.kind === "update"
      ? `${step.name} (${step.machine.id}): ${step.why}`
      : `${step.name}: ${step.kind === "create" ? "is missing" : "is not wanted"}`,
  );
  return [...counts, ...changed, ...ofStandbys].sort();
}

/**
 * Whether `drift` has to be repaired although no input differs. Other counts differ in `regions` as well. If they do not,
 * the program wants them, or ignores them because something else scales the fleet.
 */
export const mustRepair = ({ drift = [], regions }: { drift?: readonly string[]; regions?: unknown }): boolean =>
  drift.some((entry) => regions === undefined || !entry.startsWith(ofCounts));

/** The configuration that most serving Machines have instead of the template. */
export function mostCommonChange(members: readonly Found[], config: Config, hasVolume: boolean): Config | undefined {
  const serving = members.filter(({ phase }) => phase === "serving");
  const others = serving
    .filter(({ template }) => template !== "current")
    .map(({ machine }) => templateIn(machine, config, hasVolume));
  return others.find((one) => others.filter((other) => equal(one, other)).length * 2 > serving.length);
}
