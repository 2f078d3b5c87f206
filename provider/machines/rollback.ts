// Rolls back to the previous configuration when a new version of a Machine fails, for `onUpdateFailure: "rollback"`.
import { formatDuration } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { retryUnlessApplied } from "../core/retryUnlessApplied.ts";
import { isLost, withLease, type Lease } from "../client/lease.ts";
import { versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import { MachinesError, messageOf } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import { keepMemory } from "./memory.ts";
import type { Plan } from "./plan.ts";
import { waitForTarget, type WaitTarget } from "./power.ts";
import { fromService, othersMetadata, sameVersion, toService, type Config } from "./settings.ts";

/** A new version failed and the previous configuration runs again; only the version number differs. */
export class RolledBackError extends MachinesError {
  constructor(message: string, cause: unknown) {
    super("machine-failed", message, { cause });
    this.name = "RolledBackError";
  }
}

/** One update that created a new version. */
export interface Attempt {
  readonly call: Call;
  readonly key: MachineKey;
  readonly lease: Lease;
  readonly wanted: WaitTarget & { readonly onUpdateFailure?: "keep" | "rollback" | undefined };
  readonly old: {
    readonly config: Config;
    readonly unfinished: boolean;
    readonly memoryLimitMb?: number | undefined;
  };
  /** The Machine when the lease was acquired. */
  readonly before: Machine;
}

/**
 * Waits until the Machine is in the target state. If a new version fails and the program requests it, the previous version is
 * restored.
 * @throws RolledBackError when the version before runs again
 */
export async function waitOrRollback(
  attempt: Attempt,
  made: Machine,
  { target, version }: Pick<Plan, "target" | "version">,
): Promise<Machine> {
  const { call, key, lease, wanted, before } = attempt;
  const lastEventId = before.events?.[0]?.id;
  const start = { target, version: versionOf(made), lastEventId, lease };
  const wait = (api: Api) => waitForTarget({ ...call, api }, key, wanted, start);
  if (version === undefined || !mayGoBack(attempt)) return wait(call.api);
  try {
    return await wait(mostOf(call.api));
  } catch (error) {
    // A cancellation or a failed read says nothing about the version.
    const failed = error instanceof MachinesError && ["machine-failed", "wait-timeout"].includes(error.code);
    if (!failed || call.api.deadline.signal?.aborted) throw error;
    return goBack(attempt, made, error);
  }
}

/** A configuration that also failed is not rolled back to. */
const mayGoBack = ({ wanted, old, before }: Attempt): boolean =>
  wanted.onUpdateFailure === "rollback" &&
  !old.unfinished &&
  before.config !== undefined &&
  ["started", "stopped", "suspended"].includes(before.state);

/** Two thirds of the remaining time; the rollback has the rest. */
function mostOf(api: Api): Api {
  const { at, signal } = api.deadline;
  const now = api.clock.now();
  const seconds = Math.round(((at - now) * 2) / 3 / 1000);
  return api.within({ at: now + seconds * 1000, allowed: formatDuration(seconds * 1e9), signal });
}

async function goBack(attempt: Attempt, failed: Machine, why: MachinesError): Promise<never> {
  const { call, key, before } = attempt;
  const name = `Machine ${key.appName}/${key.machineId}`;
  call.progress(`the new version of ${name} failed; rolling back to the previous configuration`);
  let back: Machine;
  try {
    back = await postBefore(attempt, failed).catch((error: unknown) => {
      if (!isLost(error)) throw error;
      // A lost lease does not end the rollback: it continues with another one.
      const options = { description: "rollback by pulumi", progress: call.progress };
      return withLease(call.api, key, options, (lease) => postBefore({ ...attempt, lease }, failed));
    });
  } catch (error) {
    throw new MachinesError(
      why.code,
      `the new version of ${name} failed: ${why.message} The rollback to the previous configuration also failed: ${messageOf(error)}`,
      // Losing the lease at the end is no reason to start over.
      isLost(error) ? {} : { cause: error },
    );
  }
  const does = before.state === "started" ? "runs" : "is in place";
  throw new RolledBackError(
    `the new version of ${name} failed, and the previous configuration ${does} again, as version ${versionOf(back) ?? "?"}: ${why.message}`,
    why,
  );
}

/** Posts the previous configuration, with the metadata that others have written since, and waits for it. */
async function postBefore({ call, key, lease, wanted, old, before }: Attempt, failed: Machine): Promise<Machine> {
  const { machines } = call.api;
  const now = await machines.get(key);
  const config = fromService(before.config ?? old.config, old.config);
  const metadata = {
    ...othersMetadata(before.config, old.config),
    ...othersMetadata(now.config, old.config, wanted.config),
  };
  const target = before.state === "started" ? "started" : "stopped";
  const body = {
    config: toService(config, metadata),
    currentVersion: versionOf(failed),
    skipLaunch: target === "stopped" || undefined,
    skipServiceRegistration: before.cordoned || undefined,
  };
  const back = await retryUnlessApplied(call.api, {
    send: () => machines.update({ ...key, leaseNonce: lease.nonce(), body }),
    look: async () => {
      const live = await machines.get(key);
      const isMade = live.config && sameVersion(fromService(live.config, old.config), config);
      return isMade && versionOf(live) !== versionOf(failed) ? live : undefined;
    },
  });
  if (back.cordoned === true && before.cordoned === false)
    await machines.uncordon({ ...key, leaseNonce: lease.nonce() });
  const { waitForChecks, minHealthySeconds, state } = wanted;
  const start = { target, version: versionOf(back), lastEventId: now.events?.[0]?.id, lease } as const;
  const live = await waitForTarget(call, key, { config, waitForChecks, minHealthySeconds, state }, start);
  return keepMemory(call.api, key, live, old.memoryLimitMb);
}
