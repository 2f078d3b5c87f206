// One update of a Machine under its lease: a new version only when the versioned part changed, metadata, cordon and power
// on their own, and never over the head of somebody who changed the Machine since we last looked.
import { retryUnlessApplied } from "../core/retryUnlessApplied.ts";
import type { Lease } from "../client/lease.ts";
import { latestExit, getFresh, versionOf, waitForMachine, type Machine, type MachineKey } from "../client/wait.ts";
import { ApiError, MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import type { Call } from "../core/resource.ts";
import { keepMemory } from "./memory.ts";
import { nudge, nudgesFor, type Nudges, type Callbacks } from "./restart.ts";
import { waitForTarget, currentOr, type Power } from "./power.ts";
import { RolledBackError, waitOrRollback, type Attempt } from "./rollback.ts";
import {
  differingFields,
  fromService,
  movedKeys,
  othersMetadata,
  sameMetadata,
  sameVersion,
  toService,
  type Config,
} from "./settings.ts";

type Wanted = Attempt["wanted"] &
  Nudges & {
    readonly state?: Power | undefined;
    readonly cordoned: boolean;
    readonly minSecretsVersion?: number | undefined;
    readonly memoryLimitMb?: number | undefined;
  };

/** Makes the live Machine what is wanted and answers it. @throws PartialStateError when something was changed and what came after failed. */
export async function applyChanges(
  call: Call,
  key: MachineKey,
  lease: Lease,
  wanted: Wanted,
  old: Old,
  toLive: (live: Machine) => Record<string, unknown>,
): Promise<Machine> {
  const { api } = call;
  // What has a lease is there, shown or not.
  const before = await getFresh(api, key, { fresh: true });
  // With a lease that was lost and taken again, part of the change may be in place already.
  let [changed, nudged] = [lease.isAgain, false];
  if (before.state === "destroyed")
    throw new MachinesError(
      "api",
      `Machine ${key.appName}/${key.machineId} was destroyed outside of this program; run pulumi refresh, then up creates a new one`,
    );
  const told = { changing: () => (changed = true), nudged: () => (nudged = true) };
  try {
    refuseLostUpdate(key, before, wanted, old);
    const live = await steps({ call, key, lease, wanted, old, before, ...told });
    return await keepMemory(api, key, live, wanted.memoryLimitMb);
  } catch (error) {
    if (!changed || error instanceof RolledBackError) throw error;
    const now = await currentOr(api, key, before);
    throw new PartialStateError({ ...toLive(now), ...notMade(old, before, now, nudged) }, error);
  }
}

/** What no read finds and was not changed yet: the state goes on saying what was, so that the next update makes the change. */
function notMade(old: Old, before: Machine, now: Machine, nudged: boolean): Record<string, unknown> {
  if (versionOf(now) !== versionOf(before)) return {};
  const nudges = nudged ? {} : { restart: old.restart ?? null, reload: old.reload ?? null };
  return { minSecretsVersion: old.minSecretsVersion ?? null, ...nudges };
}

interface Old extends Nudges {
  readonly memoryLimitMb?: number | undefined;
  readonly config: Config;
  readonly minSecretsVersion?: number | undefined;
  readonly version?: string | undefined;
  /** Waits that failed last time are still to be done. */
  readonly unfinished: boolean;
}

interface Step extends Attempt, Callbacks {
  readonly wanted: Wanted;
  readonly old: Old;
}

async function steps(step: Step): Promise<Machine> {
  const { call, key, lease, wanted, old, before, changing } = step;
  const current = before.config ? fromService(before.config, old.config) : old.config;
  // The service gives a Machine the App's secrets with every version, and only then.
  const secretsMoved = wanted.minSecretsVersion !== undefined && wanted.minSecretsVersion !== old.minSecretsVersion;
  const versioned = secretsMoved || !sameVersion(current, wanted.config);
  const target = powerFor(wanted, before, versioned);
  const live = versioned ? await newVersion(step, target) : before;
  if (!versioned && !sameMetadata(current, wanted.config)) await patchMetadata(step);
  if (live.cordoned !== undefined && live.cordoned !== wanted.cordoned) {
    changing();
    await call.api.machines[wanted.cordoned ? "cordon" : "uncordon"]({ ...key, leaseNonce: lease.nonce() });
  }
  if (versioned) return waitOrRollback(step, live, target);
  if (target !== before.state) return switchPower(step, target);
  const asked = target === "started" ? nudgesFor(old, wanted) : [];
  if (asked.length > 0) return nudge(call, key, { lease, live, wanted, asked }, step);
  // A Machine whose checks failed last time is already what we want in all else: the wait is what is left to do.
  return old.unfinished && target === "started"
    ? waitForTarget(call, key, wanted, { target, version: undefined, lease })
    : call.api.machines.get(key);
}

async function newVersion({ call, key, lease, wanted, old, before, changing }: Step, target: Power): Promise<Machine> {
  const body = {
    config: toService(wanted.config, othersMetadata(before.config, old.config)),
    currentVersion: versionOf(before),
    skipLaunch: target === "stopped" || undefined,
    skipServiceRegistration: wanted.cordoned || undefined,
    minSecretsVersion: wanted.minSecretsVersion,
  };
  const { api } = call;
  try {
    const live = await retryUnlessApplied(api, {
      // A second one is refused once the first was applied: the version that it was made for is in it.
      send: () => api.machines.update({ ...key, leaseNonce: lease.nonce(), body }),
      look: async () => {
        changing();
        const now = await api.machines.get(key);
        const isMade = now.config && sameVersion(fromService(now.config, wanted.config), wanted.config);
        return isMade && versionOf(now) !== versionOf(before) ? now : undefined;
      },
    });
    changing();
    return live;
  } catch (error) {
    throw explainConflict(key, error);
  }
}

async function patchMetadata({ call, key, wanted, old, before, changing }: Step): Promise<void> {
  const removed = Object.keys(old.config.metadata ?? {}).filter(
    (name) => !Object.hasOwn(wanted.config.metadata ?? {}, name),
  );
  const metadata = { ...Object.fromEntries(removed.map((name) => [name, null])), ...wanted.config.metadata };
  changing();
  await call.api.machines.patchMetadata({ ...key, body: { metadata, machineVersion: versionOf(before) } });
}

async function switchPower({ call, key, lease, wanted, before, changing }: Step, target: Power): Promise<Machine> {
  const { api, progress } = call;
  changing();
  if (target === "stopped") {
    await api.machines.stop({ ...key, leaseNonce: lease.nonce(), body: {} });
  } else if (before.state !== "started") {
    const resting = ["stopped", "suspended", "failed"].includes(before.state)
      ? before.state
      : await waitForMachine(api, key, ["started", "stopped", "suspended", "failed"], { progress });
    if (resting !== "started") await api.machines.start({ ...key, leaseNonce: lease.nonce() });
  }
  return waitForTarget(call, key, wanted, { target, version: versionOf(before), lease });
}

/** R10: with `state` left out the power stays as it is; a Machine that failed or crashed was not stopped by anybody. */
function powerFor(wanted: Wanted, live: Machine, versioned: boolean): Power {
  if (wanted.state !== undefined) return wanted.state;
  const exit = latestExit(live);
  const crashed = exit !== undefined && !exit.requested && exit.exitCode !== 0;
  if (live.state === "stopped" && !crashed) return "stopped";
  // A new version cannot be made without ending the suspension: it comes to rest instead of starting unasked.
  if (live.state === "suspended") return versioned ? "stopped" : "suspended";
  return "started";
}

/** Somebody changed what we manage since the state was written: going on would undo it unseen (R6, F12). */
function refuseLostUpdate(key: MachineKey, live: Machine, wanted: Wanted, old: Old): void {
  const version = versionOf(live);
  if (old.version === undefined || !live.config) return;
  const current = fromService(live.config, old.config);
  // What others did may be what we want as well, for instance after an answer of ours was lost.
  const fields =
    version === old.version || sameVersion(current, wanted.config) ? [] : differingFields(current, old.config);
  // Metadata makes no new version.
  const keys = movedKeys(old.config.metadata, live.config.metadata, wanted.config.metadata);
  const moved = [...fields, ...keys.map((name) => `metadata[${JSON.stringify(name)}]`)];
  if (moved.length === 0) return;
  throw new MachinesError(
    "stale-version",
    `Machine ${key.appName}/${key.machineId} was changed outside of this program (${moved.map((name) => `config.${name}`).join(", ")}${version === old.version ? "" : `; version ${version ?? "?"} instead of ${old.version}`}). ` +
      "Nothing was changed. Run pulumi refresh to see the changes, then up decides.",
  );
}

function explainConflict(key: MachineKey, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 409 || !/version mismatch|concurrent update/.test(error.reason))
    return error;
  return new MachinesError(
    "stale-version",
    `Machine ${key.appName}/${key.machineId} was changed by somebody else in the very moment of the update: ${error.message} Nothing was changed. Run up again.`,
    { cause: error },
  );
}
