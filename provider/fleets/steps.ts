// Carries out one step of a rollout: what is sent, and what is waited for.
import { isNotFound, MachinesError } from "../client/errors.ts";
import { withLease, type Lease } from "../client/lease.ts";
import { exitSince, lastEvent, notReached } from "../client/events.ts";
import { versionOf, type Machine } from "../client/machine.ts";
import { Pending, poll } from "../client/poll.ts";
import { getFresh } from "../client/wait.ts";
import { PartialStateError } from "../core/partialState.ts";
import { createOnce } from "../machines/create.ts";
import { keepMemory } from "../machines/memory.ts";
import { bring, end } from "../machines/executor.ts";
import type { WantedMachine } from "../machines/plan.ts";
import { untilReady } from "../machines/ready.ts";
import { toService } from "../machines/settings.ts";
import { millisecondsOf } from "./inputs.ts";
import {
  configOf,
  hasEarlierData,
  fleetMachines,
  isReady,
  keyOf,
  lacksMemoryLimit,
  memoryTags,
  mountedBy,
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
import type { Voice } from "./messages.ts";
import { bringsUp, type Step } from "./planner.ts";
import { runRelease } from "./release.ts";
import { lookEvery } from "./observed.ts";
import { copyFor, discardVolume, leaveVolume, volumeFor, type VolumeOfNew } from "./volumes.ts";

/** The Machines that a step has changed, by id; undefined for those that are gone. */
type Result = readonly (readonly [id: string, machine: Machine | undefined])[];

/** Carries out the steps of a rollout, each within `progressDeadline` after the last progress of any of them. */
export class Steps {
  readonly #rollout: Rollout;
  readonly #voice: Voice;
  /** When the rollout was last better than ever before. */
  #progressAt: number;
  /** Names of Machines that were restarted because they did not pass. */
  readonly #restarted = new Set<string>();

  constructor(rollout: Rollout, voice: Voice) {
    this.#rollout = rollout;
    this.#voice = voice;
    this.#progressAt = rollout.call.api.clock.now();
  }

  /** Notes that the rollout is better than ever before. A step that begins, or is repeated, is no progress (R16). */
  progressed(): void {
    this.#progressAt = this.#rollout.call.api.clock.now();
  }

  /** Milliseconds without progress after which the rollout has failed. */
  get #patience(): number {
    const { progressDeadline, strategy } = this.#rollout.wanted;
    const healthy = (strategy?.minHealthySeconds ?? 0) * 1000;
    return millisecondsOf(progressDeadline, "10m") + healthy + millisecondsOf(strategy?.drain, "0s");
  }

  /** @throws MachinesError `wait-timeout` if the rollout has not become better for too long. */
  requireProgress(): void {
    const { call, wanted } = this.#rollout;
    if (call.api.clock.now() - this.#progressAt <= this.#patience) return;
    throw new MachinesError(
      "wait-timeout",
      `No further Machine became ready within ${wanted.progressDeadline}. progressDeadline allows more time.`,
    );
  }

  /** The same rollout, for one step: its waits end some time after what `since` returns, and name the Machine. */
  #patient(name: string, since: () => number): Rollout {
    const { call, wanted } = this.#rollout;
    const { deadline } = call.api;
    const patience = this.#patience;
    const api = call.api.within({
      ...deadline,
      get at() {
        return Math.min(deadline.at, since() + patience);
      },
      allowed: wanted.progressDeadline,
      advice: "progressDeadline allows more time.",
    });
    return { ...this.#rollout, call: { ...call, api, progress: this.#voice.about(name) } };
  }

  /** Carries out one step. A Machine that runs and is unhealthy is restarted once if that is wanted. */
  async carryOut(step: Step, members: readonly Found[]): Promise<Result> {
    if (step.kind === "observe") {
      const { call } = this.#rollout;
      await observe({ ...this.#rollout, call: { ...call, progress: (text) => this.#voice.say(text) } }, members);
      return [];
    }
    const { name } = step;
    try {
      return await apply(
        this.#patient(name, () => this.#progressAt),
        step,
        members,
      );
    } catch (error) {
      const mayRestart = this.#rollout.wanted.restartOnce && bringsUp(step) && !this.#restarted.has(name);
      if (!mayRestart || !isUnhealthy(error)) throw error;
      this.#restarted.add(name);
      const restartedAt = this.#rollout.call.api.clock.now();
      return resultOf(
        await restart(
          this.#patient(name, () => restartedAt),
          name,
          error,
        ),
      );
    }
  }
}

/** Whether a failure says something about the Machine, and not about this run. */
const isUnhealthy = (error: unknown): error is MachinesError =>
  error instanceof MachinesError && ["machine-failed", "wait-timeout"].includes(error.code);

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
  if (step.kind === "keep") return [[id, await takeAway(rollout, "keep", member)]];
  if (step.kind === "destroy") {
    const { wanted } = rollout;
    // A new configuration that never got traffic takes no data with it that was there before.
    const deleteVolumes = wanted.deleteVolumes && !hasEarlierData(member.machine);
    return [[id, await takeAway({ ...rollout, wanted: { ...wanted, deleteVolumes } }, "destroy", member)]];
  }
  const now = step.kind === "await" && member.phase === "kept" ? "green" : member.phase;
  const changed = await change(rollout, member, step.kind === "expose" || now === "lost" ? "serving" : now);
  if (step.kind === "update" || step.kind === "await") await stayHealthy(rollout, changed);
  return resultOf(changed);
}

/**
 * How long a Machine is waited for. A healthy time of the fleet is for each Machine, so that {@link stayHealthy} waits for it;
 * otherwise what one Machine proves counts for the others.
 */
const patienceOf = ({ startDeadline, passDeadline, strategy }: Rollout["wanted"]) => ({
  ...{ startDeadline, passDeadline },
  minHealthySeconds: strategy?.minHealthySeconds === undefined ? undefined : 0,
});

/** Restarts a Machine that runs and is unhealthy, and waits until it is ready. @throws the error `why` if it does not run */
async function restart(rollout: Rollout, name: string, why: MachinesError): Promise<Machine> {
  const { call, fleet, wanted } = rollout;
  const { api, progress } = call;
  const machine = (await fleetMachines(api, fleet)).find((one) => one.name === name);
  if (machine?.state !== "started") throw why;
  progress(`Machine ${name} does not pass its checks; it is restarted once`);
  const key = keyOf(rollout, machine);
  const restarted = await withLease(api, key, { description: "rollout by pulumi", progress }, async (lease) => {
    await api.machines.restart({ ...key, leaseNonce: lease.nonce() });
    const expected = { config: wanted.config, ...patienceOf(wanted) };
    const lastEventId = machine.events?.[0]?.id;
    return untilReady(call, key, expected, { version: versionOf(machine), lastEventId });
  });
  await stayHealthy(rollout, restarted);
  return restarted;
}

type Create = Step & { readonly kind: "create" };

/** The volume for a new Machine. */
async function volumeOfNew(
  { call, fleet, template: { volume } }: Rollout,
  { name, region, copyOf: of }: Create,
  members: readonly Found[],
): Promise<VolumeOfNew | undefined> {
  const original = members.find((member) => member.name === of)?.machine;
  const source = original && volumeOf(original);
  if (volume === undefined) return undefined;
  if (source === undefined) return volumeFor(call, fleet, name, region, volume);
  return copyFor(call, fleet, name, region, { source, isBegun: false, wanted: volume });
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
  const volume = await withLease(api, key, { description: "rollout by pulumi", progress }, async (lease) => {
    const live = await getFresh(api, key, { fresh: true });
    const isBegun = live.config?.metadata?.[moveTag] === to;
    await drain(rollout, live, lease);
    await stopAndTag(rollout, live, lease, { [moveTag]: to });
    if (source === undefined || template.volume === undefined) return undefined;
    const { id } = await copyFor(call, fleet, to, region, { source, isBegun, wanted: template.volume });
    // The next update continues with the same copy if the new Machine fails.
    return { id, isNew: false };
  });
  const machine = await create(rollout, { kind: "create", name: to, region, isGreen: false }, volume);
  await takeAway(rollout, "destroy", member);
  return machine;
}

async function create(rollout: Rollout, step: Create, volume: VolumeOfNew | undefined): Promise<Machine> {
  const { call, fleet, template, wanted } = rollout;
  const volumeId = volume?.id;
  const phase = step.isGreen ? "green" : "serving";
  const hasData = volume !== undefined && !volume.isNew && step.copyOf === undefined;
  const config = configOf(fleet, template, { region: step.region, phase, volumeId, copyOf: step.copyOf, hasData });
  const body = {
    name: step.name,
    region: step.region,
    config: toService(config),
    skipServiceRegistration: step.isGreen || undefined,
    minSecretsVersion: template.minSecretsVersion,
  };
  const { fallbackRegions } = wanted;
  let isRefused = false;
  const refused = () => (isRefused = true);
  const made = await createOnce(call, undefined, fleet.app, body, { config, fallbackRegions, refused }).catch(
    async (error: unknown) => {
      if (isRefused && volume?.isNew) await discardVolume(call, fleet, step.name, volume.id);
      throw error;
    },
  );
  if (volumeId !== undefined) fleet.volumes.add(volumeId);
  const key = keyOf(rollout, made);
  const expected = { config, ...patienceOf(wanted) };
  const machine = await untilReady(call, key, expected, { version: versionOf(made), fresh: true });
  await stayHealthy(rollout, machine);
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
  const config = configOf(fleet, template, { region, phase, ...mountedBy(machine) });
  const rests = machine.state !== "started" && isReady({ ...machine, cordoned: false }, template.config);
  const wanted = {
    config,
    state: rests ? undefined : ("started" as const),
    ...patienceOf(rollout.wanted),
    cordoned: phase === "green",
  };
  return bringTo(rollout, machine, wanted);
}

/** Brings a Machine to a configuration and a power state, under its lease. */
export async function bringTo(
  rollout: Rollout,
  machine: Machine,
  wanted: Omit<WantedMachine, "minSecretsVersion">,
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
    const changed = await bring(call, key, lease, { ...wanted, minSecretsVersion }, old, () => ({}));
    return limitMemory(rollout, changed);
  }).catch((error: unknown) => {
    throw error instanceof PartialStateError && error.cause instanceof MachinesError ? error.cause : error;
  });
}

