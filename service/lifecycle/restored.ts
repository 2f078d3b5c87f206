// After the data was restored from a backup into a new folder: the engine has no containers, and only the volumes and clusters that
// the backup had. What it did not have is reported, and never shown as if it were there.
import { touch, type Context } from "../context.ts";
import { isLeaving } from "../states/volumeStates.ts";
import { type ClusterRow, type VolumeRow } from "../store/rows.ts";
import * as clusters from "./clusters.ts";
import { enginesLost } from "./machines.ts";
import { removeSnapshot } from "./volumes.ts";

/** What a backup had. */
export interface Restored {
  /** Its id. */
  readonly backup: string;
  /** Ids of the volumes and snapshots that the engine has now. */
  readonly volumes: readonly string[];
  /** The clusters whose data is in their folders, and until when they get changes. */
  readonly clusters: Readonly<Record<string, { readonly restored: "backup" | "log"; readonly time?: number }>>;
}

/** Continues with what a backup had. A second call changes nothing else. */
export function takeRestored(context: Context, restored: Restored): void {
  if (context.runtime.volumeChanged) {
    // First: Machines wait for their volumes.
    takeVolumes(context, restored);
    enginesLost(context);
  }
  if (context.postgres.archives) takeClusters(context, restored);
}

// ASSUMED: a volume whose contents are not in a backup stays `restoring`, and its Machines fail to start with the reason.
function takeVolumes(context: Context, { backup, volumes }: Restored): void {
  const { store, timers, log } = context;
  const known = new Set(volumes);
  for (const { id } of store.all<{ id: string }>("SELECT id FROM snapshots")) {
    if (known.has(id)) continue;
    timers.cancel(id);
    removeSnapshot(context, id);
    log.warn({ snapshot: id, backup }, "the backup has no contents of this snapshot; it is removed");
  }
  for (const { id, state } of store.all<VolumeRow>("SELECT * FROM volumes WHERE written = 1")) {
    if (known.has(id) || isLeaving(state)) continue;
    timers.cancel(id, "volume.step");
    store.update("volumes", "id", id, { written: 0, source: `backup-${backup}`, state: "restoring" });
    touch(context, id);
    log.warn({ volume: id, backup }, "the backup has no contents of this volume; it stays restoring");
  }
  // The new engine has nothing of them.
  store.run("DELETE FROM discarded");
}

// ASSUMED: a cluster whose data is not in a backup is failed.
function takeClusters(context: Context, { backup, clusters: had }: Restored): void {
  const { store, timers, log } = context;
  const live = "SELECT * FROM clusters WHERE status IN ('creating', 'initializing', 'ready')";
  for (const row of store.all<ClusterRow>(live)) {
    for (const { id } of clusters.backupsOf(context, row.id)) timers.cancel(id);
    store.run("DELETE FROM backups WHERE cluster = ?", row.id);
    const data = had[row.id];
    // One that was to begin empty is created as before.
    if (!data && row.status !== "ready" && row.source === null) continue;
    if (!data) {
      log.warn({ cluster: row.id, backup }, "the backup has no data of this cluster");
      clusters.changeCluster(context, row, { status: "failed", endpoints: null });
      continue;
    }
    const source = JSON.stringify({ cluster: row.id, ...data });
    const waiting = clusters.changeCluster(context, row, { status: "creating", source, storage_used_bytes: null });
    context.postgres.create(clusters.clusterOf(waiting));
  }
}
