// Volumes (docs/interface.md#volumes).
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../time/clock.ts";
import { findMachine } from "../lifecycle/machines.ts";
import {
  armBackup,
  changeVolume,
  findVolume,
  pendingSnapshot,
  takeSnapshot,
  unwritten,
  walk,
} from "../lifecycle/volumes.ts";
import { deletePath, extendPath, isLeaving, volumePaths, type VolumeOrigin } from "../states/volumeStates.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, SnapshotRow, VolumeRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { appOf, openAppOf, volumeOf, type Asking } from "./find.ts";
import { regionOf } from "./platform.ts";
import { requireQuota } from "./quotas.ts";
import { snapshotAnswer, volumeAnswer } from "./volumeAnswer.ts";
import type { Input, Rules } from "./rule.ts";
import { isFor } from "../store/tokens.ts";

type Group = typeof contract.volumes;

interface Source {
  /** The volume whose contents are copied, if it still exists. */
  readonly copied?: VolumeRow;
  readonly origin: VolumeOrigin;
  readonly sizeGb: number;
  readonly region?: string;
}

/**
 * The source of a new volume. ASSUMED: the source snapshot or volume must belong to the same organization, and for a token of
 * some Apps to one of them. By default a copy has the file system and the encryption of its source.
 */
function sourceOf({ context, caller, body }: Input<Group["create"]>): Source {
  if (body.snapshot_id !== undefined && body.source_volume_id !== undefined) {
    throw refuse(400, "invalid source_volume_id, is exclusive with snapshot_id");
  }
  const isReachable = (owner: string): boolean => {
    const sql = "SELECT id, network FROM apps WHERE id = ? AND org = ? AND deleting < 2";
    const app = context.store.get<Pick<AppRow, "id" | "network">>(sql, owner, caller.org);
    return app !== undefined && isFor(caller, app);
  };
  if (body.snapshot_id !== undefined) {
    const snapshot = context.store.get<SnapshotRow>("SELECT * FROM snapshots WHERE id = ?", body.snapshot_id);
    if (!snapshot || !isReachable(snapshot.app))
      throw refuse(404, `snapshot ${JSON.stringify(body.snapshot_id)} not found`);
    if (snapshot.status !== "created") throw refuse(412, "failed_precondition: snapshot is still being written");
    const copied = findVolume(context, snapshot.volume);
    return { origin: "snapshot", sizeGb: snapshot.size_gb, ...(copied ? { copied } : {}) };
  }
  if (body.source_volume_id !== undefined) {
    const source = findVolume(context, body.source_volume_id);
    if (!source || !isReachable(source.app) || isLeaving(source.state))
      throw refuse(404, `volume ${JSON.stringify(body.source_volume_id)} not found`);
    return { origin: "fork", sizeGb: source.size_gb, region: source.region, copied: source };
  }
  return { origin: "empty", sizeGb: 0 };
}

/** Refuses a copy that the runtime cannot make. */
function requireCopy({ context, body }: Input<Group["create"]>, { origin, copied }: Source, region: string): void {
  if (origin === "empty") return;
  const problem = context.runtime.copyProblem?.(copied?.region, region);
  const source = origin === "snapshot" ? "snapshot_id" : "source_volume_id";
  if (problem !== undefined) throw refuse(400, `invalid ${source}, got ${JSON.stringify(body[source])}, ${problem}`);
}

function create(input: Input<Group["create"]>) {
  const { context, body } = input;
  const app = openAppOf(input);
  // ASSUMED: a volume without a name is 400: the fields are all optional by the schema, but the platform's text requires this one.
  if (body.name === undefined) throw refuse(400, "invalid name, got nothing, must be 1 to 30 of a-z, 0-9 and _");
  const source = sourceOf(input);
  const region = regionOf(context, body.region ?? source.region);
  requireCopy(input, source, region.code);
  // ASSUMED: a fork or restored volume has the size of its source by default, and is never smaller.
  const size = body.size_gb ?? (source.sizeGb || 3);
  if (size < source.sizeGb)
    throw refuse(400, `invalid size_gb, got ${size}, minimum required ${source.sizeGb} GB for its source`);
  requireQuota(context, app.org, app, { volumes: 1, "volume-gb": size });
  const volume: VolumeRow = {
    id: context.ids.volume(),
    app: app.id,
    org: app.org,
    name: body.name,
    state: "creating",
    region: region.code,
    zone: zoneFor(context, app, body.name, region.code, body),
    size_gb: size,
    encrypted: body.encrypted === undefined ? (source.copied?.encrypted ?? 1) : body.encrypted ? 1 : 0,
    fstype: body.fstype ?? source.copied?.fstype ?? "ext4",
    mounted: 0,
    snapshot_retention: body.snapshot_retention ?? 5,
    auto_backup: (body.auto_backup_enabled ?? true) ? 1 : 0,
    machine: null,
    source: body.snapshot_id ?? body.source_volume_id ?? null,
    written: unwritten(context),
    created_at: context.clock.now(),
    updated_at: context.clock.now(),
  };
  context.store.insert("volumes", volume);
  armBackup(context, volume);
  context.runtime.volumeChanged?.(volume.id);
  return volumeAnswer(walk(context, volume, volumePaths[source.origin]));
}

