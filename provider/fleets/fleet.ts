// Fleets: the Machines of one template in an App, and the rollout from one template to the next (docs/fleets.md).
import { randomBytes } from "node:crypto";
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
import { inputs, outputs, wantedOf, type FleetInputs, type Template } from "./inputs.ts";
import {
  adopt,
  fleetMachines,
  membersOf,
  phaseOf,
  noConfig,
  regionOf,
  standbysOf,
  templateIn,
  type FleetKey,
  type Rollout,
} from "./members.ts";
import { regionsOf, totalOf } from "./planner.ts";
import { previewRollout } from "./preview.ts";
import { destroyAll, rollOut, type Outcome } from "./rollout.ts";
import { keepStandbys, planStandbys } from "./standbys.ts";
import { isUnhealthy } from "./steps.ts";
import { validate } from "./validation.ts";

type State = Partial<FleetInputs> & { readonly rollout?: string | undefined; readonly committed?: Config | undefined };

const keyOf = (
  call: Pick<Call, "run">,
  id: { readonly app: string; readonly name: string },
  owner: string | undefined,
): FleetKey => ({
  ...{ app: id.app, name: id.name, owner },
  stack: call.run.stateId(),
});

/** The configuration of the last rollout that was completed. */
const committedOf = ({ rollout, config, committed }: State): Config | undefined =>
  rollout === "complete" ? config : committed;

const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name.localeCompare(b.name, "en", { numeric: true });

/** The outputs of a fleet. */
function toLive(app: string, name: string, machines: readonly Machine[]) {
  const serving = machines.filter((machine) => phaseOf(machine) === "serving");
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
    image:
      repository === undefined
        ? undefined
        : `${registry === undefined ? "" : `${registry}/`}${repository}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`,
    rollout: "complete",
    drift: [] as string[],
  };
}

/** Carries a rollout out. Goes back to the last complete one if that is wanted. */
async function roll(rollout: Rollout, committed: Config | undefined) {
  const { fleet, wanted } = rollout;
  const live = (outcome: Outcome) => ({
    ...toLive(fleet.app, fleet.name, outcome.machines),
    rollout: outcome.state,
    ...(outcome.state === "canary" ? { committed } : {}),
  });
  await adopt(rollout.call, fleet, wanted.adopt ?? []);
  const outcome = await rollOut(rollout).catch(async (error: unknown) => {
    const machines = await fleetMachines(rollout.call.api, fleet.app, fleet.name).catch(() => []);
    const failed = { ...toLive(fleet.app, fleet.name, machines), rollout: "failed", committed };
    const mayGoBack = wanted.onFailure === "rollback" && committed !== undefined && !isCommitted(rollout, machines);
    if (!mayGoBack || !isUnhealthy(error)) throw new PartialStateError(failed, error);
    throw await goBack(rollout, committed, error, failed);
  });
  if (outcome.state === "complete")
    await keepStandbys(rollout, outcome.machines, servingIds(outcome.machines)).catch((error: unknown) => {
      throw new PartialStateError(live(outcome), error);
    });
  return live(outcome);
}

const servingIds = (machines: readonly Machine[]): string[] =>
  machines.filter((machine) => phaseOf(machine) === "serving").map(({ id }) => id);

/** Whether traffic reaches the new Machines of a blue/green rollout: from then on they are never destroyed for the old ones. */
const isCommitted = ({ fleet, wanted, template, before }: Rollout, machines: readonly Machine[]): boolean =>
  wanted.strategy?.type === "bluegreen" &&
  membersOf(machines, fleet, template, before).some((one) => one.phase === "serving" && one.template !== "outdated");

