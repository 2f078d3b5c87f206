// Carries out one step of a rollout: what is sent, and what is waited for.
import { isNotFound, MachinesError } from "../client/errors.ts";
import { withLease, type Lease } from "../client/lease.ts";
import { lastEvent } from "../client/events.ts";
import { getFresh, versionOf, type Machine, type MachineKey } from "../client/wait.ts";
import { PartialStateError } from "../core/partialState.ts";
import { createOnce } from "../machines/create.ts";
import { keepMemory } from "../machines/memory.ts";
import { destroyGracefully, waitForTarget } from "../machines/power.ts";
import { toService } from "../machines/settings.ts";
import { applyChanges } from "../machines/update.ts";
import { millisecondsOf } from "./inputs.ts";
import {
  configOf,
  copyOf,
  fleetMachines,
  isReady,
  keyOf,
  lacksMemoryLimit,
  memoryTags,
  moveTag,
  ownConfig,
  regionOf,
  secretsTag,
  volumeOf,
  type Found,
  type Phase,
  type Rollout,
} from "./members.ts";
import { phaseTag } from "../../api/fleetTags.ts";
import type { Step } from "./planner.ts";
import { runRelease } from "./release.ts";
import { lookEvery } from "./view.ts";
import { copyFor, leaveVolume, volumeFor } from "./volumes.ts";

/** Whether a failure says something about the Machine, and not about this run. */
export const isUnhealthy = (error: unknown): error is MachinesError =>
  error instanceof MachinesError && ["machine-failed", "wait-timeout"].includes(error.code);

/** A step in words. */
export function describe(step: Step): string {
  switch (step.kind) {
    case "release":
      return "run the release command";
    case "create":
      return `create ${step.name}${step.isGreen ? " without traffic" : ""}${step.copyOf === undefined ? "" : `, with a copy of the volume of ${step.copyOf}`}`;
    case "move":
      return `move ${step.name} with its volume to ${step.to}`;
    case "update":
      return `update ${step.name}${step.isRepair ? ", which is down" : ""}`;
    case "relabel":
      return `change ${step.name} in place`;
    case "await":
      return `start ${step.name} if it is stopped, and wait until it passes`;
    case "expose":
      return `let traffic reach ${step.name}`;
    case "destroy":
      return `destroy ${step.name}`;
    case "keep":
      return `stop ${step.name} and keep it`;
    case "observe":
      return "watch the canaries";
  }
}

/** The Machines that a step has changed, by id; undefined for those that are gone. */
type Result = readonly (readonly [id: string, machine: Machine | undefined])[];

/** When the rollout has last made progress. */
export interface Moment {
  at: number;
}

/**
 * The same rollout, for one step. Its deadline is `progressDeadline` after the last progress of any step, because steps may
 * wait for each other, for instance when requests are limited.
 */
function patient(rollout: Rollout, progress: Moment): Rollout {
  const { call, wanted } = rollout;
  const { deadline } = call.api;
  const patience = millisecondsOf(wanted.progressDeadline, "10m");
  const api = call.api.within({
    ...deadline,
    get at() {
      return Math.min(deadline.at, progress.at + patience);
    },
    allowed: wanted.progressDeadline,
    advice: "progressDeadline allows more time.",
  });
  return { ...rollout, call: { ...call, api } };
}

/** Carries out one step. A Machine that runs and is unhealthy is restarted once if that is wanted. */
export async function carryOut(
  rollout: Rollout,
  step: Step,
  members: readonly Found[],
  lastProgress: Moment,
): Promise<Result> {
  const { call, wanted } = rollout;
  if (step.kind === "observe") {
    await observe(rollout, members);
    return [];
  }
  try {
    // A step that begins is progress too.
    lastProgress.at = call.api.clock.now();
    return await apply(patient(rollout, lastProgress), step, members);
  } catch (error) {
    const mayRestart = wanted.restartOnce && ["create", "update", "await"].includes(step.kind) && isUnhealthy(error);
    if (!mayRestart) throw error;
    lastProgress.at = call.api.clock.now();
    return resultOf(await restart(patient(rollout, lastProgress), step.name, error));
  }
}

