// Platform (spec 4.7, bodies 9.2).
import { z } from "zod";
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
  capacity: optional(z.int(), "Room left, in Machines."),
});

export const platform = operations("platform", {
  regions: {
    method: "GET",
    path: "/v1/platform/regions",
    source: "spec 4.7, bodies 9.2",
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
});
