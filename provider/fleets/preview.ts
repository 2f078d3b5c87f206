// What an update of a fleet will do, for the user of a preview.
import type { Api } from "../client/api.ts";
import { isNotFound } from "../client/errors.ts";
import type { Machine } from "../client/machine.ts";
import { bareId } from "../../api/names.ts";
import type { Note, PreviewRun } from "../core/resource.ts";
import { greatestOf, hasUnknown } from "../core/values.ts";
import type { View, ViewStep } from "../core/views.ts";
import { ownerTag } from "../machines/create.ts";
import { gateOf } from "./gate.ts";
import { wantedOf, type FleetInputs } from "./inputs.ts";
import { fleetOf } from "../machines/live.ts";
import { sameVersion } from "../machines/settings.ts";
import {
  configOf,
  isUntagged,
  membersOf,
  noConfig,
  regionOf,
  sightOf,
  templateIn,
  unproven,
  unprovenProblem,
  type FleetKey,
  type Found,
} from "./members.ts";
import { describe } from "./messages.ts";
import { regionsOf, totalOf } from "./placement.ts";
import { planAll, promised, type Step } from "./planner.ts";
import { describeStandby, planStandbys, type StandbyStep } from "./standbys.ts";
import { plannedViews } from "./views.ts";
import { adoptVolumes, foreignFor, foundByName, machinesOf, volumesIn } from "./volumes.ts";

/** Lines of a plan that are shown at most. */
const mostLines = 30;

/** The ids of the members after some steps; the names of those that do not exist yet. */
function membersAfter(members: readonly Found[], steps: readonly Step[]): string[] {
  const gone = new Set(steps.filter(({ kind }) => ["destroy", "keep", "move"].includes(kind)).map(({ name }) => name));
  const added = steps.flatMap((step) => (step.kind === "create" ? [step.name] : step.kind === "move" ? [step.to] : []));
  const left = members.filter(({ name, phase }) => !gone.has(name) && ["serving", "green"].includes(phase));
  return [...left.map(({ machine }) => machine.id), ...added.filter((name) => !gone.has(name))];
}

/** The Machines of an App, if it exists yet. */
const machinesIn = (api: Api, app: string): Promise<readonly Machine[]> =>
  api.machines.list({ appName: app }).catch((error: unknown) => {
    // The App is created by the same update.
    if (isNotFound(error)) return [];
    throw error;
  });

/**
 * The Machines without tags that a preview counts as the fleet's, because it does not see the ids in the state: those that have the
 * configuration of its state, where so many of its Machines are missing. Where more of them are there, nothing shows which are its.
 * @param before the inputs in its state
 * @param isOfOther whether another resource of the state has a Machine, as far as the preview knows yet
 */
export function untaggedOf(
  name: string,
  machines: readonly Machine[],
  before: Partial<FleetInputs>,
  isOfOther: (machine: Machine) => boolean,
): readonly Machine[] {
  const { config, volume } = before;
  if (config === undefined) return [];
  const alike = machines.filter(
    (one) => isUntagged(one) && !isOfOther(one) && sameVersion(templateIn(one, config, volume !== undefined), config),
  );
  return Object.entries(regionsOf(before)).flatMap(([region, count]) => {
    const missing = count - machines.filter((one) => fleetOf(one) === name && regionOf(one) === region).length;
    const here = alike.filter((one) => regionOf(one) === region);
    return here.length <= missing ? here : [];
  });
}

/** A fleet as a preview knows it: without the ids in its state. So those that are named like it count for it there. */
function keyFor(
  app: string,
  name: string,
  machines: readonly Machine[],
  run: PreviewRun,
  before: Partial<FleetInputs>,
): FleetKey {
  const [stack = ""] = run.stateIds.all;
  const key = {
    ...{ app, name, owner: undefined, stack, stacks: run.stateIds.all },
    ...{ volumes: new Set<string>(), kept: new Set<string>() },
  };
  const perhaps = unproven(machines, { name, machines: new Set() });
  const untagged = untaggedOf(name, machines, before, (one) => run.program.isInState(one.config?.metadata?.[ownerTag]));
  return { ...key, machines: new Set([...perhaps, ...untagged].map(({ id }) => id)) };
}

