// Fleets: the Machines of one template in an App, and the rollout from one template to the next (docs/fleets.md).
import { randomBytes } from "node:crypto";
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import { MachinesError } from "../client/errors.ts";
import { findVolume } from "../client/listCache.ts";
import type { Machine } from "../client/wait.ts";
import { pathId } from "../core/ids.ts";
import { PartialStateError } from "../core/partialState.ts";
import { defineResource, type Call } from "../core/resource.ts";
import { ownerTag, stackTag } from "../machines/create.ts";
import { fleetOf, liveMachines } from "../machines/live.ts";
import type { Config } from "../machines/settings.ts";
import { regionsProblem, roomWarning } from "../shared/region.ts";
import { driftOf, mostCommonChange, mustRepair } from "./drift.ts";
import { committedOf, gateOf, isWaiting, type Past } from "./gate.ts";
import { inputs, outputs, type Template } from "./inputs.ts";
import {
  adopt,
  fleetMachines,
  membersOf,
  phaseOf,
  noConfig,
  refuseUnproven,
  regionOf,
  sightOf,
  standbysOf,
  templateIn,
  type FleetKey,
  type Rollout,
} from "./members.ts";
import { notRolledBack, rolledBack, RolloutFailure, waitingText } from "./messages.ts";
import { regionsOf, totalOf } from "./planner.ts";
import { machinesProblem, previewRollout, volumesProblem } from "./preview.ts";
import { destroyAll, rollOut } from "./rollout.ts";
import { keepStandbys, planStandbys } from "./standbys.ts";
import { validate } from "./validation.ts";
import { adoptVolumes, mountedByName, volumesIn } from "./volumes.ts";

/** The outputs of a fleet that its handlers read from the state, with its inputs. */
type State = Omit<Past, "machines"> & {
  readonly machines?: readonly { readonly id: string }[] | undefined;
  readonly otherMachines?: readonly string[] | undefined;
  readonly volumes?: readonly string[] | undefined;
};

/** A fleet, with what its state knows to be its own (R18). */
function keyOf(
  call: Pick<Call, "run">,
  id: { readonly app: string; readonly name: string },
  owner: string | undefined,
  state: State = {},
): FleetKey {
  const { machines = [], otherMachines = [], volumes = [] } = state;
  return {
    ...{ app: id.app, name: id.name, owner },
    stack: call.run.stateId(),
    stacks: call.run.stateIds,
    machines: new Set([...machines.map((machine) => bareId(machine.id)), ...otherMachines.map(bareId)]),
    volumes: new Set(volumes.map(bareId)),
  };
}

/** A state of an earlier version has no ids of volumes: then those that the fleet's Machines mount are its own. */
async function knowVolumes(api: Api, fleet: FleetKey, state: State, machines: readonly Machine[]): Promise<void> {
  if (state.volume === undefined || state.volumes !== undefined) return;
  for (const id of mountedByName(machines, await volumesIn(api, fleet.app))) fleet.volumes.add(id);
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name.localeCompare(b.name, "en", { numeric: true });

/** The outputs of a fleet. */
function toLive({ app, name, volumes }: FleetKey, hasVolumes: boolean, machines: readonly Machine[]) {
  const serving = machines.filter((machine) => phaseOf(machine) === "serving");
  const others = machines.filter((machine) => !serving.includes(machine)).map(({ id }) => `${app}/${id}`);
  const [first] = serving;
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
    image:
      repository === undefined
        ? undefined
        : `${registry === undefined ? "" : `${registry}/`}${repository}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`,
    rollout: "complete",
    drift: [] as string[],
  };
}

