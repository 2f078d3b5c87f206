// Volumes (docs/interface.md#volumes).
import { z } from "zod";
import { machineConfig } from "./machineConfig.ts";
import { appNameParam, regionCode, volumeIdParam, volumeName } from "./names.ts";
import { operations } from "./operation.ts";
import { needed, optional, required } from "./schema.ts";

const sizeGb = z.int().min(1).max(500);
const retention = z.int().min(1).max(60);

/** A volume as the service returns it (docs/interface.md#volumes). */
export const volume = z.object({
  id: required(z.string(), "Identifier, `vol_` and 16 or 17 characters."),
  name: optional(z.string(), "Name; several volumes may share one."),
  state: optional(
    z.string(),
    "`creating`, `created`, `extending`, `restoring`, `enabling_remote_export`, `hydrating`, `recovering`, `scheduling_destroy`, `pending_destroy`.",
  ),
  region: optional(z.string(), "Region of the volume."),
  zone: optional(z.string(), "Hardware zone the volume is in."),
  size_gb: optional(z.int(), "Size in GB."),
  encrypted: optional(z.boolean(), "Whether the volume is encrypted."),
  fstype: optional(z.string(), "File system; empty before the first mount."),
  type: optional(z.string(), "`local` or `cache`."),
  attached_machine_id: optional(z.string().nullable(), "Machine that mounts the volume, or null."),
  attached_alloc_id: optional(z.string().nullable(), "Allocation that mounts the volume, or null."),
  auto_backup_enabled: optional(z.boolean(), "Whether snapshots are taken on a schedule."),
  snapshot_retention: optional(z.int(), "Days that a snapshot is stored."),
  host_status: optional(z.string(), "`ok`, `unknown` or `unreachable`."),
  host_dedication_id: optional(z.string(), "Dedicated host group of the volume."),
  host_features: optional(z.array(z.string()), "Features of the host."),
  required_host_features: optional(z.array(z.string()), "Features that the host must offer."),
  block_size: optional(z.int(), "Bytes in a block; left out of a summary."),
  blocks: optional(z.int(), "Blocks of the file system; left out of a summary."),
  blocks_avail: optional(z.int(), "Blocks open to ordinary users."),
  blocks_free: optional(z.int(), "Free blocks."),
  bytes_total: optional(z.int(), "Bytes of the volume."),
  bytes_used: optional(z.int(), "Bytes in use."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
});

/** Body of a request that creates a volume (docs/interface.md#volumes). */
export const createVolume = z.object({
  name: needed(volumeName, "Name, 1 to 30 of `a-z`, `0-9`, `_`. Required in practice."),
  region: optional(regionCode, "Region; the service picks one when left out."),
  size_gb: optional(sizeGb, "Size in GB, 1 to 500.", { wireDefault: 3 }),
  encrypted: optional(z.boolean(), "Whether the volume is encrypted.", { wireDefault: true }),
  fstype: optional(z.enum(["ext4", "raw"]), "File system: `ext4` or `raw`.", { wireDefault: "ext4" }),
  snapshot_retention: optional(retention, "Days that a snapshot is stored, 1 to 60.", { wireDefault: 5 }),
  auto_backup_enabled: optional(z.boolean(), "Whether snapshots are taken on a schedule.", { wireDefault: true }),
  require_unique_zone: optional(z.boolean(), "Requires another hardware zone for every volume of the name.", {
    wireDefault: true,
  }),
  unique_zone_app_wide: optional(z.boolean(), "Applies that rule to all of the App's volumes.", { wireDefault: false }),
  snapshot_id: optional(z.string(), "Snapshot the volume is restored from."),
  source_volume_id: optional(z.string(), "Volume the new one is forked from."),
  compute: optional(machineConfig.shape.guest.unwrap(), "Places the volume where a Machine of this size fits."),
  compute_image: optional(z.string(), "Image of that Machine.", { format: "image" }),
});

/** A snapshot of a volume. */
export const volumeSnapshot = z.object({
  id: optional(z.string(), "Identifier, `vs_` and about 22 characters."),
  status: optional(z.string(), "`pending` while it is written, then `created`."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  digest: optional(z.string(), "Digest of the contents."),
  size: optional(z.int(), "Stored bytes."),
  volume_size: optional(z.int(), "Bytes of the volume."),
  retention_days: optional(z.int(), "Days that the snapshot is stored."),
});

const one = z.object({ app_name: appNameParam, volume_id: volumeIdParam });
const missing = "no such App or volume";

export const volumes = operations("volumes", {
  list: {
    method: "GET",
    path: "/v1/apps/{app_name}/volumes",
    source: "docs/interface.md#volumes",
    summary: "Lists the volumes of an App.",
    params: z.object({ app_name: appNameParam }),
    query: z.object({ summary: optional(z.boolean(), "Leaves out blocks, block size and similar fields.") }),
    status: 200,
    answer: z.array(volume),
    failures: { 404: "no such App" },
    repeat: "read",
  },
  create: {
    method: "POST",
    path: "/v1/apps/{app_name}/volumes",
    source: "docs/interface.md#volumes",
    summary: "Creates a volume: empty, restored from a snapshot, or forked from another volume.",
    params: z.object({ app_name: appNameParam }),
    body: createVolume,
    status: 200,
    answer: volume,
    failures: {
      400: "bad field, or no capacity",
      404: "no such App, snapshot or source volume",
      409: "no capacity",
      412: "the snapshot is being written",
      422: "no such region",
    },
    repeat: "once",
  },
  get: {
    method: "GET",
    path: "/v1/apps/{app_name}/volumes/{volume_id}",
    source: "docs/interface.md#volumes",
    summary: "Shows a volume.",
    params: one,
    status: 200,
    answer: volume,
    failures: { 404: missing },
    repeat: "read",
  },
  update: {
    method: "PUT",
    path: "/v1/apps/{app_name}/volumes/{volume_id}",
    source: "docs/interface.md#volumes",
    summary: "Changes the snapshot settings of a volume.",
    params: one,
    body: z.object({
      snapshot_retention: optional(retention, "Days a snapshot is kept, 1 to 60; for new snapshots."),
      auto_backup_enabled: optional(z.boolean(), "Whether snapshots are taken on a schedule."),
    }),
    status: 200,
    answer: volume,
    failures: { 400: "bad field", 404: missing },
    repeat: "repeatable",
  },
  delete: {
    method: "DELETE",
    path: "/v1/apps/{app_name}/volumes/{volume_id}",
    source: "docs/interface.md#volume-states",
    summary: "Marks a volume for deletion; it stays restorable for 24 hours.",
    params: one,
    status: 200,
    answer: volume,
    failures: { 404: missing, 412: "bound to a Machine" },
    repeat: "repeatable",
  },
  extend: {
    method: "PUT",
    path: "/v1/apps/{app_name}/volumes/{volume_id}/extend",
    source: "docs/interface.md#volumes",
    summary: "Extends a volume to a new total size.",
    params: one,
    body: z.object({ size_gb: required(sizeGb, "New total size in GB; it must grow.") }),
    status: 200,
    answer: z.object({
      volume: required(volume, "The volume."),
      needs_restart: optional(z.boolean(), "Whether the Machine that mounts it sees the size only after a restart."),
    }),
    failures: { 400: "not larger than now, or out of range", 404: missing },
    repeat: "once",
  },
  listSnapshots: {
    method: "GET",
    path: "/v1/apps/{app_name}/volumes/{volume_id}/snapshots",
    source: "docs/interface.md#snapshots",
    summary: "Lists the snapshots of a volume, also of a deleted one until they expire.",
    params: one,
    status: 200,
    answer: z.array(volumeSnapshot),
    failures: { 404: missing },
    repeat: "read",
  },
  createSnapshot: {
    method: "POST",
    path: "/v1/apps/{app_name}/volumes/{volume_id}/snapshots",
    source: "docs/interface.md#snapshots",
    summary: "Takes a snapshot of a volume.",
    params: one,
    status: 200,
    failures: { 404: missing, 412: "a snapshot is being written" },
    repeat: "once",
  },
});
