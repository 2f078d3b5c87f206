// Makes a backup of a running service. Volumes and clusters are read first, and the store after them, so that nothing in the store lacks
// its contents: what was created meanwhile is read at the end.
import { reasonOf } from "../reasonOf.ts";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Transform, type Readable } from "node:stream";
import type { DatabaseSync } from "node:sqlite";
import type { ClusterArchives } from "../runtime/postgresEngine.ts";
import type { VolumeArchives } from "../runtime/runtime.ts";
import { version } from "../version.ts";
import {
  archiveName,
  Catalogue,
  clusterPart,
  files,
  idOf,
  tags,
  type Backup,
  type ClusterPart,
  type Manifest,
  type Missing,
  type VolumePart,
} from "./contents.ts";
import { hashOfFile, hashOfFolder } from "./hashes.ts";
import { placesOf } from "./places.ts";
import type { Restic } from "./restic.ts";

/** A service that is backed up. */
export interface Source {
  readonly folder: string;
  readonly lineage: string;
  /** Names of the runtime and of the engine of clusters; undefined if they are not known. */
  readonly runtime?: string | undefined;
  readonly postgres?: string | undefined;
  /** Undefined if it gives no access to the contents of volumes. */
  readonly volumes: VolumeArchives | undefined;
  /** Undefined if clusters have no data. */
  readonly clusters: ClusterArchives | undefined;
  /** Writes the store, as an export, and what is beside it, into a folder. */
  readonly writeStore: (folder: string) => Promise<Written>;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** A store that was written. */
export interface Written {
  /** The number of rows of each table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly wanted: Wanted;
}

/** A backup that is stored. */
export interface Made {
  readonly manifest: Manifest;
  readonly addedBytes: number;
  /** The first file of changes that the copy of each cluster needs, by its id. */
  readonly firstFiles: ReadonlyMap<string, string>;
}

/** What the store says that has contents. */
export interface Wanted {
  readonly volumes: readonly { readonly id: string; readonly isSnapshot: boolean }[];
  /** Clusters that are ready. */
  readonly clusters: readonly string[];
}

/** Reads what a written store has. */
export const writtenIn = (db: DatabaseSync): Written => ({ rows: countsOf(db), wanted: wantedIn(db) });

/** Reads from a database what has contents. */
export const wantedIn = (db: DatabaseSync): Wanted => wantedOf(<T>(sql: string) => db.prepare(sql).all() as T[]);

/** Reads from a store what has contents. */
export function wantedOf(all: <T>(sql: string) => readonly T[]): Wanted {
  const idsOf = (sql: string): string[] => all<{ id: string }>(sql).map(({ id }) => id);
  return {
    volumes: [
      ...idsOf("SELECT id FROM volumes WHERE written = 1").map((id) => ({ id, isSnapshot: false })),
      ...idsOf("SELECT id FROM snapshots WHERE written = 1").map((id) => ({ id, isSnapshot: true })),
    ],
    clusters: idsOf("SELECT id FROM clusters WHERE status = 'ready'"),
  };
}

/** Makes a backup. It is passed on as soon as it is stored, before its drafts are removed: a kill may come at any time. */
export async function backUp<T>(
  restic: Restic,
  source: Source,
  first: Wanted,
  stored: (made: Made) => Promise<T>,
): Promise<T> {
  const making = new Making(restic, source);
  try {
    return await stored(await making.make(first));
  } finally {
    await making.clear();
  }
}

/** An archive ends with two empty blocks. */
const endBytes = 1024;
const endedEarly = "the engine ended its archive early";

class Making {
  readonly #restic: Restic;
  readonly #source: Source;
  readonly #catalogue: Catalogue;
  readonly #staging: string;
  readonly #begun: number;
  readonly #tags: readonly string[];
  readonly #volumes: Record<string, VolumePart> = {};
  readonly #clusters: Record<string, ClusterPart> = {};
  readonly #firstFiles = new Map<string, string>();
  readonly #missing = new Map<string, Missing>();
  #addedBytes = 0;

  constructor(restic: Restic, source: Source) {
    const { folder, lineage } = source;
    const { staging, cache } = placesOf(folder);
    this.#restic = restic;
    this.#source = source;
    this.#catalogue = new Catalogue(restic, cache, lineage);
    this.#staging = staging;
    this.#begun = source.now();
    this.#tags = [tags.service(lineage), tags.id(idOf(this.#begun))];
  }