const resultOf = (machine: Machine): Result => [[machine.id, machine]];

async function apply(rollout: Rollout, step: Step, members: readonly Found[]): Promise<Result> {
  if (step.kind === "release") {
    await runRelease(rollout, step.name);
    return [];
  }
  if (step.kind === "create") return resultOf(await create(rollout, step, await volumeOfNew(rollout, step, members)));
  const member = members.find(({ name }) => name === step.name);
  if (member === undefined) return [];
  const { id } = member.machine;
  if (step.kind === "move") return [...resultOf(await move(rollout, step, member)), [id, undefined]];
  if (step.kind === "destroy" || step.kind === "keep") return [[id, await takeAway(rollout, step.kind, member)]];
  const now = step.kind === "await" && member.phase === "kept" ? "green" : member.phase;
  const changed = await change(rollout, member, step.kind === "expose" || now === "lost" ? "serving" : now);
  if (step.kind === "update" || step.kind === "await") await stayHealthy(rollout, keyOf(rollout, member.machine));
  return resultOf(changed);
}

/** Restarts a Machine that runs and is unhealthy, and waits until it is ready. @throws the error `why` if it does not run */
async function restart(rollout: Rollout, name: string, why: MachinesError): Promise<Machine> {
  const { call, fleet, wanted } = rollout;
  const { api, progress } = call;
  const machine = (await fleetMachines(api, fleet.app, fleet.name)).find((one) => one.name === name);
  if (machine?.state !== "started") throw why;
  progress(`Machine ${name} does not pass its checks; it is restarted once`);
  const key = keyOf(rollout, machine);
  const restarted = await withLease(api, key, { description: "rollout by pulumi", progress }, async (lease) => {
    await api.machines.restart({ ...key, leaseNonce: lease.nonce() });
    return waitForTarget(call, key, wanted, { target: "started", version: versionOf(machine), lease });
  });
  await stayHealthy(rollout, key);
  return restarted;
}

type Create = Step & { readonly kind: "create" };

/** The volume for a new Machine. */
async function volumeOfNew(
  { call, fleet: { app }, template: { volume } }: Rollout,
  { name, region, copyOf: of }: Create,
  members: readonly Found[],
): Promise<string | undefined> {
  const original = members.find((member) => member.name === of)?.machine;
  const source = original && volumeOf(original);
  if (volume === undefined) return undefined;
  if (source === undefined) return volumeFor(call, app, name, region, volume);
  return copyFor(call, app, name, region, { source, isBegun: false, wanted: volume });
}

/** Moves a Machine with its data: stops it, copies its volume, creates the new Machine, and destroys the old one when that passes. */
async function move(
  rollout: Rollout,
  { to, region }: Step & { readonly kind: "move" },
  member: Found,
): Promise<Machine> {
  const { call, fleet, template } = rollout;
  const { api, progress } = call;
  const key = keyOf(rollout, member.machine);
  const source = volumeOf(member.machine);
  const volumeId = await withLease(api, key, { description: "rollout by pulumi", progress }, async (lease) => {
    const live = await getFresh(api, key, { fresh: true });
    const isBegun = live.config?.metadata?.[moveTag] === to;
    await drain(rollout, live, lease);
    await stopAndTag(rollout, live, lease, { [moveTag]: to });
    return (
      source && template.volume && copyFor(call, fleet.app, to, region, { source, isBegun, wanted: template.volume })
    );
  });
  const machine = await create(rollout, { kind: "create", name: to, region, isGreen: false }, volumeId);
  await takeAway(rollout, "destroy", member);
  return machine;
}

