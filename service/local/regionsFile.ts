// Reads the file of `--regions`: the regions and their capacities.
import { z } from "zod";
import { regionCode } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import { capacityOf, nearest, regions, type Capacity, type Region } from "../runtime/regions.ts";
import { readJson } from "./files.ts";
import { Problem } from "./problem.ts";

const count = z.int().min(0);
const room = z.union([
  count,
  z.strictObject({ total: count.optional(), shared: count.optional(), performance: count.optional() }),
]);
const capacity = z.custom<number | Partial<Capacity>>(
  (value) => room.safeParse(value).success,
  "must be a number of Machines, or an object with one for total, shared or performance",
);

const entry = z.object({
  code: required(regionCode, "Code of the region."),
  capacity: optional(capacity, "Number of Machines: of all kinds together, or of each."),
  name: optional(z.string().min(1), "Name of the region."),
  geo_region: optional(z.string().min(1), "Part of the world."),
  latitude: optional(z.number().min(-90).max(90), "Latitude in degrees."),
  longitude: optional(z.number().min(-180).max(180), "Longitude in degrees."),
  gateway_available: optional(z.boolean(), "Whether the region has a gateway."),
  requires_paid_plan: optional(z.boolean(), "Whether the region needs a paid plan."),
  deprecated: optional(z.boolean(), "Whether the region takes no new resources."),
  mpg_available: optional(z.boolean(), "Whether managed Postgres is offered."),
});

const regionsFile = z.object({
  nearest: optional(regionCode, "Region nearest to every caller."),
  regions: required(
    z.array(entry).refine((list) => list.length > 0, "must hold at least one region"),
    "The regions.",
  ),
});

const needed = ["name", "geo_region", "latitude", "longitude"] as const;

/** Reads the file of `--regions`. Fields that a region leaves out come from the built-in table, if it has the region. */
export function readRegions(file: string): { readonly regions: readonly Region[]; readonly nearest: string } {
  const read = readJson("--regions", file, regionsFile);
  const wrong = (text: string): Problem => new Problem(`--regions: ${file}: ${text}`);
  const merged = read.regions.map(({ capacity: said, ...region }, i): Region => {
    const usual = regions.find(({ code }) => code === region.code);
    const missing = usual ? undefined : needed.find((name) => region[name] === undefined);
    if (missing !== undefined)
      throw wrong(
        `invalid regions[${i}].${missing}, got nothing, must be given: ${region.code} is not in the built-in table`,
      );
    if (read.regions.findIndex(({ code }) => code === region.code) < i)
      throw wrong(`invalid regions[${i}].code, got ${JSON.stringify(region.code)}, must not occur twice`);
    const booleans = { gateway_available: true, requires_paid_plan: false, deprecated: false, mpg_available: true };
    return { ...booleans, ...usual, ...region, capacity: capacityOf(said) } as Region;
  });
  const open = merged.filter(({ deprecated }) => !deprecated).map(({ code }) => code);
  const chosen = read.nearest ?? (open.includes(nearest) ? nearest : open[0]);
  if (chosen === undefined || !open.includes(chosen))
    throw wrong(`invalid nearest, got ${JSON.stringify(read.nearest)}, allowed are ${open.join(", ")}`);
  return { regions: merged, nearest: chosen };
}
