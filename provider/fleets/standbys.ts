// The standbys of a fleet: Machines that are stopped, and that the service starts when a member has failed. They are put in
// order after a rollout, because they stand by for the members that it leaves.
import { createOnce, discard } from "../machines/create.ts";
import { untilIn } from "../machines/ready.ts";
import { differingFields, sameMetadata, sameVersion, toService, type Config } from "../machines/settings.ts";
import { versionOf, type Machine } from "../client/machine.ts";
import type { FleetInputs, Template } from "./inputs.ts";
import { configOf, isLost, keyOf, ownConfig, regionOf, standbysOf, type FleetKey, type Rollout } from "./members.ts";
import { regionsOf } from "./placement.ts";
import { standbyName } from "./planner.ts";
import { bringTo } from "./steps.ts";

/** What has to be done with one standby. */
export type StandbyStep =
  | { readonly kind: "create"; readonly name: string; readonly region: string }
  /** `why`: what differs, for example `is started`. */
  | { readonly kind: "update"; readonly name: string; readonly machine: Machine; readonly why: string }
  | { readonly kind: "destroy"; readonly name: string; readonly machine: Machine };

/** What to plan for. */
interface Situation {
  readonly wanted: Partial<FleetInputs>;
  readonly fleet: FleetKey;
  readonly template: Template;
  /** The Machines of the fleet. */
  readonly machines: readonly Machine[];
  /** Ids of the members to stand by for. */
  readonly members: readonly string[];
  /** The configuration of the last update, whose metadata is the fleet's too. */
  readonly before?: Config | undefined;
}

/** The configuration of a standby. */
function standbyConfig({ fleet, template, members }: Situation, region: string): Config {
  const config = configOf(fleet, template, { region, phase: "standby", volumeId: undefined });
  return { ...config, standbys: [...members].sort() };
}

/** Plans what has to be done. Pure. */
export function planStandbys(situation: Situation): StandbyStep[] {
  const { wanted, fleet, machines, members } = situation;
  const counts = regionsOf(wanted);
  const regions = Object.keys(counts).filter((region) => (counts[region] ?? 0) > 0);
  const count = members.length === 0 || regions.length === 0 ? 0 : (wanted.standbys ?? 0);
  const existing = standbysOf(machines).sort((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? -1 : 1));
  const kept = existing.filter((machine) => isLost(machine) || regions.includes(regionOf(machine))).slice(0, count);
  const steps: StandbyStep[] = existing
    .filter((machine) => !kept.includes(machine) && !isLost(machine))
    .map((machine) => ({ kind: "destroy", name: machine.name ?? machine.id, machine }));
  for (const machine of kept.filter((one) => !isLost(one))) {
    const why = differenceOf(situation, machine);
    if (why !== undefined) steps.push({ kind: "update", name: machine.name ?? machine.id, machine, why });
  }
  const taken = new Set(existing.map(({ name }) => name));
  for (let number = 1, missing = count - kept.length; missing > 0; number++) {
    const name = standbyName(fleet.name, number);
    if (taken.has(name)) continue;
    missing--;
    steps.push({ kind: "create", name, region: regions[(number - 1) % regions.length] ?? "" });
  }
  return steps;
}

/** What differs between a standby and the wanted one. */
function differenceOf(situation: Situation, machine: Machine): string | undefined {
  const config = standbyConfig(situation, regionOf(machine));
  const live = ownConfig(machine, config, situation.before);
  const fields = differingFields(live, config);
  if (fields.length > 0 || !sameVersion(live, config)) return `config.${fields.join(", config.")} differs`;
  // A tag has the version of its secrets.
  if (!sameMetadata(live, config)) return "config.metadata differs";
  return ["created", "stopped"].includes(machine.state) ? undefined : `is ${machine.state}`;
}

/** A step in words. */
export const describeStandby = ({ kind, name }: StandbyStep): string =>
  kind === "create" ? `create ${name}, stopped` : `${kind} ${name}`;

/** Puts the standbys in order. Returns whether anything was changed. */
export async function keepStandbys(
  rollout: Rollout,
  machines: readonly Machine[],
  members: readonly string[],
): Promise<boolean> {
  const { call, fleet, template, wanted, before } = rollout;
  const situation = { wanted, fleet, template, machines, members, before };
  const steps = planStandbys(situation);
  for (const step of steps) {
    call.progress(describeStandby(step));
    if (step.kind === "destroy") await discard(call, keyOf(rollout, step.machine));
    else if (step.kind === "create") await create(rollout, step, standbyConfig(situation, step.region));
    else {
      const config = standbyConfig(situation, regionOf(step.machine));
      await bringTo(rollout, step.machine, { config, state: "stopped", cordoned: false });
    }
  }
  return steps.length > 0;
}

async function create(
  rollout: Rollout,
  { name, region }: StandbyStep & { readonly kind: "create" },
  config: Config,
): Promise<void> {
  const { call, fleet, template, wanted } = rollout;
  const { minSecretsVersion } = template;
  const body = { name, region, config: toService(config), skipLaunch: true, minSecretsVersion };
  const made = await createOnce(call, undefined, fleet.app, body, { config, fallbackRegions: wanted.fallbackRegions });
  await untilIn(call, keyOf(rollout, made), "stopped", { version: versionOf(made), fresh: true });
}
