// Snapshots of volumes (docs/interface.md#snapshots).
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import { listSnapshots } from "../client/listCache.ts";
import { PartialStateError } from "../core/partialState.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { snapshotIn, takeSnapshot, untilWritten, type Snapshot, type VolumeKey } from "./snapshots.ts";
import { triggers } from "../shared/triggers.ts";
import { liveVolumes } from "./snapshots.ts";

const inputs = z.object({
  app: required(appName, "App of the volume: the `id` of an App. Changing it takes a new snapshot.", {
    format: "reference",
  }),
  volume: required(z.string(), "Volume to take it of: the `id` of a Volume. Changing it takes a new snapshot.", {
    format: "reference",
  }),
  triggers: triggers("a new snapshot is taken"),
});

const outputs = z.object({
  snapshotId: required(z.string(), "Identifier of the snapshot."),
  status: optional(z.string(), "State: `created` once it is written."),
  createdAt: optional(z.string(), "RFC 3339 time at which the snapshot was started."),
  size: optional(z.int(), "Bytes stored."),
  volumeSize: optional(z.int(), "Bytes of the volume."),
  digest: optional(z.string(), "Digest of the contents."),
  retentionDays: optional(z.int(), "Days that it is stored."),
  expired: required(z.boolean(), "Whether the snapshot has expired. It is not replaced by a new one."),
});

const toLive = ({ appName: app, volumeId: volume }: VolumeKey, live: Snapshot) => ({
  app,
  volume,
  snapshotId: live.id,
  status: live.status,
  createdAt: live.createdAt,
  size: live.size,
  volumeSize: live.volumeSize,
  digest: live.digest,
  retentionDays: live.retentionDays,
  expired: false,
});

const keyOf = (id: { app: string; volume: string }): VolumeKey => ({ appName: id.app, volumeId: id.volume });

export const volumeSnapshot = defineResource({
  name: "VolumeSnapshot",
  summary: "A snapshot of a Volume, taken when the resource is created.",
  description:
    "The service has no operation that deletes a snapshot. It expires after the volume's `snapshotRetention`, as it was when the snapshot was taken. Deleting the resource only removes it from the state.",
  inputs,
  outputs,
  id: pathId("app", "volume", "snapshotId"),
  list: {
    objects: async (pass, appName) => {
      const lists = (await liveVolumes(pass, appName)).map(async ({ id: volumeId }) =>
        (await pass.api.volumes.listSnapshots({ appName, volumeId })).flatMap(({ id, createdAt }) =>
          id === undefined ? [] : [{ parts: { app: appName, volume: volumeId, snapshotId: id }, createdAt }],
        ),
      );
      return (await Promise.all(lists)).flat();
    },
    shownBy: "volumes.listSnapshots",
    deletedBy: undefined,
    isScheduled: true,
  },
  replaceOn: ["app", "volume", "triggers"],
  dependsOn: { status: "any", size: "any", digest: "any" },

  async create({ inputs: { app, volume, triggers: given }, owner, ...call }) {
    const key = { appName: app, volumeId: volume };
    const started = await takeSnapshot(call, owner, key, given);
    try {
      return toLive(key, await untilWritten(call, key, started));
    } catch (error) {
      throw new PartialStateError(toLive(key, started), error);
    }
  },

  async read({ id, state, api }) {
    const key = keyOf(id);
    const once = (ask: Parameters<typeof snapshotIn>[3]) => snapshotIn(api, key, id.snapshotId, ask);
    let live = await once(() => listSnapshots(api, id.app, id.volume));
    // The list that many share may be older than the snapshot.
    if (!live && state?.expired !== true) live = await once(() => api.volumes.listSnapshots(key));
    if (live) return toLive(key, live);
    return state && { ...state, snapshotId: id.snapshotId, expired: true };
  },

  // Every input replaces, so an update only waits for a snapshot that was still being written.
  async update({ id, old, ...call }) {
    const key = keyOf(id);
    const started = await snapshotIn(call.api, key, id.snapshotId, () => call.api.volumes.listSnapshots(key));
    if (!started) return { ...old, expired: true };
    try {
      return toLive(key, await untilWritten(call, key, started));
    } catch (error) {
      throw new PartialStateError(toLive(key, started), error);
    }
  },

  delete({ id, state, warn }) {
    const after =
      state.retentionDays === undefined
        ? ""
        : ` ${state.retentionDays} days after ${state.createdAt ?? "it was taken"}`;
    if (state.expired !== true)
      warn(
        `snapshot ${id.app}/${id.volume}/${id.snapshotId} cannot be deleted; it is forgotten here and expires by itself${after}`,
      );
    return Promise.resolve();
  },
});
