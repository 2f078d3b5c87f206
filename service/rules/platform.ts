// Platform (docs/interface.md#regions-and-placements).
import type { contract } from "../../api/index.ts";
import { refuse } from "../refusal.ts";
import type { Region } from "../runtime/regions.ts";
import type { Context } from "../context.ts";
import { placements } from "./placements.ts";
import { capacityIn } from "./capacity.ts";
import type { Rules } from "./rule.ts";

/** The requested region, or the nearest. ASSUMED: an unknown or deprecated region is 422 `region "xyz" not found`. */
export function regionOf(context: Context, code: string | undefined): Region {
  const region = context.regions.get(code ?? context.nearest);
  if (!region || region.deprecated) throw refuse(422, `region ${JSON.stringify(code)} not found`);
  return region;
}

/** The rules of the platform operations. */
export const platform: Rules<typeof contract.platform> = {
  regions({ context }) {
    const regions = [...context.regions.values()].map((region) => ({
      ...region,
      capacity: capacityIn(context, region),
    }));
    return { nearest: context.nearest, regions };
  },

  placements,
};
