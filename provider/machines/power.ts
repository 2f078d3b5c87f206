// Changes a Machine's state, waits for it, and decides when a wait has failed.
import { parseDuration } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import type { Lease } from "../client/lease.ts";
import {
  lastEvent,
  latestExit,
  getFresh,
  notReached,
  waitForChecks,
  versionOf,
  waitForMachine,
  type Machine,
  type MachineKey,
} from "../client/wait.ts";
import type { MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import type { Config } from "./settings.ts";

/** Power states that a program can request. */
export type Power = "started" | "stopped" | "suspended";

/** The inputs that a wait depends on. */
export interface WaitTarget {
  readonly config: Config;
  readonly waitForChecks?: boolean | undefined;
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

/** A Machine that exits by itself: success is exit code 0, not continuing to run. */
export const isJob = ({ schedule, autoDestroy, restart }: Config): boolean =>
  schedule !== undefined || autoDestroy === true || restart?.policy === "no";

const hasChecks = ({ checks, services }: Config): boolean =>
  Object.keys(checks ?? {}).length > 0 || (services ?? []).some((service) => (service.checks ?? []).length > 0);

/**
 * Waits until the Machine is in its wanted state, checks included, and returns it.
 * @throws MachinesError `machine-failed` at once if it ends in another state, with the last event as the reason.
 */
export async function waitForTarget(
  { api: all, progress }: Call,
  key: MachineKey,
  wanted: WaitTarget,
  { target, version, lease, fresh }: { target: Power; version: string | undefined; lease?: Lease; fresh?: boolean },
): Promise<Machine> {
  const api = atMost(all, wanted.startDeadline, "startDeadline");
  const wait = (states: readonly ("started" | "stopped" | "suspended" | "failed" | "destroyed" | "settled")[]) =>
    waitForMachine(api, key, states, { version, progress, fresh });
  if (target === "stopped") {
    const reached = await wait(["stopped", "failed", "destroyed"]);
    if (reached !== "stopped") throw await failed(api, key, reached, target);
    return getFresh(api, key, { fresh });
  }
  if (isJob(wanted.config)) return ended(api, key, await wait(["settled", "destroyed"]), fresh);
  const reached = await wait(["started", "failed", "stopped", "destroyed"]);
  if (reached !== "started") throw await failed(api, key, reached, "started");
  const live = await getFresh(api, key, { fresh });
  const exit = latestExit(live);
  if (live.state !== "started" || (exit && !exit.requested)) throw await failed(api, key, live.state, "started");
  if (target === "suspended") {
    await api.machines.suspend({ ...key, leaseNonce: lease?.nonce() });
    const then = await waitForMachine(api, key, ["suspended", "stopped", "failed", "destroyed"], { version, progress });
    if (then !== "suspended") throw await failed(api, key, then, target);
    return api.machines.get(key);
  }
  if (wanted.waitForChecks === false || !hasChecks(wanted.config)) return live;
  return waitForChecks(atMost(all, wanted.passDeadline, "passDeadline"), key, progress);
}

async function ended(api: Api, key: MachineKey, reached: string, fresh: boolean | undefined): Promise<Machine> {
  const live = await getFresh(api, key, { fresh });
  const exit = latestExit(live);
  const well = exit === undefined ? live.state !== "failed" : exit.requested || exit.exitCode === 0;
  if (!well) throw await failed(api, key, reached, "done");
  return live;
}

async function failed(api: Api, key: MachineKey, reached: string, target: string): Promise<MachinesError> {
  const live = await api.machines.get(key).catch(() => undefined);
  return notReached(key, live?.state ?? reached, target, live ? lastEvent(live) : "it is gone");
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