async function create(rollout: Rollout, step: Create, volumeId: string | undefined): Promise<Machine> {
  const { call, fleet, template, wanted } = rollout;
  const phase = step.isGreen ? "green" : "serving";
  const config = configOf(fleet, template, { region: step.region, phase, volumeId, copyOf: step.copyOf });
  const body = {
    name: step.name,
    region: step.region,
    config: toService(config),
    skipServiceRegistration: step.isGreen || undefined,
    minSecretsVersion: template.minSecretsVersion,
  };
  const { fallbackRegions } = wanted;
  const made = await createOnce(call, undefined, fleet.app, body, { config, fallbackRegions });
  const key = keyOf(rollout, made);
  const { startDeadline, passDeadline } = wanted;
  const target = { config, startDeadline, passDeadline };
  const version = versionOf(made);
  const machine = await waitForTarget(call, key, target, { target: "started", version, fresh: true });
  await stayHealthy(rollout, key);
  return limitMemory(rollout, machine);
}

/** Sets the memory limit of a Machine, and then tags it with the limit. */
async function limitMemory(rollout: Rollout, machine: Machine): Promise<Machine> {
  const { call, template } = rollout;
  const { memoryLimitMb } = template;
  if (!lacksMemoryLimit(machine, memoryLimitMb)) return machine;
  const key = keyOf(rollout, machine);
  await keepMemory(call.api, key, machine, memoryLimitMb);
  await call.api.machines.patchMetadata({ ...key, body: { metadata: memoryTags(machine, memoryLimitMb) } });
  return call.api.machines.get(key);
}

/** Brings a Machine to its configuration, phase and power state, and waits until its checks pass. */
async function change(rollout: Rollout, { machine, region }: Found, phase: Phase): Promise<Machine> {
  const { fleet, template } = rollout;
  const volumeId = volumeOf(machine);
  const config = configOf(fleet, template, { region, phase, volumeId, copyOf: copyOf(machine) });
  const rests = machine.state !== "started" && isReady({ ...machine, cordoned: false }, template.config);
  const wanted = {
    config,
    state: rests ? undefined : ("started" as const),
    startDeadline: rollout.wanted.startDeadline,
    passDeadline: rollout.wanted.passDeadline,
    cordoned: phase === "green",
  };
  return bringTo(rollout, machine, wanted);
}

/** Brings a Machine to a configuration and a power state, under its lease. */
export async function bringTo(
  rollout: Rollout,
  machine: Machine,
  wanted: Omit<Parameters<typeof applyChanges>[3], "minSecretsVersion">,
): Promise<Machine> {
  const { call, template, before } = rollout;
  const { minSecretsVersion } = template;
  const { config } = wanted;
  const key = keyOf(rollout, machine);
  return withLease(call.api, key, { description: "rollout by pulumi", progress: call.progress }, async (lease) => {
    const live = await getFresh(call.api, key, { fresh: true });
    const own = ownConfig(live, config, before);
    const isSeen = own.metadata?.[secretsTag] === config.metadata?.[secretsTag];
    // Nothing is compared with a state: a Machine that others have changed is brought back to the template.
    const old = { config: own, unfinished: true, minSecretsVersion: isSeen ? minSecretsVersion : undefined };
    const changed = await applyChanges(call, key, lease, { ...wanted, minSecretsVersion }, old, () => ({}));
    return limitMemory(rollout, changed);
  }).catch((error: unknown) => {
    throw error instanceof PartialStateError && error.cause instanceof MachinesError ? error.cause : error;
  });
}

/** Waits for as long as a Machine must run and pass before it counts. */
async function stayHealthy({ call: { api }, wanted }: Rollout, key: MachineKey): Promise<void> {
  const seconds = wanted.strategy?.minHealthySeconds ?? 0;
  if (seconds === 0) return;
  await api.clock.sleep(seconds * 1000, api.deadline.signal);
  const live = await api.machines.get(key);
  if (!isReady({ ...live, cordoned: false }, wanted.config))
    throw unhealthy(live, `within ${seconds} s after it had passed`);
}

