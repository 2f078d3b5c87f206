// Everything the rules work with, handed in: nothing in the service reads a clock, draws a random number or opens a file by itself.
import type { FastifyBaseLogger } from "fastify";
import type { Clock } from "./lifecycle/clock.ts";
import type { Delays } from "./lifecycle/delays.ts";
import type { Timers } from "./lifecycle/timers.ts";
import type { Waits } from "./lifecycle/waits.ts";
import type { Ids } from "./ids.ts";
import type { Region } from "./runtime/regions.ts";
import type { Runtime } from "./runtime/simulated.ts";
import type { Store } from "./store/database.ts";

/** What a rule sees of the service. */
export interface World {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly waits: Waits;
  readonly runtime: Runtime;
  readonly regions: ReadonlyMap<string, Region>;
  readonly nearest: string;
  /** Answers for Machines as JSON text, until something about the Machine changes. */
  readonly machineTexts: Map<string, string>;
  readonly log: Pick<FastifyBaseLogger, "info" | "warn" | "error">;
}

/** Says that something about this Machine, volume or App changes: answers kept for it are void, and waiters look again. */
export function touch(world: World, id: string): void {
  world.machineTexts.delete(id);
  world.store.touch(id);
}