  async make(wanted: Wanted): Promise<Made> {
    await this.#restic.prepare();
    await this.clear();
    mkdirSync(this.#staging, { recursive: true, mode: 0o700 });
    const last = (await this.#catalogue.all()).at(-1);
    await this.#read(wanted, last);
    const at = this.#source.now();
    const { rows, wanted: more } = await this.#source.writeStore(this.#staging);
    // What was created or became ready meanwhile.
    await this.#read(more, last);
    const manifest = await this.#store(at, rows);
    return { manifest, addedBytes: this.#addedBytes, firstFiles: this.#firstFiles };
  }

  /** Removes drafts; those of a killed process too. */
  async clear(): Promise<void> {
    await rm(this.#staging, { recursive: true, force: true });
    await this.#source.volumes?.tidy().catch(() => {});
  }

  async #read({ volumes, clusters }: Wanted, last: Backup | undefined): Promise<void> {
    for (const { id, isSnapshot } of volumes) {
      if (this.#volumes[id]) continue;
      // A snapshot never changes, so it is stored once.
      const known = isSnapshot ? last?.manifest.volumes[id] : undefined;
      if (known) this.#volumes[id] = known;
      else await this.#try(isSnapshot ? "snapshot" : "volume", id, () => this.#readVolume(id));
    }
    for (const id of clusters)
      if (!this.#clusters[id] && this.#source.postgres !== "simulated")
        await this.#try("cluster", id, () => this.#readCluster(id));
  }

  /** A part that cannot be read is reported, and the others are stored. */
  async #try(kind: Missing["kind"], id: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#missing.delete(id);
    } catch (error) {
      this.#source.signal.throwIfAborted();
      this.#missing.set(id, { kind, id, reason: reasonOf(error) });
    }
  }

  async #readVolume(id: string): Promise<void> {
    const { volumes, runtime, now } = this.#source;
    if (!volumes) throw new Error(`the ${runtime} runtime gives no access to the contents of volumes`);
    const hash = createHash("sha256");
    let bytes = 0;
    let end = Buffer.alloc(0);
    const measured = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        bytes += chunk.length;
        end = Buffer.concat([end, chunk.subarray(-endBytes)]).subarray(-endBytes);
        done(null, chunk);
      },
      // A connection that breaks may look like the end.
      flush: (done) => done(end.length === endBytes && end.every((byte) => byte === 0) ? null : new Error(endedEarly)),
    });
    const at = now();
    await volumes.read(id, async (archive: Readable) => {
      archive.once("error", (error) => measured.destroy(error));
      const { snapshot, bytes: added } = await this.#restic.storeStream(archive.pipe(measured), archiveName(id), [
        tags.part,
        ...this.#tags,
      ]);
      this.#addedBytes += added;
      this.#volumes[id] = { stored: snapshot, bytes, sha256: hash.digest("hex"), at };
    });
  }

  async #readCluster(id: string): Promise<void> {
    const { clusters, now, signal } = this.#source;
    if (!clusters) throw new Error("this service has no servers");
    const target = join(this.#staging, clusterPart(id));
    const { first } = await clusters.copy(id, target, signal);
    this.#firstFiles.set(id, first);
    const at = now();
    this.#clusters[id] = { at, ...(await hashOfFolder(target)) };
  }

  async #store(at: number, rows: Readonly<Record<string, number>>): Promise<Manifest> {
    const { lineage, runtime, postgres } = this.#source;
    const manifest: Manifest = {
      ...{ format: 1, id: idOf(this.#begun), lineage, version, begun: this.#begun, at, runtime, postgres },
      ...{ volumes: this.#volumes, clusters: this.#clusters },
      store: await hashOfFile(join(this.#staging, files.store)),
      rows,
      missing: [...this.#missing.values()],
    };
    writeFileSync(join(this.#staging, files.manifest), `${JSON.stringify(manifest)}\n`, { mode: 0o600 });
    const { bytes } = await this.#restic.storeFolder(this.#staging, [tags.backup, ...this.#tags]);
    this.#addedBytes += bytes;
    return manifest;
  }
}

/** The number of rows of each table. */
export function countsOf(db: DatabaseSync): Record<string, number> {
  const tables = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    .all() as { name: string }[];
  return Object.fromEntries(
    tables.map(({ name }) => [name, Number(db.prepare(`SELECT count(*) AS n FROM "${name}"`).get()?.["n"])]),
  );
}
