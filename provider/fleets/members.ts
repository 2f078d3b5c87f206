// The Machines of a fleet: how they are tagged, found, and compared with the template.
import { bareId } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import { MachinesError } from "../client/errors.ts";
import { orUndefined } from "../client/existence.ts";
import { hasCrashed } from "../client/events.ts";
import { isDestroyed, versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import { ownerTag, stackTag } from "../machines/create.ts";
import { failureOf } from "../machines/failure.ts";
import { fleetOf } from "../machines/live.ts";
import { differingFields, fromService, sameMetadata, sameVersion, type Config } from "../machines/settings.ts";
import type { Call } from "../core/resource.ts";
import { withoutUndefined } from "../core/values.ts";
import type { View } from "../core/views.ts";
import type { FleetInputs, Template } from "./inputs.ts";
import { memberName, standbyName, type Member } from "./planner.ts";

/** Tag with the region that a Machine counts for, which is not where it runs if that had no room. */
const regionTag = "pulumi-fleet-region";
/** Tag with the name of the Machine that a Machine is moved to, with a copy of its volume. */
export const moveTag = "pulumi-fleet-move";
/** Tag with the name of the Machine of whose volume a Machine has a copy, until it gets traffic. */
const copyTag = "pulumi-fleet-copy";
/** Tag of a Machine that mounts a volume with the data of an earlier one, until it gets traffic. */
const dataTag = "pulumi-fleet-data";
/** Tag with the version of the secrets that a Machine was updated for, because it cannot be read back. */
export const secretsTag = "pulumi-fleet-secrets";
/** Tag with the memory limit that was set, and the version for which it was: a list does not show limits. */
const memoryTag = "pulumi-fleet-memory";

/** Of a Machine whose host cannot be reached, the service shows no configuration. */
export const noConfig = { image: "" };

const phases = ["serving", "green", "kept", "release", "standby"] as const;
/** The phase of a Machine of a fleet. `release` runs the release command, and `standby` stands by: they are no members. */
export type Phase = (typeof phases)[number];

/** A fleet in its App. */
export interface FleetKey {
  readonly app: string;
  readonly name: string;
  readonly owner: string | undefined;
  readonly stack: string;
  /**
   * Ids of its Machines: those in the state, and those that this run has seen with its tag. Of a Machine whose host cannot be
   * reached, the service may show no tags (R18).
   */
  readonly machines: Set<string>;
  /** Ids of its state: one of them is in the names of its volumes. */
  readonly stacks: readonly string[];
  /** Ids of the volumes that it made or adopted, as far as they are known. */
  readonly volumes: Set<string>;
  /** Ids of those that were kept when their Machines left the fleet. */
  readonly kept: Set<string>;
}

/** A rollout to carry out. */
export interface Rollout {
  readonly call: Call;
  readonly fleet: FleetKey;
  readonly wanted: FleetInputs;
  readonly template: Template;
  /** The configuration of the last update, whose metadata is the fleet's too. */
  readonly before: Config | undefined;
  /** The last configuration that all Machines ran. */
  readonly committed: Config | undefined;
  /** The configuration that failed, while the rollout goes back to the committed one. */
  readonly failed?: Config | undefined;
  /** Whether it continues without a promotion, although its strategy waits for one. */
  readonly isPromoted: boolean;
}

/** A Machine of the fleet, for requests. */
export const keyOf = ({ fleet }: Rollout, { id }: Machine): MachineKey => ({ appName: fleet.app, machineId: id });

/** A member, and its Machine. */
export interface Found extends Member {
  readonly machine: Machine;
}

const metadataOf = ({ config, incompleteConfig }: Machine): Readonly<Record<string, string>> =>
  (config ?? incompleteConfig)?.metadata ?? {};

/** Whether the host of a Machine cannot be reached, so that nothing can be done with it now. */
export const isLost = ({ config, hostStatus }: Machine): boolean =>
  config === undefined || hostStatus === "unreachable";

/** Whether a Machine belongs to a fleet: it has the fleet's tag, or it has no fleet's tag and its id is known. */
const belongsTo = (machine: Machine, { name, machines }: Pick<FleetKey, "name" | "machines">): boolean => {
  const of = fleetOf(machine);
  return of === undefined ? machines.has(machine.id) : of === name;
};

/**
 * The Machines of which nothing shows whose they are: they have names that the fleet would give, and their hosts cannot be
 * reached. Equal names prove nothing (R18).
 */
export const unproven = (machines: readonly Machine[], fleet: Pick<FleetKey, "name" | "machines">): Machine[] =>
  machines.filter((machine) => {
    const { name = "", region = "" } = machine;
    const examples = [memberName(fleet.name, region, 0), standbyName(fleet.name, 0)];
    const isNamedSo = examples.some((example) => name.replace(/\d+$/, "0") === example && name !== example);
    return (
      isNamedSo &&
      isLost(machine) &&
      fleetOf(machine) === undefined &&
      !fleet.machines.has(machine.id) &&
      !isDestroyed(machine)
    );
  });

/** Why nothing can be done without a state while nothing shows whose a Machine is. */
export function unprovenProblem(app: string, name: string, machines: readonly Machine[]): string | undefined {
  const found = unproven(machines, { name, machines: new Set() });
  if (found.length === 0) return undefined;
  const ids = found.map((machine) => `${machine.name ?? "?"} (${machine.id})`).join(", ");
  return `the hosts of ${ids} cannot be reached, and these Machines have names of a fleet ${JSON.stringify(name)}. So the service does not show whether they belong to a fleet ${app}/${name} that exists already. Run up again when the hosts can be reached, or choose another name.`;
}

/** Refuses to continue without a state while nothing shows which fleet owns a Machine. */
export function refuseUnproven(app: string, name: string, machines: readonly Machine[]): void {
  const problem = unprovenProblem(app, name, machines);
  if (problem !== undefined) throw new MachinesError("refused", `name: ${problem}`);
}

/** What an App has, seen from a fleet. */
export interface Sight {
  /** The Machines of the fleet. */
  readonly machines: readonly Machine[];
  /** Names that Machines of others have. */
  readonly taken: ReadonlySet<string>;
}

/** Divides the Machines of an App into those of the fleet, and those of others. */
export function sightOf(machines: readonly Machine[], fleet: Pick<FleetKey, "name" | "machines">): Sight {
  const existing = machines.filter((machine) => !isDestroyed(machine));
  const own = existing.filter((machine) => belongsTo(machine, fleet));
  for (const { id } of own) fleet.machines.add(id);
  const others = existing.filter((machine) => !own.includes(machine));
  return { machines: own, taken: new Set(others.flatMap(({ name }) => name ?? [])) };
}

/**
 * The Machines of an App, seen from a fleet. A list may be incomplete or behind, so those that are `known` are read one by one where
 * it does not show the last version that this run has seen.
 */
export async function lookAt(
  api: Api,
  fleet: Pick<FleetKey, "app" | "name" | "machines">,
  known: ReadonlySet<string> = new Set(),
): Promise<Sight> {
  const { app } = fleet;
  const listed = await api.machines.list({ appName: app });
  const current = listed.filter(
    (machine) => !(known.has(machine.id) && api.session.staleReads.isStale(machine.id, versionOf(machine))),
  );
  const shown = new Set(current.map(({ id }) => id));
  const missing = await Promise.all(
    [...known]
      .filter((machineId) => !shown.has(machineId))
      .map((machineId) => orUndefined(() => api.machines.get({ appName: app, machineId }))),
  );
  return sightOf([...current, ...missing.filter((machine) => machine !== undefined)], fleet);
}

/** The Machines of a fleet. */
export const fleetMachines = async (
  api: Api,
  fleet: Pick<FleetKey, "app" | "name" | "machines">,
): Promise<readonly Machine[]> => (await lookAt(api, fleet)).machines;

/** The region that a Machine counts for. */
export const regionOf = (machine: Machine): string => metadataOf(machine)[regionTag] ?? machine.region ?? "";

/** The volume that a Machine mounts. */
export const volumeOf = ({ config }: Machine): string | undefined => config?.mounts?.[0]?.volume;

/** The phase of a Machine of the fleet, from its tag. While its host cannot be reached, perhaps only the name is known. */
const phaseIn = (machine: Machine): Phase =>
  phases.find((phase) => phase === metadataOf(machine)[phaseTag]) ??
  (/-standby-\d+$/.test(machine.name ?? "") ? "standby" : "serving");

/** The standbys of a fleet. */
export const standbysOf = (machines: readonly Machine[]): Machine[] =>
  machines.filter((machine) => phaseIn(machine) === "standby");

/** The phase of a Machine. */
export const phaseOf = (machine: Machine): Phase | "lost" => (isLost(machine) ? "lost" : phaseIn(machine));

/**
 * Makes Machines of the App members. Their configuration is compared with the template afterwards. All are verified before one is
 * changed, so that a wrong id leaves nothing behind.
 * @param adopted ids that an earlier update adopted: one that is gone, for instance because a rollout replaced it, leaves nothing to do
 */
export async function adopt(
  call: Call,
  fleet: FleetKey,
  ids: readonly string[],
  adopted: readonly string[],
): Promise<void> {
  const known = new Set([...fleet.machines, ...adopted.map(bareId)]);
  const found: Machine[] = [];
  for (const machineId of ids.map(bareId)) {
    const read = () => call.api.machines.get({ appName: fleet.app, machineId });
    const machine = known.has(machineId) ? await orUndefined(read) : await read();
    if (machine === undefined || (known.has(machineId) && isDestroyed(machine))) continue;
    const of = fleetOf(machine);
    if (of !== fleet.name && (of !== undefined || machine.region === undefined))
      throw new MachinesError(
        "refused",
        `adopt: Machine ${fleet.app}/${machine.id} belongs to the fleet ${of ?? "of no region"}`,
      );
    found.push(machine);
  }
  for (const machine of found) {
    fleet.machines.add(machine.id);
    if (fleetOf(machine) !== fleet.name) await tag(call, fleet, machine, undefined);
  }
}

/** Whether a Machine has no tag of a fleet, and its host can be reached: a fleet that has it knows it by its id alone. */
export const isUntagged = (machine: Machine): boolean => !isLost(machine) && fleetOf(machine) === undefined;

/**
 * Tags the Machines that the fleet knows by their ids alone, because the state came to have them by a migration
 * (docs/migrations.md), or because others removed the tags.
 * @param minSecretsVersion the version of the secrets that they all have, if that is known
 */
export async function tagKnown(
  call: Call,
  fleet: FleetKey,
  machines: readonly Machine[],
  minSecretsVersion: number | undefined,
): Promise<void> {
  for (const machine of machines) if (isUntagged(machine)) await tag(call, fleet, machine, minSecretsVersion);
}

/** The tags that say whose a Machine is. */
const ownerTagsOf = ({ owner, stack }: FleetKey): Record<string, string> =>
  owner === undefined ? {} : { [ownerTag]: owner, [stackTag]: stack };

/** Gives a Machine the tags of a member that serves, at once (F18). It is not restarted. */
async function tag(call: Call, fleet: FleetKey, machine: Machine, minSecretsVersion: number | undefined) {
  const tags = {
    ...{ [fleetTag]: fleet.name, [regionTag]: machine.region ?? "", [phaseTag]: "serving" },
    ...(minSecretsVersion === undefined ? {} : { [secretsTag]: String(minSecretsVersion) }),
    ...ownerTagsOf(fleet),
  };
  const key = { appName: fleet.app, machineId: machine.id };
  await call.api.machines.patchMetadata({ ...key, body: { metadata: tags } });
}

/** The volume that a Machine mounts, and where its data are from. */
interface Mounted {
  readonly volumeId: string | undefined;
  readonly copyOf?: string | undefined;
  readonly hasData?: boolean;
}

/** The configuration of one member: the template's, with the fleet's tags. */
export function configOf(
  fleet: FleetKey,
  { config, minSecretsVersion, volume }: Template,
  member: { readonly region: string; readonly phase: Phase } & Mounted,
): Config {
  const tags = {
    [fleetTag]: fleet.name,
    [regionTag]: member.region,
    [phaseTag]: member.phase,
    ...(member.copyOf === undefined || member.phase !== "green" ? {} : { [copyTag]: member.copyOf }),
    ...(member.hasData && member.phase === "green" ? { [dataTag]: "true" } : {}),
    ...(minSecretsVersion === undefined ? {} : { [secretsTag]: String(minSecretsVersion) }),
    ...ownerTagsOf(fleet),
  };
  const mounts =
    volume === undefined || member.volumeId === undefined ? [] : [{ volume: member.volumeId, path: volume.path }];
  return { ...config, ...(mounts.length > 0 ? { mounts } : {}), metadata: { ...config.metadata, ...tags } };
}

/** The configuration of the Machine that runs the release command. */
export function releaseConfig(fleet: FleetKey, template: Template, region: string, command: readonly string[]): Config {
  const config = configOf(fleet, template, { region, phase: "release", volumeId: undefined });
  const { init = {} } = config;
  return withoutUndefined({
    ...config,
    ...{ services: undefined, checks: undefined, standbys: undefined },
    init: withoutUndefined({ ...init, exec: undefined, cmd: [...command] }),
    restart: { policy: "no" as const },
    // It ends, and leaves nothing behind when the run that waits for it does not.
    autoDestroy: true,
  });
}

/** Whether idle Machines of a configuration are stopped, and started when they are needed. */
const restsWhenIdle = ({ services = [] }: Config): boolean =>
  services.some(
    ({ autostop, autostart }) =>
      autostart === true && autostop !== undefined && autostop !== "off" && autostop !== false,
  );

/** Whether a Machine serves, or can as soon as it is needed. */
export function isReady(machine: Machine, config: Config): boolean {
  const { state, checks = [], cordoned } = machine;
  if (state === "started") return checks.every(({ status }) => status === "passing") && cordoned !== true;
  return restsWhenIdle(config) && ["stopped", "suspended"].includes(state) && !hasCrashed(machine) && cordoned !== true;
}

/** The live configuration in the program's form, with the metadata that is or was the fleet's. */
export const ownConfig = (machine: Machine, written: Config, before: Config | undefined): Config =>
  fromService(machine.config ?? noConfig, {
    ...written,
    // These are removed when they are no longer wanted.
    metadata: { [moveTag]: "", [copyTag]: "", [dataTag]: "", ...before?.metadata, ...written.metadata },
  });

/** The Machine of whose volume this one has a copy. */
const copyOf = (machine: Machine): string | undefined => metadataOf(machine)[copyTag];

/** Whether a Machine without traffic mounts a volume with the data of an earlier one. */
export const hasEarlierData = (machine: Machine): boolean => metadataOf(machine)[dataTag] !== undefined;

/** What a Machine mounts. */
export const mountedBy = (machine: Machine): Mounted => ({
  volumeId: volumeOf(machine),
  copyOf: copyOf(machine),
  hasData: hasEarlierData(machine),
});

/** Where a Machine is being moved. */
function movesTo(machine: Machine, fleet: string): Member["movesTo"] {
  const name = metadataOf(machine)[moveTag];
  const region = name?.slice(fleet.length + 1, name.lastIndexOf("-"));
  return name === undefined || region === undefined ? undefined : { name, region };
}

/** Whether a Machine has the template. */
function templateOf(machine: Machine, wanted: Config, before: Config | undefined): Member["template"] {
  const live = ownConfig(machine, wanted, before);
  const secrets = (config: Config): string | undefined => config.metadata?.[secretsTag];
  // Without tags, nothing shows which secrets it has. The next update tags it first.
  const hasOtherSecrets = !isUntagged(machine) && secrets(live) !== secrets(wanted);
  if (!sameVersion(live, wanted) || hasOtherSecrets) return "outdated";
  return sameMetadata(live, wanted) ? "current" : "metadata";
}

/** The tags of a Machine whose memory limit is set. A new version has no limit, and keeps the tag of the one before. */
export const memoryTags = (machine: Machine, limitMb: number): Record<string, string> => ({
  [memoryTag]: `${limitMb}@${versionOf(machine)}`,
});

/** Whether a Machine lacks the memory limit of its fleet. One that does not run has none. */
export const lacksMemoryLimit = (machine: Machine, limitMb: number | undefined): limitMb is number =>
  limitMb !== undefined &&
  machine.state === "started" &&
  metadataOf(machine)[memoryTag] !== memoryTags(machine, limitMb)[memoryTag];

/**
 * The members of a fleet. `before` is the template of the last update, whose metadata is the fleet's too. With `now`, one that
 * its restart policy has just started again is not ready (R16).
 */
export const membersOf = (
  machines: readonly Machine[],
  fleet: FleetKey,
  template: Template,
  before: Config | undefined,
  now?: number,
): Found[] =>
  machines.flatMap((machine) => {
    const [region, tagged, phase] = [regionOf(machine), phaseIn(machine), phaseOf(machine)];
    if (tagged === "release" || tagged === "standby" || phase === "release" || phase === "standby") return [];
    const wanted = configOf(fleet, template, { region, phase: tagged, ...mountedBy(machine) });
    const same = templateOf(machine, wanted, before);
    // A green one is cordoned on purpose.
    const uncordoned = tagged === "green" ? { ...machine, cordoned: false } : machine;
    return {
      machine,
      name: machine.name ?? machine.id,
      region,
      phase,
      template: same === "current" && lacksMemoryLimit(machine, template.memoryLimitMb) ? "metadata" : same,
      isReady:
        ["serving", "green"].includes(phase) &&
        isReady(uncordoned, template.config) &&
        (now === undefined || failureOf(machine, template, now) === undefined),
      createdAt: machine.createdAt ?? "",
      movesTo: movesTo(machine, fleet.name),
      copyOf: copyOf(machine),
    };
  });

/** The template that a Machine has. A mount of its own volume is no part of it. */
export function templateIn(machine: Machine, config: Config | undefined, hasVolume: boolean): Config {
  const { mounts, ...rest } = fromService(machine.config ?? noConfig, config);
  return hasVolume || mounts === undefined ? rest : { ...rest, mounts };
}

/** The fields in which a Machine differs from a configuration. */
export const differencesOf = (machine: Machine, config: Config, hasVolume: boolean): readonly string[] =>
  differingFields(templateIn(machine, config, hasVolume), config);

/** The type of the view of a Machine. */
export const machineType = "FleetMachine";

/** Name of the view of a Machine, or of the volume that was made for it. Without the App while that is unknown. */
export const viewName = (app: string | undefined, name: string): string =>
  app === undefined ? name : `${app}/${name}`;

/** The view of a Machine, by its name. */
export const machineView = ({ app }: Pick<FleetKey, "app">, name: string): Pick<View, "type" | "name"> => ({
  type: machineType,
  name: viewName(app, name),
});