/**
 * Waits until a Machine has kept running, and passed, for as long as the fleet wants each of them to. Its events decide (R16). Where
 * the fleet does not say for how long, {@link untilReady} has watched it.
 */
async function stayHealthy(rollout: Rollout, machine: Machine): Promise<void> {
  const { call, wanted } = rollout;
  const { clock, deadline, machines } = call.api;
  const key = keyOf(rollout, machine);
  const lastEventId = machine.events?.[0]?.id;
  const until = clock.now() + (wanted.strategy?.minHealthySeconds ?? 0) * 1000;
  for (let remaining = until - clock.now(); remaining > 0; remaining = until - clock.now()) {
    const state = ["stopped", "failed", "suspended", "destroyed"] as const;
    const timeout = Math.min(60, Math.ceil(remaining / 1000));
    const isAtRest = await machines.wait({ ...key, state: [...state], timeout }).then(
      () => true,
      () => false,
    );
    // Where a wait ends early, the events still tell.
    if (!isAtRest) await clock.sleep(Math.min(lookEvery, until - clock.now()), deadline.signal);
    requireHealthy(rollout, await machines.get(key), lastEventId, "after it had passed");
    // One that rests until it is needed is not waited for again.
    if (isAtRest) await clock.sleep(until - clock.now(), deadline.signal);
  }
}

