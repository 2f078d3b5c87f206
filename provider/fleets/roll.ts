// Brings a fleet to its template: the rollout, the way back if it fails, and the state afterwards.
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import type { Machine } from "../client/machine.ts";
import { PartialStateError } from "../core/partialState.ts";
import type { Call } from "../core/resource.ts";
import { MachinesError } from "../client/errors.ts";
import type { Config } from "../machines/settings.ts";
import { committedOf, gateOf, type Past } from "./gate.ts";
import {
  adopt,
  fleetMachines,
  membersOf,
  phaseOf,
  tagKnown,
  volumeOf,
  type FleetKey,
  type Rollout,
} from "./members.ts";
import { notRolledBack, rolledBack, RolloutFailure, waitingText } from "./messages.ts";
import { Report } from "./report.ts";
import { rollOut } from "./rollout.ts";
import { keepStandbys } from "./standbys.ts";
import { mountedByName, volumesIn } from "./volumes.ts";

/** The outputs of a fleet that its handlers read from the state, with its inputs. */
type State = Omit<Past, "machines"> & {
  readonly machines?: readonly { readonly id: string }[] | undefined;
  readonly otherMachines?: readonly string[] | undefined;
  readonly adopt?: readonly string[] | undefined;
  readonly volumes?: readonly string[] | undefined;
  readonly keptVolumes?: readonly string[] | undefined;
};

/** The ids of the Machines that a state has. */
export const machinesOf = (state: Pick<State, "machines" | "otherMachines">): Set<string> =>
  new Set([...(state.machines ?? []).map(({ id }) => id), ...(state.otherMachines ?? [])].map(bareId));

/** A fleet, with what its state knows to be its own (R18). */
export function keyOf(
  call: Pick<Call, "run">,
  id: { readonly app: string; readonly name: string },
  owner: string | undefined,
  state: State = {},
): FleetKey {
  // A state of an earlier version does not say which volumes were kept, so that none of them is deleted.
  const { volumes = [], keptVolumes = volumes } = state;
  return {
    ...{ app: id.app, name: id.name, owner },
    stack: call.run.stateIds.own,
    stacks: call.run.stateIds.all,
    machines: machinesOf(state),
    volumes: new Set(volumes.map(bareId)),
    kept: new Set(keptVolumes.map(bareId)),
  };
}

