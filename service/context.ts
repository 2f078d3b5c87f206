// The dependencies of the rules. Rules get the clock, randomness and the store from here, so that a test can replace them.
import type { FastifyBaseLogger } from "fastify";
import type { MovableClock } from "./time/clock.ts";
import type { Delays } from "./time/delays.ts";
import type { StoredConfig } from "./store/storedConfig.ts";
import type { Timers } from "./time/timers.ts";
import type { Waits } from "./time/waits.ts";
import type { History } from "./history/history.ts";
import type { Ids, RandomBytes } from "./ids.ts";
import type { Region } from "./runtime/regions.ts";
import type { CertificateIssuer } from "./runtime/certificateIssuer.ts";
import type { PostgresEngine } from "./runtime/postgresEngine.ts";
import type { Resolver } from "./runtime/resolver.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { Store } from "./store/database.ts";
import type { BoundedCache, RowCache } from "./store/rowCache.ts";
import type { AppRow, MachineRow } from "./store/rows.ts";
import type { FairTurns } from "./time/fairTurns.ts";
import type { Vault } from "./store/vault.ts";
import type { Counted } from "./watch/byApp.ts";
import type { Measured } from "./watch/exposition.ts";

/** What is known of the backups of the service. */
export interface BackupStatus {
  readonly metrics: readonly Measured[];
  /** What is wrong with them; undefined if nothing is, or if none are made on schedule. */
  problem(now: number): { readonly since: number | undefined; readonly reason: string | undefined } | undefined;
}

/** Names that lead to the proxy, in lower case. */
export interface PublicNames {
  /** Where the API and the console answer. */
  readonly hostname?: string;
  /** Each App answers at its name below this domain. */
  readonly appsDomain?: string;
}

/** The service as rules see it. */
export interface Context {
  readonly store: Store;
  readonly clock: MovableClock;
  readonly ids: Ids;
  /** Randomness of keys and nonces. */
  readonly random: RandomBytes;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly waits: Waits;
  /** Turns of the event loop for long work. */
  readonly turns: FairTurns;
  readonly runtime: Runtime;
  /** Identifies the data of this service (store/dataId.ts). */
  readonly dataId: string;
  /** The block of loopback addresses for Apps (runtime/loopback.ts); undefined where their addresses are simulated. */
  readonly loopbackBlock: number | undefined;
  /** The ports of the proxy; undefined without one. 0 before it listens. */
  readonly proxyPorts: { readonly http: number; readonly https: number } | undefined;
  readonly postgres: PostgresEngine;
  /** Issues the certificates of hostnames. */
  readonly issuer: CertificateIssuer;
  /** Reads the DNS; undefined for the simulated one. */
  readonly resolver: Resolver | undefined;
  /** Encrypts the values that the store must not contain in plain text. */
  readonly vault: Vault;
  readonly regions: ReadonlyMap<string, Region>;
  readonly nearest: string;
  /** Answers for Machines as JSON text. An entry is removed when its Machine changes. */
  readonly machineTexts: BoundedCache<string>;
  /** Configurations, by Machine and version. */
  readonly configs: BoundedCache<StoredConfig>;
  /** Apps by name. */
  readonly appRows: RowCache<AppRow>;
  /** Machines by id. */
  readonly machineRows: BoundedCache<MachineRow>;
  /** Host names at which clients reach the API, in lower case, besides those of this computer. */
  readonly ownNames: ReadonlySet<string>;
  /** The names at which other computers reach the service and its Apps. */
  readonly publicNames: PublicNames;
  /** What was counted since the start, for metrics. */
  readonly counted: Counted;
  /** What was asked, what happened, and rollouts. */
  readonly history: History;
  readonly backups: BackupStatus | undefined;
  readonly log: Pick<FastifyBaseLogger, "info" | "warn" | "error">;
  /** Records in the audit that something happened to an App without a request of its organization. */
  note(note: Note): void;
}

/** What happened to an App without a request of its organization. */
export interface Note {
  /** As the name of an operation: `certificates.takenOver`. */
  readonly event: string;
  /** Path of the object. */
  readonly path: string;
  /** Slug of the organization. */
  readonly org: string;
}

/** Invalidates the answer for a Machine whose row stays the same, and wakes requests that wait for it. */
export function touchAnswer(context: Context, id: string): void {
  context.machineTexts.forget(id);
  context.store.touch(id);
}

/** Invalidates the caches for a Machine, volume or App that changes, and wakes requests that wait for it. */
export function touch(context: Context, id: string): void {
  touchAnswer(context, id);
  context.appRows.forget(id);
  context.machineRows.forget(id);
}