/**
 * The Machines of an App, those among them that the update adopts with the tags that it gives them. Those that an earlier update adopted
 * are noted in the fleet.
 * @param before the inputs in the state
 */
function afterAdoption(
  machines: readonly Machine[],
  fleet: FleetKey,
  { adopt = [] }: FleetInputs,
  before: Partial<FleetInputs>,
): readonly Machine[] {
  const adopted = new Set(before.adopt?.map(bareId));
  const toAdopt = new Set<string>();
  for (const id of adopt.map(bareId)) (adopted.has(id) ? fleet.machines : toAdopt).add(id);
  return machines.map((machine) => {
    const { id, region, config } = machine;
    if (config === undefined || !toAdopt.has(id) || !isUntagged(machine) || region === undefined) return machine;
    const tags = configOf(fleet, { config: noConfig }, { region, phase: "serving", volumeId: undefined }).metadata;
    return { ...machine, config: { ...config, metadata: { ...config.metadata, ...tags } } };
  });
}

/** The name of a fleet. A program does not know a generated one before the fleet exists. */
const nameIn = ({ name }: FleetInputs, machines: readonly Machine[], owner: string | undefined): string | undefined =>
  name ?? machines.filter((one) => one.config?.metadata?.[ownerTag] === owner).map(fleetOf)[0];

/** What is there, and the steps of the update. */
type Situation = Exclude<Awaited<ReturnType<typeof situationOf>>, undefined>;

/** @param known the Machines of the App; they are listed when left out */
async function situationOf(
  inputs: FleetInputs,
  api: Api,
  owner: string | undefined,
  run: PreviewRun,
  known?: readonly Machine[],
) {
  const app = bareId(inputs.app);
  const all = known ?? (await machinesIn(api, app));
  const name = nameIn(inputs, all, owner);
  if (name === undefined) return undefined;
  const before = run.program.inputsInState(owner) as Partial<FleetInputs>;
  const key = keyFor(app, name, all, run, before);
  const { machines, taken } = sightOf(afterAdoption(all, key, inputs, before), key);
  // In a program, a list of versions may be given.
  const { minSecretsVersion: version } = inputs;
  const minSecretsVersion = Array.isArray(version) ? (greatestOf(version) as number | undefined) : version;
  const template = { ...inputs, minSecretsVersion };
  const members = membersOf(machines, key, template, undefined);
  const wanted = wantedOf(inputs, gateOf({ ...before, rollout: "canary" }, template) !== "closed");
  const volumes = inputs.volume ? await volumesIn(api, app).catch(noneWithoutApp) : [];
  const waves = planAll({ wanted, members, fleet: name, used: machinesOf(volumes), taken });
  return { machines, name, key, template, members, wanted, waves, volumes };
}

const noneWithoutApp = (error: unknown): [] => {
  if (isNotFound(error)) return [];
  throw error;
};

/** Why a new fleet cannot be created: nothing shows whose some Machines are. */
export async function machinesProblem(
  inputs: FleetInputs,
  api: Api,
  owner: string | undefined,
  run: PreviewRun,
): Promise<string | undefined> {
  const app = bareId(inputs.app);
  if (run.program.isInState(owner)) return undefined;
  return unprovenProblem(app, inputs.name ?? "", await machinesIn(api, app));
}

/** Why a new fleet cannot be created: volumes have names for its Machines, and it did not make them. */
export async function volumesProblem(
  inputs: FleetInputs,
  api: Api,
  owner: string | undefined,
  run: PreviewRun,
): Promise<string | undefined> {
  const found = run.program.isInState(owner) ? undefined : await situationOf(inputs, api, owner, run);
  if (found === undefined) return undefined;
  const { key, waves, volumes } = found;
  adoptVolumes(key, inputs.volume ?? {});
  for (const step of waves.flat()) {
    const foreign = step.kind === "create" ? foreignFor(key, step.name, step.region, volumes) : [];
    if (foreign.length > 0) return foundByName(key.app, step.name, foreign);
  }
  return undefined;
}

