// The Machines and volumes of a fleet as views: the engine shows them below the fleet, and keeps them in its state. Only the
// end of an update shows its result, because a rollout may go back: until then, each has a line of progress.
import { bareId } from "../../api/names.ts";
import { messageOf } from "../client/errors.ts";
import type { Volume } from "../client/listCache.ts";
import { versionOf, type Machine } from "../client/machine.ts";
import { PartialStateError } from "../core/partialState.ts";
import type { Call } from "../core/resource.ts";
import { equal, withoutUndefined } from "../core/values.ts";
import type { View, ViewStep } from "../core/views.ts";
import type { Template } from "./inputs.ts";
import {
  differencesOf,
  fleetMachines,
  machineType,
  machineView,
  viewName,
  type FleetKey,
  type Found,
} from "./members.ts";
import { RolloutFailure } from "./messages.ts";
import type { Step } from "./planner.ts";
import type { StandbyStep } from "./standbys.ts";
import { madeFor, owns, volumesIn } from "./volumes.ts";

const volumeType = "FleetVolume";

/** Milliseconds that the service has to answer after an update that was cancelled, or whose time limit has passed. */
const grace = 10_000;

/** What a fleet has. */
interface Objects {
  readonly machines: readonly Machine[];
  readonly volumes: readonly Volume[];
}

/** The views of a fleet. While the host of a Machine cannot be reached, its image is the one in the state. */
function viewsOf(fleet: FleetKey, { machines, volumes }: Objects, old: readonly View[]): View[] {
  const { app } = fleet;
  const ofMachines = machines.map((machine): View => {
    const view = machineView(fleet, machine.name ?? machine.id);
    const image = machine.config?.image ?? before(old, view)?.inputs["image"];
    return {
      ...view,
      inputs: withoutUndefined({ region: machine.region, image }),
      outputs: withoutUndefined({ id: `${app}/${machine.id}`, state: machine.state, version: versionOf(machine) }),
    };
  });
  const taken = new Set<string>();
  const ofVolumes = volumes.map((volume): View => {
    const { id, region, sizeGb, name: own = id } = volume;
    const wanted = madeFor(fleet, volume) ?? own;
    const name = taken.has(wanted) ? `${wanted}-${id}` : wanted;
    taken.add(wanted);
    const inputs = withoutUndefined({ region, sizeGb });
    return { type: volumeType, name: viewName(app, name), inputs, outputs: { id: `${app}/${id}` } };
  });
  return [...ofMachines, ...ofVolumes];
}

const before = (views: readonly View[], { type, name }: Pick<View, "type" | "name">): View | undefined =>
  views.find((one) => one.type === type && one.name === name);

/** What an update did. */
interface Done {
  /** Ids in the state before the update. */
  readonly known: ReadonlySet<string>;
  /** The steps that failed, and why. */
  readonly failures: RolloutFailure["steps"];
  /** Fields of the configuration that changed. */
  readonly fields: readonly string[];
}

/** A fleet that is changed. */
interface Changing {
  /** Whether its Machines have volumes. */
  readonly hasVolumes: boolean;
  /** Whether no state has it yet. */
  readonly isNew?: boolean;
  /** Fields of the configuration that change. */
  readonly fields?: readonly string[];
}

const idOf = ({ outputs: { id } }: View): string => (typeof id === "string" ? bareId(id) : "");

/**
 * How the views have changed. Those of another fleet that the same resource had before are left as they are. A volume that the fleet
 * knows by its mark alone may be in the state, too: its second creation would make the state invalid. Pure.
 */
export function changesOf(
  fleet: Pick<FleetKey, "app" | "machines" | "volumes">,
  old: readonly View[],
  live: readonly View[],
  done: Done,
): ViewStep[] {
  const isKnown = (view: View): boolean =>
    [done.known, fleet.machines, fleet.volumes].some((ids) => ids.has(idOf(view)));
  const own = old.filter((view) => isKnown(view) || before(live, view) !== undefined);
  const errors = new Map(done.failures.map(({ step, error }) => [step.name, { step, error }]));
  const errorOf = (view: View) =>
    view.type === machineType ? errors.get(view.name.slice(fleet.app.length + 1)) : undefined;
  const steps = live.flatMap((view): ViewStep[] => {
    const was = before(own, view);
    const failure = errorOf(view);
    const error = failure?.error;
    if (was === undefined)
      return [{ op: done.known.has(idOf(view)) && error === undefined ? "read" : "create", new: view, error }];
    if (failure?.step.kind === "destroy") return [{ op: "delete", old: was, error }];
    if (equal(was, view)) return error === undefined ? [] : [{ op: "update", old: was, new: view, error }];
    return [{ op: "update", old: was, new: view, changes: differences(was, view, done.fields), error }];
  });
  const gone = own
    .filter((view) => before(live, view) === undefined)
    .map((view): ViewStep => ({ op: "delete", old: view }));
  return [...steps, ...gone];
}

/** The fields that differ between two views of one object. A new version has the changed fields of the configuration. */
function differences(was: View, is: View, fields: readonly string[]): string[] {
  const [a, b]: Record<string, unknown>[] = [was, is].map(({ inputs, outputs }) => ({ ...inputs, ...outputs }));
  const names = Object.keys({ ...a, ...b }).filter((name) => !equal(a?.[name], b?.[name]));
  const shown = new Set(names.filter((name) => name !== "version"));
  if (names.includes("version")) for (const field of fields) shown.add(field);
  return shown.size === 0 ? names : [...shown];
}

/**
 * Does work that changes a fleet, and reports afterwards how its views have changed, also if the work failed. A fleet that failed
 * without a state has none: the engine would keep them without their fleet.
 */
