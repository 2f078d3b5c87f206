// Fleets as policies see them: as the Machines that they consist of.
import { regionsOf } from "../../provider/fleets/placement.ts";
import type { FleetInputs, MachineInputs } from "../resources.ts";

type Placed = Pick<FleetInputs, "regions" | "count" | "spreadOver">;

/** The regions of a fleet that have Machines, each with their number. */
export const regionsIn = (fleet: Placed): readonly (readonly [region: string, count: number])[] =>
  Object.entries(regionsOf(fleet)).filter(([, count]) => count > 0);

/** A Machine of a fleet. What is unknown in the fleet is unknown in it, once it is read. */
export const machineOf = (fleet: FleetInputs, region?: string): MachineInputs => ({
  get app() {
    return fleet.app;
  },
  get config() {
    return fleet.config;
  },
  get minSecretsVersion() {
    return fleet.minSecretsVersion;
  },
  ...(region === undefined ? {} : { region, placedRegion: region }),
});
