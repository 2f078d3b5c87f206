// Everything the rules work with, handed in: nothing in the service reads a clock, draws a random number or opens a file by itself.
import type { FastifyBaseLogger } from "fastify";
import type { MovableClock } from "./time/clock.ts";
import type { Delays } from "./time/delays.ts";
import type { StoredConfig } from "./store/storedConfig.ts";
import type { Timers } from "./time/timers.ts";
import type { Waits } from "./time/waits.ts";
import type { Ids, RandomBytes } from "./ids.ts";
import type { Region } from "./runtime/regions.ts";
import type { PostgresEngine } from "./runtime/postgresEngine.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { Store } from "./store/database.ts";
import type { BoundedCache, RowCache } from "./store/rowCache.ts";
import type { AppRow, MachineRow } from "./store/rows.ts";
import type { FairTurns } from "./time/fairTurns.ts";
import type { Vault } from "./store/vault.ts";

/** What a rule sees of the service. */
export interface Context {
  readonly store: Store;
  readonly clock: MovableClock;
  readonly ids: Ids;
  /** Randomness of keys and nonces. */
  readonly random: RandomBytes;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly waits: Waits;
  /** Turns for what is long. */
  readonly turns: FairTurns;
  readonly runtime: Runtime;
  readonly postgres: PostgresEngine;
  /** Seals what must not lie in the store in clear text. */
  readonly vault: Vault;
  readonly regions: ReadonlyMap<string, Region>;
  readonly nearest: string;
  /** Answers for Machines as JSON text, until something about the Machine changes. */
  readonly machineTexts: BoundedCache<string>;
  /** Configurations, by Machine and version. */
  readonly configs: BoundedCache<StoredConfig>;
  /** Apps by name. */
  readonly appRows: RowCache<AppRow>;
  /** Machines by id. */
  readonly machineRows: BoundedCache<MachineRow>;
  readonly log: Pick<FastifyBaseLogger, "info" | "warn" | "error">;
}

/** Says that something about this Machine changes that its row does not hold. */
export function touchAnswer(context: Context, id: string): void {
  context.machineTexts.forget(id);
  context.store.touch(id);
}

/** Says that something about this Machine, volume or App changes: answers kept for it are void, and waiters look again. */
export function touch(context: Context, id: string): void {
  touchAnswer(context, id);
  context.appRows.forget(id);
  context.machineRows.forget(id);
}
