// Changes a Machine's state, waits for it, and decides when a wait has failed.
import { parseDuration } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import type { Lease } from "../client/lease.ts";
import { latestExit, notReached } from "../client/events.ts";
import { versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { getFresh, waitForChecks, waitForMachine } from "../client/wait.ts";
import type { MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import { keepsRunning } from "./keepsRunning.ts";
import type { Config } from "./settings.ts";

/** Power states that a program can request. */
export type Power = "started" | "stopped" | "suspended";

/** The inputs that a wait depends on. */
export interface WaitTarget {
  readonly config: Config;
  readonly waitForChecks?: boolean | undefined;
  readonly minHealthySeconds?: number | undefined;
  /** The wanted power state, if the program sets one. */
  readonly state?: Power | undefined;
  /** Time for the Machine to run, and then for its checks to pass; until the operation's deadline when left out. */
  readonly startDeadline?: string | undefined;
  readonly passDeadline?: string | undefined;
}

/** The same service for a part of an operation, which may take `allowed` at most. `option` allows more. */
function atMost(api: Api, allowed: string | undefined, option: string): Api {
  if (allowed === undefined) return api;
  const at = api.clock.now() + (parseDuration(allowed) ?? 0) / 1e6;
  return at >= api.deadline.at
    ? api
    : api.within({ ...api.deadline, at, allowed, advice: `${option} allows more time.` });
}

/**
 * A Machine that ends by itself: success is exit code 0, not that it keeps running. Without restarts, it is one unless the program
 * sets the state that it is kept in.
 */
export const isJob = ({ schedule, autoDestroy, restart }: Config, state?: Power): boolean =>
  schedule !== undefined ||
  autoDestroy === true ||
  (restart?.policy === "no" && state !== "started" && state !== "suspended");

const hasChecks = ({ checks, services }: Config): boolean =>
  Object.keys(checks ?? {}).length > 0 || (services ?? []).some((service) => (service.checks ?? []).length > 0);

/** The start that a wait is about. */
interface Start {
  readonly target: Power;
  readonly version: string | undefined;
  /** The newest event before the start; what happened before is not held against the Machine. */
  readonly lastEventId?: string | undefined;
  readonly lease?: Lease;
  readonly fresh?: boolean;
}

/**
 * Waits until the Machine is in its wanted state, checks included, and has kept running for its healthy time. Returns it.
 * @throws MachinesError `machine-failed` at once if it ends in another state, or if its program ends, with the reason
 */
export async function waitForTarget(call: Call, key: MachineKey, wanted: WaitTarget, start: Start): Promise<Machine> {
  const { api: all, progress } = call;
  const { target, version, lastEventId, lease, fresh } = start;
  const { config } = wanted;
  const api = atMost(all, wanted.startDeadline, "startDeadline");
  const wait = (states: readonly ("started" | "stopped" | "suspended" | "failed" | "destroyed" | "settled")[]) =>
    waitForMachine(api, key, states, { version, progress, fresh });
  if (target === "stopped") {
    const reached = await wait(["stopped", "failed", "destroyed"]);
    if (reached !== "stopped") throw await failed(api, key, target);
    return getFresh(api, key, { fresh });
  }
  if (isJob(config, wanted.state)) {
    await wait(["settled", "destroyed"]);
    return ended(api, key, fresh);
  }
  const reached = await wait(["started", "failed", "stopped", "destroyed"]);
  if (reached !== "started") throw await failed(api, key, "started", lastEventId);
  if (target === "suspended") {
    await api.machines.suspend({ ...key, leaseNonce: lease?.nonce() });
    const then = await waitForMachine(api, key, ["suspended", "stopped", "failed", "destroyed"], { version, progress });
    if (then !== "suspended") throw await failed(api, key, target);
    return api.machines.get(key);
  }
  const isChecked = wanted.waitForChecks !== false && hasChecks(config);
  const seconds = wanted.minHealthySeconds ?? (isChecked ? 0 : all.config.minHealthySeconds);
  const checked = isChecked
    ? await waitForChecks(atMost(all, wanted.passDeadline, "passDeadline"), key, progress, lastEventId)
    : undefined;
  if (checked && seconds === 0) return checked;
  return keepsRunning(call, key, { config, version, lastEventId, healthy: seconds * 1000, fresh });
}

async function ended(api: Api, key: MachineKey, fresh: boolean | undefined): Promise<Machine> {
  const live = await getFresh(api, key, { fresh });
  const exit = latestExit(live);
  const well = exit === undefined ? live.state !== "failed" : exit.requested || exit.exitCode === 0;
  if (!well) throw notReached(key, live, "done");
  return live;
}

async function failed(api: Api, key: MachineKey, target: string, lastEventId?: string): Promise<MachinesError> {
  const live = await api.machines.get(key).catch(() => undefined);
  return notReached(key, live, target, lastEventId);
}

/** The current Machine, or the previous one if it cannot be read now. */
export async function currentOr(api: Api, key: MachineKey, before: Machine): Promise<Machine> {
  const grace = api.within({ at: api.clock.now() + 10_000, allowed: "10s" });
  return grace.machines.get(key).catch(() => before);
}

const atRest = ["stopped", "suspended", "failed", "created"];

/** Waits until a Machine that is already being destroyed is gone. */
export async function untilDestroyed({ api, progress }: Call, key: MachineKey): Promise<void> {
  await waitForMachine(api, key, ["destroyed"], { progress });
}

/** Stops traffic, stops with the configured signal and timeout, then destroys; kills only if allowed. */
export async function destroyGracefully(
  call: Call,
  key: MachineKey,
  lease: Lease,
  live: Machine,
  { config, force }: { config: Config | undefined; force: boolean },
): Promise<void> {
  const { api, progress, warn } = call;
  if (live.state === "destroyed") return;
  if (live.state === "destroying") return untilDestroyed(call, key);
  if ((live.config?.services ?? config?.services ?? []).length > 0 && live.cordoned !== true) {
    await api.machines.cordon({ ...key, leaseNonce: lease.nonce() });
  }
  let kill = false;
  if (!atRest.includes(live.state)) {
    try {
      // A stop is refused during a transition between states.
      const passing = !["started", "starting"].includes(live.state);
      if (passing) await waitForMachine(api, key, ["settled", "destroyed"], { progress });
      const now = passing ? await api.machines.get(key) : live;
      const { signal, timeout } = now.config?.stopConfig ?? config?.stopConfig ?? {};
      if (!atRest.includes(now.state)) {
        await api.machines.stop({ ...key, leaseNonce: lease.nonce(), body: { signal, timeout } });
        const version = versionOf(now);
        await waitForMachine(api, key, ["stopped", "failed", "destroyed"], { version, progress });
      }
    } catch (error) {
      if (!force) throw error;
      warn(`stopping Machine ${key.machineId} failed; it is killed, as forceDestroy allows`);
      kill = true;
    }
  }
  await api.machines.destroy({ ...key, leaseNonce: lease.nonce(), force: kill || undefined });
  await untilDestroyed(call, key);
}