async function goBack(
  rollout: Rollout,
  committed: Config,
  why: MachinesError,
  failed: Record<string, unknown>,
): Promise<PartialStateError> {
  const { call, fleet, wanted, template } = rollout;
  call.progress(`the rollout of Fleet ${fleet.app}/${fleet.name} failed; going back to the configuration of before`);
  const type = wanted.strategy?.type === "canary" ? "rolling" : wanted.strategy?.type;
  const back = { ...wanted, config: committed, strategy: { ...wanted.strategy, type }, releaseCommand: undefined };
  try {
    const { machines } = await rollOut({
      ...rollout,
      wanted: back,
      template: { ...template, config: committed },
      before: template.config,
    });
    return new PartialStateError(
      { ...toLive(fleet.app, fleet.name, machines), config: committed },
      new MachinesError(why.code, `${why.message} All Machines have the configuration of before again.`, {
        cause: why,
      }),
    );
  } catch (error) {
    const also = error instanceof Error ? error.message : String(error);
    return new PartialStateError(
      failed,
      new MachinesError(why.code, `${why.message} Going back to the configuration of before failed too: ${also}`, {
        cause: why,
      }),
    );
  }
}

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
    exists: async (api, { app = "", name = "" }) => (await fleetMachines(api, app, name)).length > 0,
    shownBy: "machines.list",
    deletedBy: "machines.destroy",
    isTagged: true,
  },
  replaceOn: ["app", "name"],
  uniqueBy: ["app", "name"],
  dependsOn: { machines: "any", rollout: "any", image: ["config.image"], drift: "any", committed: "any" },
  derivedFrom: { image: "config.image" },
  autoname: { property: "name", maxLength: 40, separator: "-", random: false },
  pendingWhen: (state, next) =>
    mustRepair(state) ? "drift" : state.rollout === "canary" && wantedOf(next).isPromoted ? "rollout" : undefined,
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
    const key = interrupted === undefined || call.run.knowsState ? ours : { ...ours, stack: interrupted };
    const existing = await fleetMachines(call.api, app, name);
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
    return roll({ call, fleet: key, wanted, template: wanted, before: undefined }, undefined);
  },

  async read({ id, state, api, run, warn }) {
    const machines = await fleetMachines(api, id.app, id.name);
    const live = toLive(id.app, id.name, machines);
    if (state?.config === undefined) {
      const first = machines.find((machine) => phaseOf(machine) === "serving");
      if (first === undefined) return undefined;
      const mount = first.config?.mounts?.[0];
      const mounted = mount && (await findVolume(api, id.app, mount.volume));
      return {
        ...live,
        config: templateIn(first, undefined, mount !== undefined),
        regions: countsOf(machines),
        standbys: standbysOf(machines).length,
        ...(mount === undefined ? {} : { volume: { path: mount.path, sizeGb: mounted?.sizeGb } }),
      };
    }
    if (machines.length === 0 && totalOf(regionsOf(state)) > 0) return undefined;
    const { config } = state;
    const { minSecretsVersion, volume, memoryLimitMb } = state;
    const template: Template = { config, minSecretsVersion, volume, memoryLimitMb };
    const key = keyOf({ run }, id, undefined);
    const found = membersOf(machines, key, template, undefined);
    // During a rollout that has stopped or waits, the differences are its own.
    if (state.rollout !== "complete")
      return { ...live, rollout: state.rollout ?? "complete", committed: state.committed };
    const situation = { wanted: state, fleet: key, template, machines, members: servingIds(machines) };
    const drift = driftOf(found, planStandbys(situation), state, config);
    if (drift.length > 0)
      warn(
        `Fleet ${id.app}/${id.name} was changed outside of this program: ${drift.join("; ")}. pulumi up repairs it.`,
      );
    const other = mostCommonChange(found, config, volume !== undefined);
    return {
      ...live,
      ...(other === undefined ? {} : { config: other }),
      ...(state.regions === undefined ? {} : { regions: { ...zeros(state.regions), ...countsOf(machines) } }),
      ...(state.count === undefined ? {} : { count: live.machines.length }),
      ...(state.standbys === undefined ? {} : { standbys: standbysOf(machines).length }),
      drift,
    };
  },

  async update({ id, inputs: wanted, old, owner, ...call }) {
    const key = keyOf(call, id, owner);
    const rollout = { call, fleet: key, wanted, template: wanted, before: old.config };
    return roll(rollout, committedOf(old));
  },

  async delete({ id, state, owner, ...call }) {
    await destroyAll(call, keyOf(call, id, owner), state);
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
