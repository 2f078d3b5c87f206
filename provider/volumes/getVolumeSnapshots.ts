// The snapshots of a volume (docs/interface.md#snapshots).
import { z } from "zod";
import { volumeSnapshot } from "../../api/volumes.ts";
import { named, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, ofVolume } from "../shared/fields.ts";

const snapshotDetails = z.object({
  id: optional(z.string(), "Id of the snapshot, `app/volumeId/snapshotId`, as `pulumi import` takes it."),
  snapshotId: optional(z.string(), "Identifier; a volume is restored from it."),
  ...camelObject(volumeSnapshot).omit({ id: true }).shape,
});

export const getVolumeSnapshots = defineFunction({
  name: "getVolumeSnapshots",
  summary: "Lists the snapshots of a volume, also of a deleted one until they expire.",
  inputs: z.object(ofVolume),
  outputs: z.object({
    snapshots: required(z.array(named("VolumeSnapshotDetails", snapshotDetails)), "The snapshots."),
  }),

  async call({ inputs: { app, volume }, api }) {
    const found = await api.volumes.listSnapshots({ appName: app, volumeId: volume });
    return {
      snapshots: found.map(({ id, ...live }) => ({
        ...live,
        ...(id === undefined ? {} : { id: `${app}/${volume}/${id}`, snapshotId: id }),
      })),
    };
  },
});
