// Platform (docs/interface.md#regions-and-placements).
import type { contract } from "../../api/index.ts";
import { refuse } from "../refusal.ts";
import type { Region } from "../runtime/regions.ts";
import type { World } from "../world.ts";
import { placements } from "./placements.ts";
import { roomIn } from "./room.ts";
import type { Rules } from "./rule.ts";

/** The region asked for, or the nearest. ASSUMED: a region that does not exist or takes nothing more is 422 `region "xyz" not found`. */
export function regionOf(world: World, code: string | undefined): Region {
  const region = world.regions.get(code ?? world.nearest);
  if (!region || region.deprecated) throw refuse(422, `region ${JSON.stringify(code)} not found`);
  return region;
}

/** The rules of the platform operations. */
export const platform: Rules<typeof contract.platform> = {
  regions({ world }) {
    const regions = [...world.regions.values()].map((region) => ({ ...region, capacity: roomIn(world, region) }));
    return { nearest: world.nearest, regions };
  },

  placements,
};
