// After the container engine or the folder of the Postgres servers was lost, everything in the store is created
// again on another one. Contents that only the lost one had are gone.
import { touch, type Context } from "../context.ts";
import { machineColumns, type ClusterRow, type MachineRow } from "../store/rows.ts";
import { contentsOf, keepChange } from "./clusterContents.ts";
import * as clusters from "./clusters.ts";
import { engineLost } from "./machines.ts";
import { removeSnapshot } from "./volumes.ts";

/** What was lost. */
export interface Lost {
  /** The container engine, with the contents of volumes and snapshots. */
  readonly engine?: boolean;
  /** The folder with the data and the backups of the Postgres servers. */
  readonly folder?: boolean;
}

/** Creates again what was lost. A second call changes only what was created in between. */
export function recreateLost(context: Context, { engine, folder }: Lost): void {
  if (engine) {
    // First: Machines wait for their volumes.
    emptyVolumes(context);
    const alive = `SELECT ${machineColumns} FROM machines WHERE state IN ('started', 'suspending', 'suspended')`;
    for (const machine of context.store.all<MachineRow>(alive)) engineLost(context, machine);
  }
  if (folder) emptyClusters(context);
}

/** The runtime creates all volumes again, without contents. A copy that was not complete fails, unless its source is a volume. */
function emptyVolumes(context: Context): void {
  const { store, timers } = context;
  for (const { id } of store.all<{ id: string }>("SELECT id FROM snapshots")) {
    timers.cancel(id);
    removeSnapshot(context, id);
  }
  const written = store.all<{ id: string }>("SELECT id FROM volumes WHERE written = 1");
  store.run("UPDATE volumes SET written = 0, source = NULL WHERE written = 1");
  for (const { id } of written) {
    touch(context, id);
    context.runtime.volumeChanged?.(id);
  }
}

/** The engine creates all servers again, with their databases, users and extensions, and without rows. */
function emptyClusters(context: Context): void {
  const { store, timers } = context;
  const live = "SELECT * FROM clusters WHERE status IN ('creating', 'initializing', 'ready')";
  for (const row of store.all<ClusterRow>(live)) {
    for (const { id } of clusters.backupsOf(context, row.id)) timers.cancel(id);
    store.run("DELETE FROM backups WHERE cluster = ?", row.id);
    if (row.status !== "ready" && row.source !== null) {
      clusters.failed(context, row.id, "the data that it was to begin with were lost");
      continue;
    }
    for (const extension of contentsOf(context, row.id).extensions)
      keepChange(context, row.id, { kind: "installExtension", extension });
    const empty = clusters.changeCluster(context, row, { status: "creating", source: null, storage_used_bytes: null });
    context.postgres.create(clusters.clusterOf(empty));
  }
}
