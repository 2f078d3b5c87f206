// Restores a backup into an empty data folder. The service that starts there is another one: it has an identity of its own, so it never
// touches what may still run for the original.
import { requireSame } from "./hashes.ts";
import { reasonOf } from "../reasonOf.ts";
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Transform, type Readable } from "node:stream";
import { ownAll } from "../runtime/postgres/files.ts";
import { pathsOf } from "../runtime/postgres/paths.ts";
import type { VolumeArchives } from "../runtime/runtime.ts";
import { prepareFolder } from "../store/prepareFolder.ts";
import { storeFile } from "../store/database.ts";
import { dataIdOf } from "../store/dataId.ts";
import { lockData, type Held } from "../store/lock.ts";
import { restoringFolder } from "../store/restoring.ts";
import { importStore } from "../store/transfer.ts";
import {
  archiveName,
  Catalogue,
  clusterPart,
  files,
  tags,
  type Backup,
  type Logs,
  type Missing,
  type VolumePart,
} from "./contents.ts";
import { writePending, type Pending } from "./pending.ts";
import { placesOf, writeLineage } from "./places.ts";
import { BackupError } from "./backupError.ts";
import type { Restic } from "./restic.ts";
import { sinceOf } from "./retention.ts";

/** What to restore, and where. */
export interface Restoring {
  readonly restic: Restic;
  /** An empty data folder. */
  readonly folder: string;
  readonly id?: string | undefined;
  /** The service, by its lineage, if several share the repository. */
  readonly service?: string | undefined;
  /** The moment, in milliseconds since 1970. Clusters are restored to it, and the rest to the last backup before it. */
  readonly at?: number | undefined;
  /** Gives access to the volumes of the engine, for the identity of the new service. */
  readonly volumesOf: (dataId: string) => Promise<Pick<VolumeArchives, "write">>;
}

/** What was restored. */
export interface RestoredAll {
  readonly backup: Backup;
  /** What the backup should have had, and what could not be restored. */
  readonly missing: readonly Missing[];
}

/** Restores a backup. The service can be started once this has succeeded. After a failure, it can be called again. */
export async function restoreAll(restoring: Restoring): Promise<RestoredAll> {
  const folder = prepareFolder(restoring.folder);
  // Until the end: neither another restore nor a service may begin here meanwhile.
  const lock = lockData(folder);
  try {
    const restored = await restoreInto(folder, lock, restoring);
    await leaveToOwnerOf(folder, folder);
    return restored;
  } finally {
    lock.release();
  }
}

/** Gives what root has written below a data folder to its owner: the service may be another user, which has to be able to use it. */
export async function leaveToOwnerOf(folder: string, path: string): Promise<void> {
  const { uid, gid } = statSync(folder);
  if (process.getuid?.() === 0 && uid !== 0) await ownAll(path, uid, gid);
}

async function restoreInto(folder: string, lock: Held, restoring: Restoring): Promise<RestoredAll> {
  const { restic, at } = restoring;
  if (existsSync(storeFile(folder)))
    throw new BackupError(
      `${folder} has data already; choose an empty folder with --data, or --app to restore one App`,
    );
  const { cache, folder: own } = placesOf(folder);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const catalogue = new Catalogue(restic, cache, restoring.service);
  const backup = await catalogue.select(restoring);
  const { manifest, snapshot } = backup;
  const draft = restoringFolder(folder);
  // Before the long part: a moment that the logs do not reach is an error at once.
  const untils = await logsFor(restic, backup, at);
  // The folder itself stays: it says that a restore has not ended.
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(draft)) rmSync(join(draft, name), { recursive: true, force: true });
  await restic.restore(snapshot, "/", draft);
  const dataId = dataIdOf(folder, randomBytes);
  const missing = [...manifest.missing];
  const volumes = await restoreVolumes(restoring, dataId, backup, missing);
  await restoreClusters(folder, draft, restic, untils);
  for (const name of readdirSync(draft)) if (isBeside(name)) placePrivately(join(draft, name), join(folder, name));
  writeLineage(folder, manifest.lineage);
  const clusters = Object.fromEntries(
    Object.entries(untils).map(([id, { restored, time }]) => [
      id,
      { restored, ...(time === undefined ? {} : { time }) },
    ]),
  );
  const { runtime, postgres } = manifest;
  const pending: Pending = { backup: manifest.id, runtime, postgres, volumes, clusters };
  writePending(folder, pending);
  // Last: with it the folder has a service.
  importStore(folder, join(draft, files.store), lock);
  rmSync(draft, { recursive: true, force: true });
  return { backup, missing };
}

