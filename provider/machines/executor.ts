// Carries out what a Machine needs: the first step of its plan, then a look, then the plan again (plan.ts).
import { formatDuration } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { ApiError, isAmbiguous, MachinesError, messageOf } from "../client/errors.ts";
import { isLost, withLease, type Lease } from "../client/lease.ts";
import { versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { getFresh, waitForMachine } from "../client/wait.ts";
import { PartialStateError } from "../core/partialState.ts";
import type { Call } from "../core/resource.ts";
import { retryUnlessApplied } from "../core/retryUnlessApplied.ts";
import { keepMemory } from "./memory.ts";
import {
  after,
  created,
  failed,
  mayRollBack,
  observed,
  plan,
  planEnd,
  refusalOf,
  type KnownMachine,
  type Observed,
  type Step,
  type WantedMachine,
} from "./plan.ts";
import { untilIn, untilReady } from "./ready.ts";
import { retryWhileReleased } from "./released.ts";
import { fromService, sameVersion, type Config } from "./settings.ts";

/** A new version failed and the previous configuration runs again; only the version number differs. */
export class RolledBackError extends MachinesError {
  constructor(message: string, cause: unknown) {
    super("machine-failed", message, { cause });
    this.name = "RolledBackError";
  }
}

/** The steps of one operation on one Machine. */
class Execution {
  readonly #call: Call;
  readonly #key: MachineKey;
  readonly #lease: Lease | undefined;
  seen: Observed;
  /** The step that is carried out, or that failed. */
  step: Step | undefined;
  /** Whether the Machine has changed, or may have. */
  hasChanged = false;

  constructor(call: Call, key: MachineKey, lease: Lease | undefined, seen: Observed) {
    this.#call = call;
    this.#key = key;
    this.#lease = lease;
    this.seen = seen;
  }

  /** Carries out a plan, and returns the Machine. `limit` is the service within the time that a wait may take. */
  async follow(next: (seen: Observed) => readonly Step[], limit = (): Api => this.#call.api): Promise<Machine> {
    while ((this.step = next(this.seen)[0])) {
      const answer = await (this.step.kind === "wait" ? this.#wait(this.step, limit()) : this.#send(this.step));
      this.seen = after(this.seen, this.step, answer);
    }
    return this.seen.live;
  }

  /** Sends the request of a step. Returns the Machine, as far as the answer shows it. */
  async #send(step: Exclude<Step, { kind: "wait" }>): Promise<Partial<Machine> | undefined> {
    const { machines } = this.#call.api;
    const key = this.#key;
    switch (step.kind) {
      case "update":
      case "roll back":
        return this.#postVersion(step);
      case "read":
        return machines.get(key);
      case "memory":
        return keepMemory(this.#call.api, key, this.seen.live, step.limitMb);
      case "restart":
        return this.#trigger(() => machines.restart({ ...key, leaseNonce: this.#lease?.nonce(), ...step.options }));
      case "signal":
        return this.#trigger(() => machines.signal({ ...key, body: { signal: step.signal } }));
      case "metadata": {
        const body = { metadata: step.metadata, machineVersion: versionOf(this.seen.before) };
        await machines.patchMetadata({ ...this.#changed(), body });
        return undefined;
      }
      case "cordon":
      case "uncordon":
      case "start":
      case "suspend":
        await machines[step.kind](this.#guarded());
        return undefined;
      case "stop":
        await machines.stop({ ...this.#guarded(), body: step.body });
        return undefined;
      case "destroy":
        await machines.destroy({ ...this.#guarded(), force: step.force || undefined });
        return { state: "destroying" };
    }
  }

  /** The Machine, which the next request changes. Its refusal may be that of a repeated request. */
  #changed(): MachineKey {
    this.hasChanged = true;
    return this.#key;
  }

  /** The same, under the lease. */
  #guarded(): MachineKey & { readonly leaseNonce: string | undefined } {
    return { ...this.#changed(), leaseNonce: this.#lease?.nonce() };
  }

  /** Posts a configuration. A second request is refused if the first one was applied, because it names the version that it replaces. */
  async #postVersion({ kind, body, config }: Step & { readonly kind: "update" | "roll back" }): Promise<Machine> {
    const { machines } = this.#call.api;
    try {
      const live = await retryUnlessApplied(this.#call.api, {
        send: () =>
          retryWhileReleased(this.#call, this.#key.appName, () =>
            machines.update({ ...this.#key, leaseNonce: this.#lease?.nonce(), body }),
          ),
        look: async () => {
          this.hasChanged = true;
          const now = await machines.get(this.#key);
          const isMade = now.config && sameVersion(fromService(now.config, config), config);
          return isMade && versionOf(now) !== body.currentVersion ? now : undefined;
        },
      });
      this.hasChanged = true;
      return live;
    } catch (error) {
      throw kind === "update" ? explainConflict(this.#key, error) : error;
    }
  }

  async #trigger(send: () => Promise<unknown>): Promise<undefined> {
    try {
      await send();
    } catch (error) {
      // A second restart does less harm than none, so an uncertain one is repeated.
      if (isAmbiguous(error)) this.hasChanged = true;
      throw error;
    }
    this.hasChanged = true;
  }

  async #wait(step: Step & { readonly kind: "wait" }, api: Api): Promise<Partial<Machine>> {
    const call = { ...this.#call, api };
    const { progress } = call;
    const key = this.#key;
    const { live, lastEventId, isNew: fresh } = this.seen;
    const start = { version: versionOf(live), lastEventId, fresh };
    switch (step.until) {
      case "ready":
        return untilReady(call, key, step.expected, start);
      case "settled":
        return { state: await waitForMachine(api, key, ["settled", "destroyed"], { progress }) };
      case "at rest":
        return { state: await waitForMachine(api, key, ["stopped", "failed", "destroyed"], { ...start, progress }) };
      case "destroyed":
        return { state: await waitForMachine(api, key, ["destroyed"], { progress }) };
      case "started":
        await untilIn(call, key, step.until, start);
        return { state: step.until };
      case "stopped":
      case "suspended":
        await untilIn(call, key, step.until, start);
        return getFresh(api, key, { fresh });
    }
  }
}

/** Brings a Machine that was just created to its power state, and sets its memory limit. */
export function finish(call: Call, key: MachineKey, wanted: WantedMachine, made: Machine): Promise<Machine> {
  const leadsTo = wanted.state === "stopped" ? "stopped" : "started";
  const known = { config: wanted.config, unfinished: false };
  const execution = new Execution(call, key, undefined, created(made, leadsTo));
  return execution.follow((seen) => plan(wanted, known, seen));
}

/**
 * Brings a Machine to what is wanted, under its lease, and returns it. If a new version fails and the program requests it, the previous
 * configuration is restored.
 * @throws PartialStateError if something was changed and a later step failed, with what `toLive` makes of the Machine
 * @throws RolledBackError when the previous configuration runs again
 */
export async function bring(
  call: Call,
  key: MachineKey,
  lease: Lease,
  wanted: WantedMachine,
  known: KnownMachine,
  toLive: (live: Machine) => Record<string, unknown>,
): Promise<Machine> {
  // A Machine with a lease exists, visible or not.
  const before = await getFresh(call.api, key, { fresh: true });
  // The request that follows names this version, so nothing can come between.
  if (!lease.isAgain) call.confirm?.({ version: versionOf(before) ?? "none" });
  const execution = new Execution(call, key, lease, observed(before));
  // With a lease that was lost and acquired again, part of the change may be in place already.
  execution.hasChanged = lease.isAgain;
  const isRolledBack = () => mayRollBack(wanted, known, execution.seen);
  try {
    const refusal = refusalOf(key, wanted, known, before);
    if (refusal) throw refusal;
    return await execution.follow(
      (seen) => plan(wanted, known, seen),
      () => (isRolledBack() ? mostOf(call.api) : call.api),
    );
  } catch (error) {
    if (!execution.hasChanged || before.state === "destroyed") throw error;
    const isDue = execution.step?.kind === "wait" && isRolledBack() && saysItFailed(call.api, error);
    const failure = isDue ? await rollBack(call, key, lease, { wanted, known, seen: execution.seen }, error) : error;
    if (failure instanceof RolledBackError) throw failure;
    const now = await currentOr(call.api, key, before);
    throw new PartialStateError({ ...toLive(now), ...notMade(known, now, execution.seen) }, failure);
  }
}

/** A cancellation or a failed read says nothing about the version. */
const saysItFailed = (api: Api, error: unknown): error is MachinesError =>
  error instanceof MachinesError &&
  ["machine-failed", "wait-timeout"].includes(error.code) &&
  api.deadline.signal?.aborted !== true;

/** Two thirds of the remaining time; the rollback has the rest. */
function mostOf(api: Api): Api {
  const { at, signal } = api.deadline;
  const now = api.clock.now();
  const seconds = Math.round(((at - now) * 2) / 3 / 1000);
  return api.within({ at: now + seconds * 1000, allowed: formatDuration(seconds * 1e9), signal });
}

/** Restores the previous configuration after a new version has failed. Returns the error of the update. */
async function rollBack(
  call: Call,
  key: MachineKey,
  lease: Lease,
  { wanted, known, seen }: { readonly wanted: WantedMachine; readonly known: KnownMachine; readonly seen: Observed },
  why: MachinesError,
): Promise<MachinesError> {
  const name = `Machine ${key.appName}/${key.machineId}`;
  call.progress(`the new version of ${name} failed; rolling back to the previous configuration`);
  const restore = (under: Lease): Promise<Machine> =>
    new Execution(call, key, under, failed(seen)).follow((now) => plan(wanted, known, now));
  try {
    const back = await restore(lease).catch((error: unknown) => {
      if (!isLost(error)) throw error;
      // A lost lease does not end the rollback: it continues with another one.
      return withLease(call.api, key, { description: "rollback by pulumi", progress: call.progress }, restore);
    });
    const does = seen.before.state === "started" ? "runs" : "is in place";
    return new RolledBackError(
      `the new version of ${name} failed, and the previous configuration ${does} again, as version ${versionOf(back) ?? "?"}: ${why.message}`,
      why,
    );
  } catch (error) {
    return new MachinesError(
      why.code,
      `the new version of ${name} failed: ${why.message} The rollback to the previous configuration also failed: ${messageOf(error)}`,
      // Losing the lease at the end is no reason to start over.
      isLost(error) ? {} : { cause: error },
    );
  }
}

/** Values that no read shows and that were not changed yet keep their old state, so that the next update changes them. */
function notMade(known: KnownMachine, now: Machine, { before, done }: Observed): Record<string, unknown> {
  if (versionOf(now) !== versionOf(before)) return {};
  const isTriggered = done.includes("restart") || done.includes("signal");
  const triggers = isTriggered ? {} : { restart: known.restart ?? null, reload: known.reload ?? null };
  return { minSecretsVersion: known.minSecretsVersion ?? null, ...triggers };
}

function explainConflict(key: MachineKey, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 409 || !/version mismatch|concurrent update/.test(error.reason))
    return error;
  return new MachinesError(
    "stale-version",
    `Machine ${key.appName}/${key.machineId} was changed by another client during the update: ${error.message} Nothing was changed. Run up again.`,
    { cause: error },
  );
}

/** The current Machine, or the previous one if it cannot be read now. */
export async function currentOr(api: Api, key: MachineKey, before: Machine): Promise<Machine> {
  const grace = api.within({ at: api.clock.now() + 10_000, allowed: "10s" });
  return grace.machines.get(key).catch(() => before);
}

/**
 * Ends a Machine under its lease: it gets no more traffic, stops as its configuration says, and is destroyed. `force` kills one that
 * cannot be stopped.
 */
export async function end(
  call: Call,
  key: MachineKey,
  lease: Lease,
  live: Machine,
  { config, force }: { readonly config: Config | undefined; readonly force: boolean },
): Promise<void> {
  const execution = new Execution(call, key, lease, observed(live));
  const planWith = (mustKill: boolean) => (seen: Observed) => planEnd(config, mustKill, seen);
  try {
    await execution.follow(planWith(false));
  } catch (error) {
    const { step } = execution;
    const isStopping = step?.kind === "stop" || (step?.kind === "wait" && step.until !== "destroyed");
    if (!force || !isStopping) throw error;
    call.warn(`stopping Machine ${key.machineId} failed; it is killed, as forceDestroy allows`);
    await execution.follow(planWith(true));
  }
}
