// The Machines of a simulated service as its store has them now, without those that are being destroyed.
import type { Simulation } from "../support/simulation.ts";

/** A Machine in the store. */
export interface LiveMachine {
  readonly region: string;
  readonly state: string;
  readonly cordoned: number;
  readonly checks: string;
  /** Tag of the image that it runs. */
  readonly tag: string;
}

/** All Machines that exist. */
export const liveMachines = ({ service }: Simulation): readonly LiveMachine[] =>
  service.service.context.store.all<LiveMachine>(
    "SELECT region, state, cordoned, checks, image_ref ->> '$.tag' AS tag FROM machines WHERE destroyed_at IS NULL AND state != 'destroying'",
  );
