// Updates a Machine under its lease: checks that no other client has changed it, plans the update, applies the plan and
// waits.
import { retryUnlessApplied } from "../core/retryUnlessApplied.ts";
import type { Lease } from "../client/lease.ts";
import { versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { getFresh, waitForMachine } from "../client/wait.ts";
import { ApiError, MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import type { Call } from "../core/resource.ts";
import { keepMemory } from "./memory.ts";
import { planUpdate, type KnownMachine, type Plan, type WantedMachine } from "./plan.ts";
import { restartOrReload, type Done } from "./restart.ts";
import { currentOr } from "./power.ts";
import { RolledBackError, waitOrRollback, type Attempt } from "./rollback.ts";
import { differingFields, fromService, movedKeys, sameVersion } from "./settings.ts";

type UpdateInputs = Attempt["wanted"] & WantedMachine & { readonly memoryLimitMb?: number | undefined };

/**
 * Updates the live Machine to the wanted state and returns it.
 * @throws PartialStateError if something was changed and a later step failed.
 */
export async function applyChanges(
  call: Call,
  key: MachineKey,
  lease: Lease,
  wanted: UpdateInputs,
  old: Old,
  toLive: (live: Machine) => Record<string, unknown>,
): Promise<Machine> {
  const { api } = call;
  // A Machine with a lease exists, visible or not.
  const before = await getFresh(api, key, { fresh: true });
  // With a lease that was lost and acquired again, part of the change may be in place already.
  const done: Done = { changed: lease.isAgain, triggered: false };
  if (before.state === "destroyed")
    throw new MachinesError(
      "api",
      `Machine ${key.appName}/${key.machineId} was destroyed outside of this program; run pulumi refresh, then up creates a new one`,
    );
  try {
    refuseLostUpdate(key, before, wanted, old);
    const plan = planUpdate(before, old, wanted);
    const live = await applyPlan({ call, key, lease, wanted, old, before }, plan, done);
    return await keepMemory(api, key, live, wanted.memoryLimitMb);
  } catch (error) {
    if (!done.changed || error instanceof RolledBackError) throw error;
    const now = await currentOr(api, key, before);
    throw new PartialStateError({ ...toLive(now), ...notMade(old, before, now, done) }, error);
  }
}

/**
 * Values that no read shows and that were not changed yet keep their old state, so that the next update changes them.
 */
function notMade(old: Old, before: Machine, now: Machine, { triggered }: Done): Record<string, unknown> {
  if (versionOf(now) !== versionOf(before)) return {};
  const triggers = triggered ? {} : { restart: old.restart ?? null, reload: old.reload ?? null };
  return { minSecretsVersion: old.minSecretsVersion ?? null, ...triggers };
}

type Old = KnownMachine & {
  readonly memoryLimitMb?: number | undefined;
  readonly version?: string | undefined;
};

type Update = Attempt & { readonly wanted: UpdateInputs; readonly old: Old };

/** Applies a plan, and waits for its result. */
async function applyPlan(update: Update, plan: Plan, done: Done): Promise<Machine> {
  const { call, key, lease, before } = update;
  const { machines } = call.api;
  const live = plan.version ? await postVersion(update, plan.version, done) : before;
  if (plan.metadata) {
    done.changed = true;
    await machines.patchMetadata({ ...key, body: { metadata: plan.metadata, machineVersion: versionOf(before) } });
  }
  if (live.cordoned !== undefined && live.cordoned !== plan.cordoned) {
    done.changed = true;
    await machines[plan.cordoned ? "cordon" : "uncordon"]({ ...key, leaseNonce: lease.nonce() });
  }
  if (plan.power) await switchPower(update, plan.power, done);
  if (plan.actions.length > 0) await restartOrReload(update, plan.actions, done);
  return plan.waits ? waitOrRollback(update, live, plan) : machines.get(key);
}

async function postVersion(
  { call, key, lease, wanted, before }: Update,
  body: NonNullable<Plan["version"]>,
  done: Done,
): Promise<Machine> {
  const { machines } = call.api;
  try {
    const live = await retryUnlessApplied(call.api, {
      // A second request is refused if the first one was applied, because the body names the version that it replaces.
      send: () => machines.update({ ...key, leaseNonce: lease.nonce(), body }),
      look: async () => {
        done.changed = true;
        const now = await machines.get(key);
        const isMade = now.config && sameVersion(fromService(now.config, wanted.config), wanted.config);
        return isMade && versionOf(now) !== versionOf(before) ? now : undefined;
      },
    });
    done.changed = true;
    return live;
  } catch (error) {
    throw explainConflict(key, error);
  }
}

async function switchPower(
  { call, key, lease, before }: Update,
  power: NonNullable<Plan["power"]>,
  done: Done,
): Promise<void> {
  const { api, progress } = call;
  done.changed = true;
  if (power === "stop") {
    await api.machines.stop({ ...key, leaseNonce: lease.nonce(), body: {} });
  } else if (before.state !== "started") {
    const resting = ["stopped", "suspended", "failed"].includes(before.state)
      ? before.state
      : await waitForMachine(api, key, ["started", "stopped", "suspended", "failed"], { progress });
    if (resting !== "started") await api.machines.start({ ...key, leaseNonce: lease.nonce() });
  }
}

/**
 * Another client changed fields that we manage since the state was written. Continuing would undo that change unseen (R6,
 * F12).
 */
function refuseLostUpdate(key: MachineKey, live: Machine, wanted: UpdateInputs, old: Old): void {
  const version = versionOf(live);
  if (old.version === undefined || !live.config) return;
  const current = fromService(live.config, old.config);
  // Another client's change may be the requested one, for instance after a lost answer.
  const fields =
    version === old.version || sameVersion(current, wanted.config) ? [] : differingFields(current, old.config);
  // Metadata creates no new version.
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
    `Machine ${key.appName}/${key.machineId} was changed by another client during the update: ${error.message} Nothing was changed. Run up again.`,
    { cause: error },
  );
}
