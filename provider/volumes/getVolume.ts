// An existing volume (docs/interface.md#volumes).
import { z } from "zod";
import { defineFunction } from "../core/function.ts";
import { ofVolume } from "../shared/fields.ts";
import { toVolumeDetails, volumeDetails } from "./details.ts";

export const getVolume = defineFunction({
  name: "getVolume",
  summary: "Looks up a volume.",
  inputs: z.object(ofVolume),
  outputs: volumeDetails,

  async call({ inputs: { app, volume }, api }) {
    return toVolumeDetails(app, await api.volumes.get({ appName: app, volumeId: volume }));
  },
});
