// Regions with capacity for Machines (docs/interface.md#placements).
import { z } from "zod";
import { getPlacements as body, placement } from "../../api/platform.ts";
import { named, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, ofOrganization } from "../shared/fields.ts";

export const getPlacements = defineFunction({
  name: "getPlacements",
  summary: "Simulates placing Machines into regions; nothing is reserved.",
  inputs: z.object({ ...ofOrganization, ...camelObject(body).omit({ orgSlug: true }).shape }),
  outputs: z.object({
    regions: required(
      z.array(named("PlacementDetails", camelObject(placement))),
      "Regions with room, the preferred one first.",
    ),
  }),

  call: ({ inputs: { organization, ...wanted }, api }) =>
    api.platform.placements({ body: { orgSlug: organization ?? api.config.organization, ...wanted } }),
});