/** Carries a rollout out. Goes back to the last complete one if that is wanted. `old`: the state before. */
async function roll(rollout: Omit<Rollout, "committed" | "isPromoted" | "before">, old: State | undefined) {
  const { call, fleet, wanted } = rollout;
  const committed = old && committedOf(old);
  const gate = gateOf(old, wanted);
  const whole: Rollout = { ...rollout, before: old?.config, committed, isPromoted: gate !== "closed" };
  const live = (machines: readonly Machine[]) => toLive(fleet, wanted.volume !== undefined, machines);
  if (old) await knowVolumes(call.api, fleet, old, await fleetMachines(call.api, fleet));
  await adopt(call, fleet, wanted.adopt ?? []);
  const outcome = await rollOut(whole).catch(async (error: unknown) => {
    const machines = error instanceof RolloutFailure ? error.machines : undefined;
    // If the service does not answer, the state keeps what it had.
    const known = machines ? live(machines) : { ...live([]), ...lastKnown(old) };
    const failed = { ...known, rollout: "failed", committed, gatePassed: gate === "passed" ? true : undefined };
    const mayGoBack =
      error instanceof RolloutFailure &&
      error.code !== "cancelled" &&
      wanted.onFailure === "rollback" &&
      !isExposed(whole, error.machines ?? []);
    throw mayGoBack && committed !== undefined
      ? await goBack(whole, committed, error, { failed, live })
      : new PartialStateError(failed, error);
  });
  const { machines, state } = outcome;
  const result = (all: readonly Machine[]) => {
    const found = { ...live(all), rollout: state, gatePassed: undefined };
    // A configuration that no Machine has run is nothing to return to.
    const isRun = state === "complete" && found.machines.length > 0;
    return { ...found, committed: isRun ? undefined : committed };
  };
  if (state === "canary" || state === "green") call.warn(waitingText(whole, machines, state));
  if (state !== "complete") return result(machines);
  const isChanged = await keepStandbys(whole, machines, servingIds(machines)).catch((error: unknown) => {
    throw new PartialStateError(result(machines), error);
  });
  return result(isChanged ? await fleetMachines(call.api, fleet) : machines);
}

const lastKnown = ({ machines, otherMachines, volumes }: State = {}) => ({
  ...(machines === undefined ? {} : { machines }),
  otherMachines,
  volumes,
});

const servingIds = (machines: readonly Machine[]): string[] =>
  machines.filter((machine) => phaseOf(machine) === "serving").map(({ id }) => id);

/** Whether traffic reaches the new Machines of a blue/green rollout: from then on they are never destroyed for the old ones. */
const isExposed = ({ fleet, wanted, template, before }: Rollout, machines: readonly Machine[]): boolean =>
  wanted.strategy?.type === "bluegreen" &&
  membersOf(machines, fleet, template, before).some((one) => one.phase === "serving" && one.template !== "outdated");

/** Goes back after a failure. Returns the error of the update. */
async function goBack(
  rollout: Rollout,
  committed: Config,
  why: RolloutFailure,
  { failed, live }: { readonly failed: object; readonly live: (machines: readonly Machine[]) => object },
): Promise<PartialStateError> {
  const { call, fleet, wanted, template } = rollout;
  call.progress(`the rollout of Fleet ${fleet.app}/${fleet.name} failed; going back to the old configuration`);
  const type = wanted.strategy?.type === "canary" ? "rolling" : wanted.strategy?.type;
  const back: Rollout = {
    ...rollout,
    wanted: { ...wanted, config: committed, strategy: { ...wanted.strategy, type }, releaseCommand: undefined },
    template: { ...template, config: committed },
    before: template.config,
    failed: template.config,
    isPromoted: true,
  };
  try {
    const { machines } = await rollOut(back);
    const state = { ...live(machines), config: committed, committed: undefined, gatePassed: undefined };
    return new PartialStateError(state, rolledBack(why, back, machines));
  } catch (error) {
    return new PartialStateError({ ...failed }, notRolledBack(why, back, error));
  }
}

/** Outputs that say how a rollout has ended, and what the fleet has. */
const ofRollouts = {
  awaited: "any",
  committed: "any",
  gatePassed: "any",
  otherMachines: "any",
  volumes: "any",
} as const;

