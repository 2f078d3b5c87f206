// `pulumi-machines/client`: the typed client for scripts. The resources use the same one, with the same retries and errors.
import "./requireNode.ts";
import type { Lease } from "./lease.ts";
import { withLease as leased } from "./lease.ts";
import { reached, type Reached, type WaitState } from "./wait.ts";
import { bareId } from "../../api/names.ts";
import { apiOf, type Client, type Limits } from "./publicClient.ts";

export { createClient, type Client, type ClientOptions, type Limits } from "./publicClient.ts";
export { changesSince, type Changes, type ChangesOptions, type Position } from "./changes.ts";
export { eachApp, eachCertificate, eachOrgMachine, eachOrgVolume } from "./each.ts";
export { pages } from "./pages.ts";
export { ApiError, isNotFound, MachinesError, NetworkError, type ErrorCode } from "./errors.ts";
export type { AnswerOf } from "./api.ts";
export type { Lease } from "./lease.ts";
export type { Machine } from "./machine.ts";
export type { Reached, WaitState } from "./wait.ts";
export type { Volume } from "./listCache.ts";

/** One Machine: `machine` also accepts the `id` of a resource (`app/machine`). */
export interface MachineRef {
  readonly app: string;
  readonly machine: string;
}

/** Options of a lease. */
export interface LeaseOptions extends Limits {
  /** The reason, shown to others. */
  readonly description: string;
  /** Seconds that it lasts after the script has died; it is renewed while the script works. Default: 13. */
  readonly ttlSeconds?: number | undefined;
  /** Receives the holder that the script waits for. */
  readonly onProgress?: ((message: string) => void) | undefined;
}

/** Options of a wait. */
export interface WaitOptions extends Limits {
  /** Version of the configuration that must reach the state. */
  readonly version?: string | undefined;
  /** Receives the Machine's state, every ten seconds. */
  readonly onProgress?: ((message: string) => void) | undefined;
}

const keyOf = ({ app, machine }: MachineRef) => ({ appName: bareId(app), machineId: bareId(machine) });
const ignore = (): void => undefined;

/**
 * Holds a Machine's lease while `work` runs, and releases it afterwards. Send `leaseNonce: lease.nonce()` with every change
 * of the Machine. It waits for another client's lease and never steals it: 300 s by default.
 * @throws MachinesError `lease-held` if the lease is not released in time, or ours was lost while `work` ran
 */
export function withLease<T>(
  client: Client,
  machine: MachineRef,
  { description, ttlSeconds, onProgress = ignore, ...limits }: LeaseOptions,
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  const ttl = ttlSeconds === undefined ? {} : { ttl: ttlSeconds };
  const api = apiOf(client, { timeoutSeconds: 300, ...limits });
  return leased(api, keyOf(machine), { description, progress: onProgress, rounds: 1, ...ttl }, work);
}

/**
 * Waits until a Machine is in one of the states, by default `started`, for 300 s by default.
 * @throws MachinesError `wait-timeout` with the Machine's last event, `stale-version` when another version replaced it
 */
export function waitUntil(
  client: Client,
  machine: MachineRef,
  states: WaitState | readonly WaitState[] = "started",
  { version, onProgress = ignore, ...limits }: WaitOptions = {},
): Promise<Reached> {
  const wanted = typeof states === "string" ? [states] : states;
  const api = apiOf(client, { timeoutSeconds: 300, ...limits });
  return reached(api, keyOf(machine), wanted, { version, progress: onProgress });
}
