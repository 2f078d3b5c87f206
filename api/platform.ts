// Platform (docs/interface.md#regions-and-placements).
import { z } from "zod";
import { machineConfig } from "./machineConfig.ts";
import { operations } from "./operation.ts";
import { optional, required } from "./schema.ts";

/** A region of the platform. */
export const region = z.object({
  code: required(z.string(), "Code of the region, for example `ams`."),
  name: optional(z.string(), "Name of the region."),
  geo_region: optional(z.string(), "Part of the world."),
  latitude: optional(z.number(), "Latitude in degrees."),
  longitude: optional(z.number(), "Longitude in degrees."),
  deprecated: optional(z.boolean(), "Whether the region takes no new resources."),
  gateway_available: optional(z.boolean(), "Whether the region has a gateway."),
  requires_paid_plan: optional(z.boolean(), "Whether the region needs a paid plan."),
  mpg_available: optional(z.boolean(), "Whether managed Postgres is offered."),
  capacity: optional(z.int(), "Number of Machines that still fit into the region."),
});

/** Body of a request for placements. */
export const getPlacements = z.object({
  org_slug: required(z.string(), "Slug of the organization; `personal` is the caller's own."),
  region: optional(z.string(), 'Regions, parts of the world, `any`, separated by commas, for example `"lhr,eu"`.', {
    wireDefault: "[region],any",
    // ASSUMED: an expression of placements has at most 1,000 characters.
    longest: 1000,
  }),
  count: optional(z.int().min(0), "Number of Machines to place; 0 shows how many fit into each region.", {
    wireDefault: 0,
  }),
  compute: optional(machineConfig.shape.guest.unwrap(), "Size of each Machine; performance-1x when left out."),
  volume_name: optional(z.string(), "Name of volumes that must be mounted."),
  volume_size_bytes: optional(z.int().min(0), "Bytes of a volume to create for each Machine."),
  weights: optional(
    z.record(z.string(), z.int()),
    "Weights of the order of the regions (`region`, 50) and of an even spread (`spread`, 1).",
  ),
});

/** The capacity of a region for Machines. */
export const placement = z.object({
  region: required(z.string(), "Code of the region."),
  count: required(z.int(), "Machines placed in the region."),
  concurrency: required(z.int(), "Machines that may be created there at the same time."),
});

export const platform = operations("platform", {
  regions: {
    method: "GET",
    path: "/v1/platform/regions",
    source: "docs/interface.md#regions",
    summary: "Lists the regions.",
    params: z.object({}),
    status: 200,
    answer: z.object({
      nearest: optional(z.string(), "Code of the region nearest to the caller."),
      regions: required(z.array(region), "The regions."),
    }),
    failures: {},
    repeat: "read",
  },
  placements: {
    method: "POST",
    path: "/v1/platform/placements",
    source: "docs/interface.md#placements",
    summary: "Simulates placing Machines into regions; nothing is reserved.",
    params: z.object({}),
    body: getPlacements,
    status: 200,
    answer: z.object({ regions: required(z.array(placement), "Regions with room, the preferred one first.") }),
    failures: { 400: "bad field or region", 403: "another organization", 404: "no such organization" },
    repeat: "read",
  },
});