/**
 * A zone without the volumes that the new one must be separate from. ASSUMED: a region never runs out of zones; after a
 * hundred tries two volumes share one.
 */
function zoneFor(
  context: Context,
  app: AppRow,
  name: string,
  region: string,
  rule: { require_unique_zone?: boolean | undefined; unique_zone_app_wide?: boolean | undefined },
): string {
  const others = context.store.all<VolumeRow>("SELECT * FROM volumes WHERE app = ? AND region = ?", app.id, region);
  const remaining =
    (rule.require_unique_zone ?? true)
      ? others.filter((other) => rule.unique_zone_app_wide === true || other.name === name)
      : [];
  const taken = new Set(remaining.map(({ zone }) => zone));
  let zone = context.ids.zone();
  for (let tries = 0; taken.has(zone) && tries < 100; tries++) zone = context.ids.zone();
  return zone;
}

/** The volume of the path, to change it. ASSUMED: a volume under deletion is 404 for every change except another delete. */
function keptVolumeOf(asking: Asking): VolumeRow {
  const volume = volumeOf(asking);
  if (isLeaving(volume.state)) throw refuse(404, "volume not found");
  return volume;
}

function remove(input: Input<Group["delete"]>) {
  const { context } = input;
  const volume = volumeOf(input);
  if (isLeaving(volume.state)) return volumeAnswer(volume);
  if (volume.machine !== null)
    throw refuse(412, `failed_precondition: volume is currently bound to machine: ${volume.machine}`);
  context.timers.cancel(volume.id, "volume.backup");
  return volumeAnswer(walk(context, volume, deletePath));
}

/** The rules of the volume operations. */
export const volumes: Rules<Group> = {
  // ASSUMED: volumes that are `pending_destroy` are listed and can be read; their state shows it.
  list(input) {
    const found = input.context.store.all<VolumeRow>(
      "SELECT * FROM volumes WHERE app = ? ORDER BY created_at, id",
      appOf(input).id,
    );
    return found.map((volume) => volumeAnswer(volume, input.query.summary));
  },
  create,
  get: (input) => volumeAnswer(volumeOf(input)),

  update(input) {
    const { context, body } = input;
    const volume = keptVolumeOf(input);
    const changed = changeVolume(context, volume, {
      snapshot_retention: body.snapshot_retention ?? volume.snapshot_retention,
      auto_backup: body.auto_backup_enabled === undefined ? volume.auto_backup : body.auto_backup_enabled ? 1 : 0,
    });
    if (changed.auto_backup !== volume.auto_backup) armBackup(context, changed);
    return volumeAnswer(changed);
  },

  delete: remove,

  extend(input) {
    const { context, body } = input;
    const volume = keptVolumeOf(input);
    if (body.size_gb <= volume.size_gb)
      throw refuse(400, `invalid size_gb, got ${body.size_gb}, must be larger than ${volume.size_gb}`);
    requireQuota(context, volume.org, appOf(input), { "volume-gb": body.size_gb - volume.size_gb });
    const grown = changeVolume(context, volume, { size_gb: body.size_gb });
    context.runtime.volumeChanged?.(volume.id);
    // ASSUMED: a volume that is still being created is extended at once and then continues.
    const extended =
      grown.state === "created" || grown.state === "extending" ? walk(context, grown, extendPath) : grown;
    const machine = volume.machine === null ? undefined : findMachine(context, volume.machine);
    // ASSUMED: a Machine that is `started` sees a larger volume only after a restart.
    return { volume: volumeAnswer(extended), needs_restart: machine?.state === "started" };
  },

  listSnapshots(input) {
    const { context, params } = input;
    const app = appOf(input);
    const found = context.store.all<SnapshotRow>(
      "SELECT * FROM snapshots WHERE volume = ? AND app = ? ORDER BY created_at, id",
      params.volume_id,
      app.id,
    );
    // Snapshots can be listed for a deleted volume (docs/interface.md#snapshots).
    if (found.length === 0) volumeOf(input);
    return found.map(snapshotAnswer);
  },

  createSnapshot(input) {
    const { context } = input;
    const volume = keptVolumeOf(input);
    const problem = context.runtime.copyProblem?.(volume.region, volume.region);
    if (problem !== undefined) throw refuse(400, `invalid snapshot, ${problem}`);
    const running = pendingSnapshot(context, volume);
    if (running)
      throw refuse(412, `failed_precondition: snapshot is already scheduled at ${rfc3339(running.created_at)}`);
    takeSnapshot(context, volume);
  },
};