const unhealthy = (live: Machine, when: string): MachinesError =>
  new MachinesError(
    "machine-failed",
    `Machine ${live.name ?? live.id} (${live.id}) failed ${when}: it is ${live.state}, ${lastEvent(live)}.`,
  );

/** Watches the canaries: one that fails ends the rollout. */
async function observe({ call: { api, progress }, fleet, wanted }: Rollout, members: readonly Found[]): Promise<void> {
  const canaries = members.filter(({ template, phase }) => template !== "outdated" && phase === "serving");
  const until = api.clock.now() + millisecondsOf(wanted.strategy?.observe, "1m");
  progress(`watching ${canaries.map(({ name }) => name).join(", ")} for ${wanted.strategy?.observe ?? "1m"}`);
  for (;;) {
    const live = new Map((await fleetMachines(api, fleet.app, fleet.name)).map((machine) => [machine.id, machine]));
    for (const { machine } of canaries) {
      const now = live.get(machine.id);
      if (now === undefined || !isReady(now, wanted.config))
        throw unhealthy(now ?? machine, "while it was watched as a canary");
    }
    const remaining = until - api.clock.now();
    if (remaining <= 0) return;
    await api.clock.sleep(Math.min(lookEvery, remaining), api.deadline.signal);
  }
}

/** Takes the traffic from a Machine that has some, and lets it finish. Returns whether it is cordoned now. */
async function drain({ call: { api }, fleet, wanted }: Rollout, live: Machine, lease: Lease): Promise<boolean> {
  const time = millisecondsOf(wanted.strategy?.drain, "0s");
  const serves = live.state === "started" && live.cordoned !== true && (live.config?.services ?? []).length > 0;
  if (!serves || time === 0) return live.cordoned === true;
  await api.machines.cordon({ appName: fleet.app, machineId: live.id, leaseNonce: lease.nonce() });
  await api.clock.sleep(time, api.deadline.signal);
  return true;
}

/** Stops a Machine, and sets tags in its metadata. */
async function stopAndTag(
  rollout: Rollout,
  live: Machine,
  lease: Lease,
  tags: Record<string, string>,
): Promise<Machine> {
  const { call, fleet, template } = rollout;
  const written = configOf(fleet, template, { region: regionOf(live), phase: "serving", volumeId: volumeOf(live) });
  const own = ownConfig(live, written, undefined);
  const config = { ...own, metadata: { ...own.metadata, ...tags } };
  const stopped = { config, state: "stopped" as const, cordoned: true };
  return applyChanges(call, keyOf(rollout, live), lease, stopped, { config: own, unfinished: false }, () => ({}));
}

/** Takes the traffic from a Machine, lets it finish, and stops it; then it is destroyed or kept. Returns it if it is kept. */
export async function takeAway(
  rollout: Rollout,
  kind: "destroy" | "keep",
  { machine, phase }: Found,
): Promise<Machine | undefined> {
  const { call, fleet, wanted } = rollout;
  const { api, progress } = call;
  const key = keyOf(rollout, machine);
  try {
    if (phase === "lost") {
      // Only a deletion of the fleet does this.
      await api.machines.destroy({ ...key, force: true });
      return undefined;
    }
    const kept = await withLease(api, key, { description: "rollout by pulumi", progress }, async (lease) => {
      const live = await getFresh(api, key, { fresh: true });
      const cordoned = await drain(rollout, live, lease);
      if (kind === "keep") return stopAndTag(rollout, live, lease, { [phaseTag]: "kept" });
      await destroyGracefully(call, key, lease, { ...live, cordoned }, { config: live.config, force: false });
      lease.letGo();
      return undefined;
    });
    if (kept) return kept;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const volumeId = volumeOf(machine);
  if (kind === "destroy" && volumeId !== undefined)
    await leaveVolume(call, fleet.app, machine.name ?? machine.id, volumeId, wanted.deleteVolumes);
  return undefined;
}