const isBeside = (name: string): boolean => ![files.manifest, files.store, "clusters"].includes(name);

function placePrivately(from: string, to: string): void {
  copyFileSync(from, to);
  chmodSync(to, 0o600);
}

async function restoreVolumes(
  { restic, volumesOf }: Restoring,
  dataId: string,
  { manifest }: Backup,
  missing: Missing[],
): Promise<readonly string[]> {
  const parts = Object.entries(manifest.volumes);
  if (parts.length === 0) return [];
  const engine = await volumesOf(dataId);
  const restored: string[] = [];
  for (const [id, part] of parts) {
    try {
      await fillVolume(restic, id, part, engine);
      restored.push(id);
    } catch (error) {
      missing.push({ kind: "volume", id, reason: reasonOf(error) });
    }
  }
  return restored;
}

/** Creates a volume with its contents, and compares them. */
export async function fillVolume(
  restic: Restic,
  id: string,
  { stored, sha256 }: VolumePart,
  engine: Pick<VolumeArchives, "write">,
): Promise<void> {
  await readVolume(restic, id, stored, sha256, (archive, signal) => engine.write(id, archive, signal));
}

/** Uses the archive of a volume. @throws BackupError if its contents are others than those that were stored. */
export async function readVolume(
  restic: Restic,
  id: string,
  stored: string,
  sha256: string,
  use: (archive: Readable, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const hash = createHash("sha256");
  const broken = new AbortController();
  await restic.read(stored, archiveName(id), async (bytes) => {
    const compared = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    });
    bytes.once("error", (error) => broken.abort(error));
    await use(bytes.pipe(compared), broken.signal);
  });
  requireSame(hash.digest("hex"), sha256);
}

/** How far a cluster is restored, and the log for that. */
interface Until {
  readonly restored: "backup" | "log";
  readonly time?: number;
  readonly log?: { readonly snapshot: string; readonly folder: string };
}

/** How far the clusters of a backup are restored. @throws BackupError if a log does not reach the moment. */
async function logsFor(
  restic: Restic,
  { id, manifest }: Backup,
  at: number | undefined,
): Promise<Readonly<Record<string, Until>>> {
  const ids = Object.keys(manifest.clusters);
  if (at === undefined || at <= manifest.at || ids.length === 0)
    return Object.fromEntries(ids.map((cluster) => [cluster, { restored: "backup" }]));
  const stored = (await restic.snapshots(tags.log, tags.service(manifest.lineage)))
    .filter((one) => sinceOf(one) === id)
    .at(-1);
  const file = stored?.paths.find((path) => path.endsWith("/log.json"));
  const logs = stored && file ? (JSON.parse(await restic.text(stored.id, file.slice(1))) as Logs).clusters : {};
  return Object.fromEntries(
    ids.map((cluster): [string, Until] => {
      const log = logs[cluster];
      const end = log?.until ?? manifest.at;
      if (stored === undefined || log === undefined || at > end)
        throw new BackupError(
          `--at: the log of cluster ${cluster} ends at ${new Date(end).toISOString()}, got ${new Date(at).toISOString()}`,
        );
      const from = { snapshot: stored.id, folder: log.folder };
      // Without a later change there is none to stop at.
      return [cluster, { restored: "log", log: from, ...(at < log.lastChange ? { time: at } : {}) }];
    }),
  );
}

/** Puts the data of clusters where the engine finds it. */
async function restoreClusters(
  folder: string,
  draft: string,
  restic: Restic,
  untils: Readonly<Record<string, Until>>,
): Promise<void> {
  for (const [id, { log }] of Object.entries(untils)) {
    const { folder: place, restored } = pathsOf(join(folder, "postgres", id));
    mkdirSync(place, { recursive: true, mode: 0o700 });
    rmSync(restored, { recursive: true, force: true });
    renameSync(join(draft, clusterPart(id)), restored);
    if (log) {
      const wal = join(restored, "wal");
      rmSync(wal, { recursive: true, force: true });
      await restic.restore(log.snapshot, log.folder, wal);
    }
    // They belonged to users of the other computer.
    const [uid, gid] = [process.getuid?.(), process.getgid?.()];
    if (uid !== undefined && gid !== undefined) await ownAll(restored, uid, gid);
  }
}
