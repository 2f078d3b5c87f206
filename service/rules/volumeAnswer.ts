// Answers with volumes and snapshots (docs/interface.md#volumes, docs/interface.md#snapshots).
import { rfc3339 } from "../time/clock.ts";
import type { SnapshotRow, VolumeRow } from "../store/rows.ts";

const blockSize = 4096;
const gib = 2 ** 30;

/** A volume. Before its first mount it has no file system, so no blocks. */
export function volumeAnswer(row: VolumeRow, summary = false) {
  const total = row.mounted === 1 ? row.size_gb * gib : 0;
  const blocks = total / blockSize;
  // ASSUMED: blocks and bytes of a mounted volume are derived from its size, 98 % of them free.
  const free = Math.floor(blocks * 0.98);
  const details = {
    block_size: row.mounted === 1 ? blockSize : 0,
    blocks,
    blocks_avail: Math.floor(blocks * 0.93),
    blocks_free: free,
  };
  return {
    id: row.id,
    name: row.name,
    state: row.state,
    region: row.region,
    zone: row.zone,
    size_gb: row.size_gb,
    encrypted: row.encrypted === 1,
    fstype: row.mounted === 1 ? row.fstype : "",
    type: "local",
    attached_machine_id: row.machine,
    attached_alloc_id: null,
    auto_backup_enabled: row.auto_backup === 1,
    snapshot_retention: row.snapshot_retention,
    host_status: "ok",
    created_at: rfc3339(row.created_at),
    ...(summary ? {} : { ...details, bytes_total: total, bytes_used: (blocks - free) * blockSize }),
  };
}

/** A snapshot. ASSUMED: a snapshot of a simulated volume, which is empty, has 0 bytes. */
export const snapshotAnswer = (row: SnapshotRow) => ({
  id: row.id,
  status: row.status,
  created_at: rfc3339(row.created_at),
  digest: row.digest,
  size: row.bytes,
  volume_size: row.size_gb * gib,
  retention_days: row.retention_days,
});