/** The steps for the standbys. */
const standbySteps = ({ template, key, machines, members, waves }: Situation): StandbyStep[] =>
  planStandbys({
    ...{ wanted: template, fleet: key, template, machines },
    members: membersAfter(members, waves.flat()),
  });

/** The steps of the update; undefined if there are none. */
export async function previewRollout(
  inputs: FleetInputs,
  api: Api,
  owner: string | undefined,
  run: PreviewRun,
): Promise<Note | undefined> {
  const found = await situationOf(inputs, api, owner, run);
  if (found === undefined) return undefined;
  const { name, members, wanted, waves } = found;
  const standbys = standbySteps(found);
  if (waves.length + standbys.length === 0) return undefined;
  const total = totalOf(wanted.regions);
  const ready = members.filter((one) => one.isReady && one.phase === "serving").length;
  const least = wanted.strategy === "immediate" ? 0 : Math.min(ready, promised(wanted));
  const isRollout = members.some(({ template }) => template === "outdated");
  const head = isRollout
    ? `Fleet ${name}: ${wanted.strategy} update, at least ${least} of ${total} Machines are ready at every moment:`
    : `Fleet ${name}:`;
  const steps = [...waves.map((wave) => wave.map(describe).join(", ")), ...standbys.map(describeStandby)];
  const lines = steps.map((step, i) => `  ${i + 1}. ${step}`);
  const more = lines.length > mostLines ? [`  … and ${lines.length - mostLines} more`] : [];
  return { note: [head, ...lines.slice(0, mostLines), ...more].join("\n") };
}

/** The steps of the update as one text, for plans; null if they depend on what is unknown. */
export async function plannedSteps(
  inputs: Partial<FleetInputs>,
  machines: readonly Machine[],
  { api, owner, run }: { readonly api: Api; readonly owner: string | undefined; readonly run: PreviewRun },
): Promise<string | null> {
  if (hasUnknown(inputs) || inputs.config === undefined) return null;
  const found = await situationOf(inputs as FleetInputs, api, owner, run, machines);
  if (found === undefined) return null;
  const steps = [
    ...found.waves.map((wave) => wave.map(describe).join(", ")),
    ...standbySteps(found).map(describeStandby),
  ];
  return steps.join("; ") || "none";
}

/** How the Machines and volumes of the fleet will change. */
export async function previewViews(
  inputs: Partial<FleetInputs>,
  old: readonly View[],
  { api, owner, run }: { readonly api: Api; readonly owner: string | undefined; readonly run: PreviewRun },
): Promise<readonly ViewStep[]> {
  const { name, config, strategy, volume } = inputs;
  if (name === undefined || [name, inputs.regions, inputs.count, inputs.spreadOver, inputs.adopt].some(hasUnknown))
    return [];
  // Of a new App only the run knows the name. Then the fleet has nothing yet.
  const isKnown = inputs.app !== undefined && !hasUnknown(inputs.app);
  if (isKnown && !hasUnknown({ config, strategy, volume })) {
    const found = await situationOf(inputs as FleetInputs, api, owner, run);
    return found === undefined
      ? []
      : plannedViews({ ...found, app: found.key.app, standbys: standbySteps(found) }, old);
  }
  if (run.program.isInState(owner)) return [];
  const { regions, count, spreadOver } = inputs;
  const nothing = { members: [], used: new Set<string>(), taken: new Set<string>() };
  const waves = planAll({ ...nothing, fleet: name, wanted: wantedOf({ regions, count, spreadOver }, true) });
  const app = isKnown ? bareId(inputs.app ?? "") : undefined;
  return plannedViews(
    { ...nothing, app, template: { config: noConfig, volume }, waves, volumes: [], standbys: [] },
    old,
  );
}
