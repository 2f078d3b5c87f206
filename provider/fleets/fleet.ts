// Fleets: the Machines of one template in an App, and the rollout from one template to the next (docs/fleets.md).
import { randomBytes } from "node:crypto";
import { bareId } from "../../api/names.ts";
import { MachinesError } from "../client/errors.ts";
import { orUndefined } from "../client/existence.ts";
import { findVolume, listMachines } from "../client/listCache.ts";
import { isDestroyed, type Machine } from "../client/machine.ts";
import { pathId } from "../core/ids.ts";
import type { Facts } from "../core/observations/planFile.ts";
import type { Intent } from "../core/journal.ts";
import { defineResource, type Call } from "../core/resource.ts";
import { ownerTag, stackTag } from "../machines/create.ts";
import { fleetOf, liveMachines } from "../machines/live.ts";
import { differingFields } from "../machines/settings.ts";
import { regionsProblem, roomWarning } from "../shared/region.ts";
import { driftOf, mostCommonChange, mustRepair } from "./drift.ts";
import { committedOf, gateOf, isWaiting } from "./gate.ts";
import { inputs, outputs, type Template } from "./inputs.ts";
import {
  fleetMachines,
  lookAt,
  membersOf,
  phaseOf,
  noConfig,
  refuseUnproven,
  regionOf,
  sightOf,
  standbysOf,
  templateIn,
  type FleetKey,
} from "./members.ts";
import { regionsOf, totalOf } from "./placement.ts";
import { machinesProblem, plannedSteps, previewRollout, previewViews, volumesProblem } from "./preview.ts";
import { keyOf, knowVolumes, machinesOf, roll, servingIds, toLive } from "./roll.ts";
import { destroyAll } from "./rollout.ts";
import { planStandbys } from "./standbys.ts";
import { validate } from "./validation.ts";
import { publishViews, reportingViews } from "./views.ts";
import { adoptVolumes, mountedByName, volumesIn } from "./volumes.ts";

/** Outputs that say how a rollout has ended, and what the fleet has. */
const ofRollouts = {
  awaited: "any",
  committed: "any",
  gatePassed: "any",
  otherMachines: "any",
  volumes: "any",
  keptVolumes: "any",
} as const;