/** @throws MachinesError `machine-failed` if the program of a Machine ended after an event, or if its checks do not pass */
function requireHealthy(rollout: Rollout, live: Machine, lastEventId: string | undefined, when: string): void {
  if (exitSince(live, lastEventId)) throw notReached(keyOf(rollout, live), live, "started", lastEventId);
  if (isReady({ ...live, cordoned: false }, rollout.wanted.config)) return;
  throw new MachinesError(
    "machine-failed",
    `Machine ${live.name ?? live.id} (${live.id}) failed ${when}: it is ${live.state}, ${lastEvent(live)}.`,
  );
}

/** Watches the canaries: one that fails ends the rollout. */
async function observe(rollout: Rollout, members: readonly Found[]): Promise<void> {
  const { call, fleet, wanted } = rollout;
  const { api } = call;
  const canaries = members.filter(({ template, phase }) => template !== "outdated" && phase === "serving");
  const until = api.clock.now() + millisecondsOf(wanted.strategy?.observe, "1m");
  const names = canaries.map(({ name }) => name).join(", ");
  call.progress(`watching ${names} for ${wanted.strategy?.observe ?? "1m"}`);
  const lastEvents = new Map<string, string | undefined>();
  const watch = async (): Promise<undefined | Pending> => {
    const live = new Map((await fleetMachines(api, fleet)).map((machine) => [machine.id, machine]));
    for (const { machine } of canaries) {
      const now = live.get(machine.id);
      if (now === undefined) throw notReached(keyOf(rollout, machine), now, "started");
      if (!lastEvents.has(machine.id)) lastEvents.set(machine.id, now.events?.[0]?.id);
      requireHealthy(rollout, now, lastEvents.get(machine.id), "while it was watched as a canary");
    }
    return api.clock.now() < until ? new Pending() : undefined;
  };
  await poll({ api }, watch, { first: lookEvery, longest: lookEvery });
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
  return bring(call, keyOf(rollout, live), lease, stopped, { config: own, unfinished: false }, () => ({}));
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
      // Only a deletion of the fleet does this. Without its host, a Machine has no lease.
      await api.machines.destroy({ ...key, force: true });
      if (wanted.volume)
        call.warn(
          `the host of Machine ${machine.name ?? "?"} (${machine.id}) cannot be reached: it is deleted, and its volume stays; npx pulumi-machines orphans shows it when the host can be reached`,
        );
      return undefined;
    }
    const kept = await withLease(api, key, { description: "rollout by pulumi", progress }, async (lease) => {
      const live = await getFresh(api, key, { fresh: true });
      const cordoned = await drain(rollout, live, lease);
      if (kind === "keep") return stopAndTag(rollout, live, lease, { [phaseTag]: "kept" });
      await end(call, key, lease, { ...live, cordoned }, { config: live.config, force: false });
      lease.letGo();
      return undefined;
    });
    if (kept) return kept;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const volumeId = volumeOf(machine);
  if (kind === "destroy" && volumeId !== undefined)
    await leaveVolume(call, fleet, machine.name ?? machine.id, volumeId, wanted.deleteVolumes);
  return undefined;
}
