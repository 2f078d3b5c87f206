// Leases (docs/interface.md#leases) are short, renewed during the work and always released. Nothing is written after ours may have
// expired.
import { ApiError, isAmbiguous, isNotFound, MachinesError, messageOf } from "./errors.ts";
import type { Api } from "./api.ts";
import { inSpan } from "../../api/tracing.ts";
import { Pending, poll } from "./poll.ts";
import type { MachineKey } from "./machine.ts";

/** Seconds that a lease lasts if it is not renewed. A killed provider delays the next run by this time. */
const defaultTtl = 13;
const askAgainEvery = 1000;

/** Options of a lease. */
export interface LeaseOptions {
  /** The reason, shown to others. */
  readonly description: string;
  readonly progress: (message: string) => void;
  /** Seconds that it lasts if it is not renewed. */
  readonly ttl?: number;
  /** How often the lease is acquired at most, if it is lost during the work. Default: 3. */
  readonly rounds?: number;
}

/** A lease while it is held. */
export interface Lease {
  /** True if the lease was lost during the work and acquired again. Part of our work is done, and others may have written since. */
  readonly isAgain: boolean;
  /** The nonce to send with a guarded request. @throws MachinesError `lease-held` once the lease may have expired. */
  nonce(): string;
  /** Call it if the Machine was deleted: its lease was deleted too, so there is nothing to release. */
  letGo(): void;
}

/** Our lease ended during the work: the request that it should have guarded was not sent, or was refused. */
class LeaseLost extends MachinesError {}

/**
 * Holds the Machine's lease while `work` runs. It waits for another client's lease until the deadline, and never takes
 * it. If the lease is lost, the next guarded request ends `work`. Then `work` runs again under another lease, so it has
 * to begin with a read.
 */
export async function withLease<T>(
  api: Api,
  key: MachineKey,
  options: LeaseOptions,
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  const { ttl = defaultTtl, rounds = 3 } = options;
  for (let [round, loss] = [1, undefined as unknown]; ; round++) {
    const taking = inSpan("acquire lease", {}, () => acquire(api, key, { ...options, ttl }, round > 1));
    const lease = await taking.catch((error: unknown) => {
      throw round === 1 ? error : notAgain(key, loss, error);
    });
    const stopRenewing = api.clock.every((ttl * 1000) / 3, () => void lease.renew());
    try {
      return await work(lease);
    } catch (error) {
      if (!isLost(error) || round === rounds) throw error;
      loss = error;
      options.progress(`the lease of Machine ${key.machineId} was lost while we worked; it is taken again`);
    } finally {
      stopRenewing();
      await inSpan("release lease", {}, () => lease.release());
    }
  }
}

function notAgain(key: MachineKey, loss: unknown, error: unknown): unknown {
  // A deleted Machine has no lease. The caller decides what its absence means.
  if (isNotFound(error)) return error;
  const failed = new MachinesError(
    "lease-held",
    `the lease of Machine ${key.machineId} was lost while we worked (${messageOf(loss)}), and could not be taken again: ${messageOf(error)} What was written before is in place.`,
    { cause: error },
  );
  return loss instanceof MachinesError ? loss.replacedBy(failed) : failed;
}

/** Whether work ended because of its lease: before a request was sent, or because the service refused it. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isRefused =
    error instanceof ApiError &&
    error.status === 409 &&
    error.operation !== "machines.acquireLease" &&
    /\blease\b/.test(error.reason);
  return error instanceof LeaseLost || isRefused || isLost(error.cause);
}

interface HeldLease extends Lease {
  renew(): Promise<void>;
  release(): Promise<void>;
}

async function acquire(
  api: Api,
  key: MachineKey,
  { description, progress, ttl }: LeaseOptions & { readonly ttl: number },
  isAgain: boolean,
): Promise<HeldLease> {
  const since = api.clock.now();
  const tryAcquire = async (): Promise<HeldLease | Pending> => {
    const asked = api.clock.now();
    try {
      const answer = await api.machines.acquireLease({ ...key, body: { ttl, description } });
      const nonce = answer.data?.nonce ?? answer.nonce;
      if (nonce === undefined)
        throw new MachinesError("api", `the lease of Machine ${key.machineId} came without a nonce`);
      return hold(api, key, nonce, { ttl, asked, isAgain });
    } catch (error) {
      // A lost answer may have given us a lease whose nonce we do not know; it expires like any other.
      const isOccupied = (error instanceof ApiError && error.status === 409) || isAmbiguous(error);
      // The lease has expired by then, so the remaining failure is the service's.
      const isFailing = isAmbiguous(error) && api.clock.now() - since > (ttl + 2) * 1000;
      if (!isOccupied || isFailing) throw error;
      const holder =
        error instanceof ApiError && !isAmbiguous(error) ? error.reason : "a request of ours whose answer was lost";
      return new Pending(
        `waiting for the lease of Machine ${key.machineId}: ${holder}. One that a killed run left behind ends by itself within ${defaultTtl} s`,
        () => notFree(api, key, holder, error),
      );
    }
  };
  return poll({ api, progress }, tryAcquire, { first: askAgainEvery, longest: askAgainEvery, sayAfter: 0 });
}

const notFree = (api: Api, key: MachineKey, holder: string, cause: unknown): MachinesError =>
  new MachinesError(
    "lease-held",
    `the lease of Machine ${key.machineId} was not released within ${api.deadline.allowed}: ${holder}. Nothing was changed; try again after it expired. ${api.deadline.advice ?? "customTimeouts allow more time."}`,
    { cause },
  );

function hold(
  api: Api,
  key: MachineKey,
  nonce: string,
  { ttl, asked, isAgain }: { ttl: number; asked: number; isAgain: boolean },
): HeldLease {
  let validUntil = asked + ttl * 1000;
  let lost: string | undefined;
  let gone = false;
  // Releasing and renewing must work even if the operation is cancelled or past its deadline.
  const own = () => api.within({ at: api.clock.now() + 5000, allowed: "5s" });
  return {
    isAgain,
    nonce() {
      if (lost !== undefined || api.clock.now() >= validUntil - 500) {
        throw new LeaseLost(
          "lease-held",
          `our lease of Machine ${key.machineId} was lost while we worked${lost === undefined ? "" : `: ${lost}`}. What was written before is in place${api.deadline.advice === undefined ? "; run up again" : ""}.`,
        );
      }
      return nonce;
    },
    letGo() {
      gone = true;
    },
    async renew() {
      if (gone) return;
      const from = api.clock.now();
      try {
        await own().machines.acquireLease({ ...key, leaseNonce: nonce, body: { ttl } });
        validUntil = from + ttl * 1000;
      } catch (error) {
        // A failed renewal is retried at the next third. Only a refusal means that another client has the lease.
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429)
          lost = messageOf(error);
      }
    },
    async release() {
      if (gone) return;
      try {
        await own().machines.releaseLease({ ...key, leaseNonce: nonce });
      } catch (error) {
        // The lease is deleted with its Machine, or expires within the ttl. Neither must fail the operation.
        if (!isNotFound(error) && !(error instanceof MachinesError)) throw error;
      }
    },
  };
}