export const fleet = defineResource({
  name: "Fleet",
  summary: "A group of Machines of an App with one configuration, and the strategy by which they get a new one.",
  description:
    "The fleet has the wanted number of Machines in each region. A change of the configuration is rolled out by its strategy: only some of the Machines are interrupted at a time, and a configuration that fails does not reach the others. The next update continues an interrupted rollout.",
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
    exists: async (api, { app = "", name = "" }, state = {}) =>
      (await fleetMachines(api, { app, name, machines: machinesOf(state) })).length > 0,
    shownBy: "machines.list",
    deletedBy: "machines.destroy",
    isTagged: true,
  },
  replaceOn: ["app", "name"],
  uniqueBy: ["app", "name"],
  dependsOn: { machines: "any", rollout: "any", image: ["config.image"], drift: "any", ...ofRollouts },
  derivedFrom: { image: "config.image" },
  autoname: { property: "name", maxLength: 40, separator: "-", random: false },
  pendingWhen(state, next) {
    if (mustRepair(state)) return { property: "drift", replaces: false };
    const goesOn = isWaiting(state) && gateOf(state, next) !== "closed";
    return goesOn ? { property: "rollout", replaces: false } : undefined;
  },
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
      uses: ["name", "regions", "count", "spreadOver", "adopt", "strategy"],
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
        "adopt",
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

  previewViews,
  async observe({ id, inputs, state, api, owner, run, mayShareLists }) {
    const list = () => (mayShareLists ? listMachines(api, id.app) : api.machines.list({ appName: id.app }));
    // The same update may create the App.
    const all = (await orUndefined(list)) ?? [];
    const key = keyOf({ run }, id, owner, state);
    const { machines } = toLive(key, false, sightOf(all, key).machines);
    if (inputs === undefined) return memberFacts(machines);
    return {
      ...memberFacts(machines),
      steps: await plannedSteps({ ...inputs, name: id.name }, all, { api, owner, run }),
    };
  },
  remember: ({ machines = [] }) => memberFacts(machines),
  async create({ inputs: wanted, owner, ...call }) {
    // Core has generated a name if the program gives none.
    const { app, name = "" } = wanted;
    const { journal } = call.run;
    // A run that has not seen the state yet gives it a new id. The journal knows the one that an interrupted run gave it.
    const begun = journal.find(owner);
    const [interrupted] = begun?.op.split(":") ?? [];
    const ours = keyOf(call, { app, name }, owner);
    const key: FleetKey =
      interrupted === undefined || call.run.stateIds.isKnown
        ? ours
        : { ...ours, stack: interrupted, stacks: [...ours.stacks, interrupted] };
    const all = await call.api.machines.list({ appName: app });
    refuseUnproven(app, name, all);
    const toAdopt = new Set(wanted.adopt?.map(bareId));
    // An interrupted run may have tagged Machines that are to be adopted. They were not created for the fleet.
    const existing = sightOf(all, key).machines.filter(({ id, config }) => {
      const of = config?.metadata?.[ownerTag];
      return !(toAdopt.has(id) && (of === undefined || of === owner));
    });
    const foreign = existing.find(({ config }) => {
      const { [ownerTag]: of, [stackTag]: stack = "" } = config?.metadata ?? {};
      return owner === undefined || of !== owner || (stack !== interrupted && !call.run.stateIds.has(stack));
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
    if (begun !== undefined) await reportRenamed(call, key, begun, all);
    const { clock, config } = call.api;
    const op = `${interrupted ?? key.stack}:${randomBytes(8).toString("hex")}`;
    if (owner !== undefined)
      await journal.write({ owner, op, endpoint: config.endpoint, place: app, name, at: clock.now() });
    const update = () => roll({ call, fleet: key, wanted, template: wanted }, undefined);
    return reportingViews(call, key, { hasVolumes: wanted.volume !== undefined, isNew: true }, update);
  },

  async read({ id, state, ...call }) {
    const { api, run, warn } = call;
    const key = keyOf({ run }, id, undefined, state);
    if (state?.config === undefined) {
      const all = await api.machines.list({ appName: id.app });
      const { machines } = sightOf(all, key);
      refuseUnproven(id.app, id.name, all);
      const first = machines.find((machine) => phaseOf(machine) === "serving");
      if (first === undefined) return undefined;
      const mount = first.config?.mounts?.[0];
      const mounted = mount && (await findVolume(api, id.app, mount.volume));
      if (mount) for (const one of mountedByName(machines, await volumesIn(api, id.app))) key.volumes.add(one);
      await publishViews(call, key, machines, { isKnown: false, hasVolumes: mount !== undefined });
      return {
        ...toLive(key, mount !== undefined, machines),
        config: templateIn(first, undefined, mount !== undefined),
        regions: countsOf(machines),
        standbys: standbysOf(machines).length,
        ...(mount === undefined ? {} : { volume: { path: mount.path, sizeGb: mounted?.sizeGb } }),
      };
    }
    // R8: a list does not prove absence, so those that it lacks are requested.
    const { machines } = await lookAt(api, key, key.machines);
    if (machines.length === 0 && totalOf(regionsOf(state)) > 0) return undefined;
    await knowVolumes(api, key, state, machines);
    await publishViews(call, key, machines, { isKnown: true, hasVolumes: state.volume !== undefined });
    const found = toLive(key, state.volume !== undefined, machines);
    // A state of an earlier version gets it with the next update, so that a refresh shows no difference.
    const live = state.keptVolumes === undefined ? { ...found, keptVolumes: undefined } : found;
    const { config } = state;
    const { minSecretsVersion, volume, memoryLimitMb } = state;
    const template: Template = { config, minSecretsVersion, volume, memoryLimitMb };
    const members = membersOf(machines, key, template, undefined, api.clock.now());
    // During a rollout that has stopped or waits, the differences are its own.
    if (state.rollout !== "complete")
      return {
        ...{ ...live, rollout: state.rollout ?? "complete", committed: state.committed },
        ...(state.gatePassed === undefined ? {} : { gatePassed: state.gatePassed }),
      };
    const situation = { wanted: state, fleet: key, template, machines, members: servingIds(machines) };
    const drift = driftOf(members, planStandbys(situation), state, config);
    if (drift.length > 0)
      warn(
        `Fleet ${id.app}/${id.name} was changed outside of this program: ${drift.join("; ")}. pulumi up repairs it.`,
      );
    const other = mostCommonChange(members, config, volume !== undefined);
    return {
      ...live,
      // What others have set is nothing to return to.
      ...(other === undefined ? { committed: state.committed } : { config: other, committed: committedOf(state) }),
      ...(state.regions === undefined ? {} : { regions: { ...zeros(state.regions), ...countsOf(machines) } }),
      ...(state.count === undefined ? {} : { count: live.machines.length }),
      ...(state.standbys === undefined ? {} : { standbys: standbysOf(machines).length }),
      drift,
    };
  },

  // The members are Machines of their own: `confirm` is about the fleet.
  async update({ id, inputs: wanted, old, owner, confirm: _, ...call }) {
    const key = keyOf(call, id, owner, old);
    const about = { hasVolumes: wanted.volume !== undefined, fields: differingFields(old.config, wanted.config) };
    return reportingViews(call, key, about, () => roll({ call, fleet: key, wanted, template: wanted }, old));
  },

  async delete({ id, state, owner, confirm: _, ...call }) {
    const key = keyOf(call, id, owner, state);
    await knowVolumes(call.api, key, state, await fleetMachines(call.api, key));
    if (state.volume) adoptVolumes(key, state.volume);
    await reportingViews(call, key, { hasVolumes: false }, () => destroyAll(call, key, state));
  },
});

/** Reports the Machines of an interrupted create if the fleet had another name or App then: its entry is about to be replaced. */
async function reportRenamed(call: Call, key: FleetKey, begun: Intent, all: readonly Machine[]): Promise<void> {
  const { place, name, endpoint } = begun;
  if (endpoint !== call.api.config.endpoint || (place === key.app && name === key.name)) return;
  // The id of a fleet in the state was delivered. Its entry may say otherwise after a power loss.
  if (call.run.program.idInState(key.owner) === `${place}/${name}`) return;
  const list = () => call.api.machines.list({ appName: place });
  const there = place === key.app ? all : ((await orUndefined(list)) ?? []);
  const left = there.filter((machine) => {
    const { [ownerTag]: of, [stackTag]: stack = "" } = machine.config?.metadata ?? {};
    return !isDestroyed(machine) && fleetOf(machine) === name && of === key.owner && key.stacks.includes(stack);
  });
  if (left.length === 0) return;
  const ids = left.map(({ id }) => id).join(", ");
  const [are, them] = left.length === 1 ? [`Machine ${ids} is`, "it"] : [`Machines ${ids} are`, "them"];
  call.warn(
    `an interrupted run was creating Fleet ${place}/${name}, which the program no longer has: ${are} left. npx pulumi-machines orphans shows ${them}, and how to delete ${them}.`,
  );
}

/** The members, for plans. */
const memberFacts = (
  members: readonly { readonly id: string; readonly name: string; readonly version?: string | undefined }[],
): Facts => ({
  Machines: members.length,
  ...Object.fromEntries(members.map(({ id, name, version = "?" }) => [`Machine ${name}`, `${id} ${version}`])),
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