export async function reportingViews<T>(
  call: Call,
  fleet: FleetKey,
  { hasVolumes, isNew = false, fields = [] }: Changing,
  work: () => Promise<T>,
): Promise<T> {
  const { views } = call;
  if (views === undefined) return work();
  const known = new Set([...fleet.machines, ...fleet.volumes]);
  const report = async (failures: RolloutFailure["steps"]): Promise<void> => {
    const { clock } = call.api;
    const api = call.api.within({ at: clock.now() + grace, allowed: `${grace / 1000}s` });
    try {
      const objects = await objectsOf(api, fleet, hasVolumes);
      const live = viewsOf(fleet, objects, views.old);
      await views.publish(changesOf(fleet, views.old, live, { known, failures, fields }));
    } catch (error) {
      call.warn(
        `Fleet ${fleet.app}/${fleet.name}: the state may not show the Machines as they are now; pulumi refresh corrects it: ${messageOf(error)}`,
      );
    }
  };
  try {
    const result = await work();
    await report([]);
    return result;
  } catch (error) {
    if (!isNew || error instanceof PartialStateError) await report(failuresIn(error));
    throw error;
  }
}

/**
 * Reports what others have changed. The engine takes no view from a refresh that the state does not have, so new ones come with
 * the next update. @param isKnown whether the state has the fleet
 */
export async function publishViews(
  { api, views }: Call,
  fleet: FleetKey,
  machines: readonly Machine[],
  { isKnown, hasVolumes }: { readonly isKnown: boolean; readonly hasVolumes: boolean },
): Promise<void> {
  if (views === undefined || (isKnown && views.old.length === 0)) return;
  const volumes = hasVolumes ? await ownVolumes(api, fleet) : [];
  const live = viewsOf(fleet, { machines, volumes }, views.old);
  const done = { known: new Set([...fleet.machines, ...fleet.volumes]), failures: [], fields: [] };
  const steps = changesOf(fleet, views.old, live, done);
  await views.publish(steps.filter(({ op }) => (op === "read") !== isKnown));
}

const ownVolumes = async (api: Call["api"], fleet: FleetKey): Promise<Volume[]> =>
  (await volumesIn(api, fleet.app)).filter((volume) => owns(fleet, volume));

async function objectsOf(api: Call["api"], fleet: FleetKey, hasVolumes: boolean): Promise<Objects> {
  const machines = await fleetMachines(api, fleet);
  return { machines, volumes: hasVolumes ? await ownVolumes(api, fleet) : [] };
}

/** The steps that failed, in an error of an update or in its causes. */
function failuresIn(error: unknown): RolloutFailure["steps"] {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof RolloutFailure) return at.steps;
  return [];
}

/** What an update is going to do. */
interface Planned {
  /** Undefined while the App does not exist. */
  readonly app: string | undefined;
  readonly template: Template;
  readonly members: readonly Found[];
  readonly waves: readonly (readonly Step[])[];
  readonly standbys: readonly StandbyStep[];
  readonly volumes: readonly Volume[];
  readonly key?: FleetKey;
}

/** How the views will change. A view that the state does not have yet cannot be shown as an update. Pure. */
export function plannedViews(planned: Planned, old: readonly View[]): ViewStep[] {
  const { app, template, waves, standbys } = planned;
  const steps = new Map<string, ViewStep>();
  const was = (type: string, name: string) => before(old, { type, name: viewName(app, name) });
  const create = (name: string, region: string): void => {
    const view = { type: machineType, name: viewName(app, name) };
    const { image } = template.config;
    const inputs = image === "" ? { region } : { region, image };
    steps.set(name, { op: "create", new: { ...view, inputs, outputs: {} } });
    if (template.volume === undefined || hasVolumeFor(planned, name) || was(volumeType, name)) return;
    const volume = { ...view, type: volumeType, inputs: withoutUndefined({ region, sizeGb: template.volume.sizeGb }) };
    steps.set(`volume of ${name}`, { op: "create", new: { ...volume, outputs: {} } });
  };
  const update = (name: string, changes: readonly string[]): void => {
    const view = was(machineType, name);
    if (view === undefined || steps.has(name) || changes.length === 0) return;
    const inputs = changes.includes("image") ? { ...view.inputs, image: template.config.image } : view.inputs;
    steps.set(name, { op: "update", old: view, new: { ...view, inputs }, changes });
  };
  const destroy = (name: string): void => {
    const view = was(machineType, name);
    if (view === undefined) steps.delete(name);
    else steps.set(name, { op: "delete", old: view });
  };
  for (const step of waves.flat()) {
    if (step.kind === "create") create(step.name, step.region);
    else if (step.kind === "destroy") destroy(step.name);
    else if (step.kind === "move") {
      destroy(step.name);
      create(step.to, step.region);
    } else update(step.name, changesBy(step, planned));
  }
  for (const step of standbys) {
    if (step.kind === "create") create(step.name, step.region);
    else if (step.kind === "destroy") destroy(step.name);
    else update(step.name, ["state"]);
  }
  return [...steps.values()];
}

/** Whether the fleet has a volume for a Machine already. */
const hasVolumeFor = ({ key, volumes }: Planned, name: string): boolean =>
  key !== undefined && volumes.some((volume) => madeFor(key, volume) === name);

/** The fields of a Machine that a step changes. */
function changesBy({ kind, name }: Step, { members, template }: Planned): readonly string[] {
  const machine = members.find((member) => member.name === name)?.machine;
  if (kind === "update" && machine) {
    const fields = differencesOf(machine, template.config, template.volume !== undefined);
    return fields.length > 0 ? fields : ["state"];
  }
  if (kind === "relabel") return ["metadata"];
  return kind === "await" || kind === "keep" ? ["state"] : [];
}