export const fleet = defineResource({
  name: "Fleet",
  summary: "The Machines of one configuration in an App, and how they are changed from one configuration to the next.",
  description:
    "The fleet keeps as many Machines as wanted in each region. A change of the configuration is rolled out by its strategy: never more than a part of the Machines is missing, and a configuration that fails stops before it reaches the others. An interrupted rollout is continued by the next update.",
  inputs,
  outputs,
  id: pathId("app", "name"),
  list: {
    objects: async (pass, appName) => {
      const machines = (await liveMachines(pass, appName)).filter((one) => fleetOf(one) !== undefined);
      const firsts = new Map(machines.map((machine) => [fleetOf(machine) ?? "", machine]));
      return [...firsts].map(([name, { createdAt, config }]) => ({
        parts: { app: appName, name },
        name,
        createdAt,
        metadata: config?.metadata,
      }));
    },
    exists: async (api, { app = "", name = "" }) =>
      (await fleetMachines(api, { app, name, machines: new Set() })).length > 0,
    shownBy: "machines.list",
    deletedBy: "machines.destroy",
    isTagged: true,
  },
  replaceOn: ["app", "name"],
  uniqueBy: ["app", "name"],
  dependsOn: { machines: "any", rollout: "any", image: ["config.image"], drift: "any", ...ofRollouts },
  derivedFrom: { image: "config.image" },
  autoname: { property: "name", maxLength: 40, separator: "-", random: false },
  pendingWhen: (state, next) =>
    mustRepair(state) ? "drift" : isWaiting(state) && gateOf(state, next) !== "closed" ? "rollout" : undefined,
  refreshBeforeUpdate: true,
  validate,
  refuse: (old, next) =>
    old.config !== undefined && (old.volume === undefined) !== (next.volume === undefined)
      ? {
          path: ["volume"],
          message: `cannot be ${old.volume === undefined ? "added to" : "removed from"} a fleet whose Machines exist; declare a second fleet, and remove this one when the second one runs`,
        }
      : undefined,
  previewChecks: [
    { needs: ["regions"], ask: ({ regions }, api) => regionsProblem(api, Object.keys(regions ?? {})) },
    { needs: ["spreadOver"], ask: ({ spreadOver }, api) => regionsProblem(api, spreadOver) },
    { needs: ["name", "app"], ask: machinesProblem },
    {
      needs: ["volume", "app"],
      uses: ["name", "regions", "count", "spreadOver", "strategy"],
      ask: volumesProblem,
    },
    { needs: ["fallbackRegions"], ask: ({ fallbackRegions }, api) => regionsProblem(api, fallbackRegions) },
    {
      needs: ["regions"],
      uses: ["fallbackRegions", "config.guest", "config.size"],
      ask: async ({ regions = {}, fallbackRegions = [], config }, api) => {
        const wanted = Object.keys(regions).filter((region) => (regions[region] ?? 0) > 0);
        const found = await Promise.all(
          wanted.map((region) => roomWarning(api, [region, ...fallbackRegions], config ?? noConfig)),
        );
        return found.find((warning) => warning !== undefined);
      },
    },
    {
      needs: ["app", "config"],
      uses: [
        "name",
        "regions",
        "count",
        "spreadOver",
        "strategy",
        "promoted",
        "minSecretsVersion",
        "volume",
        "memoryLimitMb",
        "standbys",
      ],
      isAboutAll: true,
      ask: previewRollout,
    },
  ],
  minutes: { create: 1440, update: 1440, delete: 60 },

  async create({ inputs: wanted, owner, ...call }) {
    // Core has generated a name if the program gives none.
    const { app, name = "" } = wanted;
    const { journal } = call.run;
    // A run that has not seen the state yet gives it a new id. The journal knows the one that an interrupted run gave it.
    const [interrupted] = journal.find(owner)?.op.split(":") ?? [];
    const ours = keyOf(call, { app, name }, owner);
    const key: FleetKey =
      interrupted === undefined || call.run.knowsState
        ? ours
        : { ...ours, stack: interrupted, stacks: [...ours.stacks, interrupted] };
    const all = await call.api.machines.list({ appName: app });
    refuseUnproven(app, name, all);
    const existing = sightOf(all, key).machines;
    const foreign = existing.find(({ config }) => {
      const { [ownerTag]: of, [stackTag]: stack = "" } = config?.metadata ?? {};
      return owner === undefined || of !== owner || (stack !== interrupted && !call.run.isStateId(stack));
    });
    if (foreign)
      throw new MachinesError(
        "refused",
        `name: the App ${app} has a fleet ${JSON.stringify(name)} already, for instance Machine ${foreign.id}; choose another name, or import it with \`pulumi import machines:index:Fleet <resource> ${app}/${name}\``,
      );
    if (existing.length > 0)
      call.warn(
        `${existing.length} Machines of Fleet ${app}/${name} were created by an interrupted run; they are adopted`,
      );
    const { clock, config } = call.api;
    const op = `${interrupted ?? key.stack}:${randomBytes(8).toString("hex")}`;
    if (owner !== undefined)
      await journal.write({ owner, op, endpoint: config.endpoint, place: app, name, at: clock.now() });
    return roll({ call, fleet: key, wanted, template: wanted }, undefined);
  },

  async read({ id, state, api, run, warn }) {
    const key = keyOf({ run }, id, undefined, state);
    const all = await api.machines.list({ appName: id.app });
    const { machines } = sightOf(all, key);
    if (state?.config === undefined) {
      refuseUnproven(id.app, id.name, all);
      const first = machines.find((machine) => phaseOf(machine) === "serving");
      if (first === undefined) return undefined;
      const mount = first.config?.mounts?.[0];
      const mounted = mount && (await findVolume(api, id.app, mount.volume));
      if (mount) for (const one of mountedByName(machines, await volumesIn(api, id.app))) key.volumes.add(one);
      return {
        ...toLive(key, mount !== undefined, machines),
        config: templateIn(first, undefined, mount !== undefined),
        regions: countsOf(machines),
        standbys: standbysOf(machines).length,
        ...(mount === undefined ? {} : { volume: { path: mount.path, sizeGb: mounted?.sizeGb } }),
      };
    }
    if (machines.length === 0 && totalOf(regionsOf(state)) > 0) return undefined;
    await knowVolumes(api, key, state, machines);
    const live = toLive(key, state.volume !== undefined, machines);
    const { config } = state;
    const { minSecretsVersion, volume, memoryLimitMb } = state;
    const template: Template = { config, minSecretsVersion, volume, memoryLimitMb };
    const found = membersOf(machines, key, template, undefined, api.clock.now());
    // During a rollout that has stopped or waits, the differences are its own.
    if (state.rollout !== "complete")
      return {
        ...{ ...live, rollout: state.rollout ?? "complete", committed: state.committed },
        ...(state.gatePassed === undefined ? {} : { gatePassed: state.gatePassed }),
      };
    const situation = { wanted: state, fleet: key, template, machines, members: servingIds(machines) };
    const drift = driftOf(found, planStandbys(situation), state, config);
    if (drift.length > 0)
      warn(
        `Fleet ${id.app}/${id.name} was changed outside of this program: ${drift.join("; ")}. pulumi up repairs it.`,
      );
    const other = mostCommonChange(found, config, volume !== undefined);
    return {
      ...live,
      committed: state.committed,
      ...(other === undefined ? {} : { config: other }),
      ...(state.regions === undefined ? {} : { regions: { ...zeros(state.regions), ...countsOf(machines) } }),
      ...(state.count === undefined ? {} : { count: live.machines.length }),
      ...(state.standbys === undefined ? {} : { standbys: standbysOf(machines).length }),
      drift,
    };
  },

  async update({ id, inputs: wanted, old, owner, ...call }) {
    return roll({ call, fleet: keyOf(call, id, owner, old), wanted, template: wanted }, old);
  },

  async delete({ id, state, owner, ...call }) {
    const key = keyOf(call, id, owner, state);
    await knowVolumes(call.api, key, state, await fleetMachines(call.api, key));
    if (state.volume) adoptVolumes(key, state.volume);
    await destroyAll(call, key, state);
  },
});

const zeros = (regions: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.keys(regions).map((region) => [region, 0]));

/** The Machines by region. */
function countsOf(machines: readonly Machine[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const machine of machines.filter((one) => phaseOf(one) === "serving"))
    counts[regionOf(machine)] = (counts[regionOf(machine)] ?? 0) + 1;
  return counts;
}