/** A state of an earlier version has no ids of volumes: then those that the fleet's Machines mount are its own. */
export async function knowVolumes(
  api: Api,
  fleet: FleetKey,
  state: State,
  machines: readonly Machine[],
): Promise<void> {
  if (state.volume === undefined || state.volumes !== undefined) return;
  for (const id of mountedByName(machines, await volumesIn(api, fleet.app))) fleet.volumes.add(id);
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name.localeCompare(b.name, "en", { numeric: true });

/** The outputs of a fleet. */
export function toLive({ app, name, volumes, kept }: FleetKey, hasVolumes: boolean, machines: readonly Machine[]) {
  const serving = machines.filter((machine) => phaseOf(machine) === "serving");
  const others = machines.filter((machine) => !serving.includes(machine)).map(({ id }) => `${app}/${id}`);
  const [first] = serving;
  const mounted = new Set(machines.map(volumeOf));
  const keptNow = [...kept].filter((id) => !mounted.has(id));
  const { registry, repository, tag, digest } = first?.imageRef ?? {};
  return {
    app,
    name,
    machines: serving
      .map(({ id, name: machine, region, state, version, instanceId, privateIp, imageRef }) => ({
        ...{ id: `${app}/${id}`, name: machine ?? id, region, state, privateIp, digest: imageRef?.digest },
        version: version ?? instanceId,
      }))
      .sort(byName),
    awaited: machines.find((machine) => phaseOf(machine) === "green")?.imageRef?.digest,
    otherMachines: others.length === 0 ? undefined : others.sort(),
    volumes: hasVolumes ? [...volumes].map((id) => `${app}/${id}`).sort() : undefined,
    keptVolumes: hasVolumes ? keptNow.map((id) => `${app}/${id}`).sort() : undefined,
    image:
      repository === undefined
        ? undefined
        : `${registry === undefined ? "" : `${registry}/`}${repository}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`,
    rollout: "complete",
    drift: [] as string[],
  };
}

/** A configuration, with the metadata of an earlier one too. */
const withMetadata = (config: Config, earlier: Config | undefined): Config => ({
  ...config,
  metadata: { ...earlier?.metadata, ...config.metadata },
});

/** The configuration of the last update. If that failed, some Machines have the metadata of the one before. */
const ownedBefore = ({ config, committed }: State): Config | undefined => config && withMetadata(config, committed);

/** Carries a rollout out. Goes back to the last complete one if that is wanted. `old`: the state before. */
export async function roll(rollout: Omit<Rollout, "committed" | "isPromoted" | "before">, old: State | undefined) {
  const { call, fleet, wanted } = rollout;
  const committed = old && committedOf(old);
  const gate = gateOf(old, wanted);
  const whole: Rollout = { ...rollout, before: old && ownedBefore(old), committed, isPromoted: gate !== "closed" };
  const live = (machines: readonly Machine[]) => toLive(fleet, wanted.volume !== undefined, machines);
  if (old) {
    const known = await fleetMachines(call.api, fleet);
    await knowVolumes(call.api, fleet, old, known);
    const ids = new Set(old.machines?.map(({ id }) => bareId(id)));
    const serving = known.filter(({ id }) => ids.has(id));
    // After a rollout that did not end, not all of them have the secrets of the state.
    const version = old.rollout === "complete" ? old.minSecretsVersion : undefined;
    await tagKnown(call, fleet, serving, version);
  }
  await adopt(call, fleet, wanted.adopt ?? [], old?.adopt ?? []);
  const report = new Report(whole);
  const outcome = await rollOut(whole, () => report.goesOn(false)).catch(async (error: unknown) => {
    const machines = error instanceof RolloutFailure ? error.machines : undefined;
    // If the service does not answer, the state keeps what it had.
    const known = machines ? live(machines) : { ...live([]), ...lastKnown(old) };
    const failed = { ...known, rollout: "failed", committed, gatePassed: gate === "passed" ? true : undefined };
    const mayGoBack =
      error instanceof RolloutFailure &&
      error.code !== "cancelled" &&
      wanted.onFailure === "rollback" &&
      !isExposed(whole, error.machines ?? []);
    if (mayGoBack && committed !== undefined) {
      const from = committed === old?.committed ? "committed" : "config";
      throw await goBack(whole, report, { committed, from, why: error, failed, live });
    }
    const isCancelled = error instanceof MachinesError && error.code === "cancelled";
    await report.ends(isCancelled ? "interrupted" : "failed", error);
    throw new PartialStateError(failed, error);
  });
  const { machines, state } = outcome;
  const result = (all: readonly Machine[]) => {
    const found = { ...live(all), rollout: state, gatePassed: undefined };
    // A configuration that no Machine has run is nothing to return to.
    const isRun = state === "complete" && found.machines.length > 0;
    return { ...found, committed: isRun ? undefined : committed };
  };
  if (state === "canary" || state === "green") {
    const waiting = waitingText(whole, machines, state);
    call.warn(waiting);
    await report.ends("waiting", waiting);
  }
  if (state !== "complete") return result(machines);
  const isChanged = await keepStandbys(whole, machines, servingIds(machines)).catch(async (error: unknown) => {
    await report.ends("failed", error);
    throw new PartialStateError(result(machines), error);
  });
  await report.ends("succeeded");
  return result(isChanged ? await fleetMachines(call.api, fleet) : machines);
}

const lastKnown = ({ machines, otherMachines, volumes, keptVolumes }: State = {}) => ({
  ...(machines === undefined ? {} : { machines }),
  otherMachines,
  volumes,
  keptVolumes,
});

export const servingIds = (machines: readonly Machine[]): string[] =>
  machines.filter((machine) => phaseOf(machine) === "serving").map(({ id }) => id);

/** Whether traffic reaches the new Machines of a blue/green rollout: from then on they are never destroyed for the old ones. */
const isExposed = ({ fleet, wanted, template, before }: Rollout, machines: readonly Machine[]): boolean =>
  wanted.strategy?.type === "bluegreen" &&
  membersOf(machines, fleet, template, before).some((one) => one.phase === "serving" && one.template !== "outdated");

/** A rollout that failed. */
interface Failed {
  /** The configuration to go back to. */
  readonly committed: Config;
  /** Where the state has it. */
  readonly from: "committed" | "config";
  readonly why: RolloutFailure;
  /** The state if that fails as well. */
  readonly failed: object;
  readonly live: (machines: readonly Machine[]) => object;
}

/** Goes back after a failure. Returns the error of the update. */
async function goBack(
  rollout: Rollout,
  report: Report,
  { committed, from, why, failed, live }: Failed,
): Promise<PartialStateError> {
  const { call, fleet, wanted, template } = rollout;
  call.progress(`the rollout of Fleet ${fleet.app}/${fleet.name} failed; rolling back to the old configuration`);
  const type = wanted.strategy?.type === "canary" ? "rolling" : wanted.strategy?.type;
  const back: Rollout = {
    ...rollout,
    wanted: { ...wanted, config: committed, strategy: { ...wanted.strategy, type }, releaseCommand: undefined },
    template: { ...template, config: committed },
    before: withMetadata(template.config, rollout.before),
    failed: template.config,
    isPromoted: true,
  };
  try {
    const { machines } = await rollOut(back, () => report.goesOn(true));
    await report.ends("rolled back", why);
    const error = rolledBack(why, back, machines);
    const state = { ...live(machines), gatePassed: undefined };
    // The state would have the secrets in it in plain text if the program has removed them.
    if (call.marksInputsOnly) return new PartialStateError({ ...state, rollout: "failed", committed }, error);
    return new PartialStateError({ ...state, config: committed, committed: undefined }, error, { config: from });
  } catch (error) {
    const both = notRolledBack(why, back, error);
    await report.ends("failed", both);
    return new PartialStateError({ ...failed }, both);
  }
}
