// A volume in the answers of functions (docs/interface.md#volumes).
import { z } from "zod";
import { volume } from "../../api/volumes.ts";
import { optional, required } from "../../api/schema.ts";
import type { Volume } from "../client/listCache.ts";
import { camelObject, withoutNull } from "../shared/fields.ts";

/** A volume in the answers of functions. */
export const volumeDetails = z.object({
  id: required(z.string(), "Id of the volume, `app/volumeId`, as inputs and `pulumi import` take it."),
  app: required(z.string(), "App that owns the volume."),
  volumeId: required(z.string(), "Identifier within the App."),
  ...camelObject(volume).omit({ id: true }).shape,
  attachedMachineId: optional(z.string(), "Machine that mounts the volume, if any."),
  attachedAllocId: optional(z.string(), "Allocation that mounts the volume, if any."),
});

/** The outputs of functions about a volume. */
export const toVolumeDetails = (app: string, { id, ...live }: Volume): z.output<typeof volumeDetails> => ({
  ...withoutNull(live),
  id: `${app}/${id}`,
  app,
  volumeId: id,
});
