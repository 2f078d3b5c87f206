// The volumes of an App (docs/interface.md#volumes).
import { z } from "zod";
import { named, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { inApp } from "../shared/fields.ts";
import { toVolumeDetails, volumeDetails } from "./details.ts";

export const getVolumes = defineFunction({
  name: "getVolumes",
  summary: "Lists the volumes of an App.",
  inputs: z.object(inApp),
  outputs: z.object({ volumes: required(z.array(named("VolumeDetails", volumeDetails)), "The volumes.") }),

  async call({ inputs: { app }, api }) {
    const found = await api.volumes.list({ appName: app });
    return { volumes: found.map((live) => toVolumeDetails(app, live)) };
  },
});
