// The regions of the platform (docs/interface.md#regions).
import { z } from "zod";
import { camelSchema } from "../../api/case.ts";
import { platform } from "../../api/platform.ts";
import { defineFunction } from "../core/function.ts";

export const getRegions = defineFunction({
  name: "getRegions",
  summary: "Lists the regions.",
  inputs: z.object({}),
  outputs: camelSchema(platform.regions.answer),
  call: ({ api }) => api.platform.regions({}),
});
