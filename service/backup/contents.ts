// What a backup contains, and which backups a repository has. A backup is complete once its own snapshot is stored: it names the
// snapshots with its volumes, so an interrupted one is none.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writePrivately } from "../store/privateFile.ts";
import { BackupError } from "./backupError.ts";
import type { Restic, Stored } from "./restic.ts";

/** The tags of stored snapshots. */
export const tags = {
  /** A backup. */
  backup: "machines-backup",
  /** A volume of backups. */
  part: "machines-part",
  /** The log of Postgres clusters since a backup. */
  log: "machines-log",
  id: (id: string): string => `id:${id}`,
  service: (lineage: string): string => `service:${lineage}`,
  since: (id: string): string => `since:${id}`,
};

/** The files of a backup. */
export const files = { manifest: "manifest.json", store: "store.machines", history: "history.db" } as const;

/** The folder of a cluster in a backup, with `base` and `wal`. */
export const clusterPart = (id: string): string => `clusters/${id}`;

/** The volume in its snapshot. */
export const archiveName = (id: string): string => `${id}.tar`;

/** A volume or snapshot of a volume. */
export interface VolumePart {
  /** The snapshot of restic with the archive. */
  readonly stored: string;
  readonly bytes: number;
  readonly sha256: string;
  /** When it was read. */
  readonly at: number;
}

/** A Postgres cluster. */
export interface ClusterPart {
  /** When its copy was complete. The cluster can be restored to times from then on. */
  readonly at: number;
  readonly bytes: number;
  /** The hash of its files. */
  readonly sha256: string;
}

/** Something that a backup should have, and does not. */
export interface Missing {
  readonly kind: "volume" | "snapshot" | "cluster";
  readonly id: string;
  readonly reason: string;
}

/** What a backup contains. */
export interface Manifest {
  readonly format: 1;
  readonly id: string;
  /** Identifies the service over restores. */
  readonly lineage: string;
  readonly version: string;
  readonly begun: number;
  /** The moment of the store. */
  readonly at: number;
  /** Names of the runtime and of the engine of clusters; undefined if the service was stopped, and its folder does not say. */
  readonly runtime?: string | undefined;
  readonly postgres?: string | undefined;
  readonly volumes: Readonly<Record<string, VolumePart>>;
  readonly clusters: Readonly<Record<string, ClusterPart>>;
  /** The hash of the file with the store. */
  readonly store: string;
  /** Rows by table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly missing: readonly Missing[];
}

/** The logs of clusters, as they are stored beside them. */
export interface Logs {
  readonly clusters: Readonly<
    Record<string, { readonly folder: string; readonly until: number; readonly lastChange: number }>
  >;
}

/** A backup in a repository. */
export interface Backup {
  readonly id: string;
  readonly snapshot: string;
  readonly time: number;
  readonly manifest: Manifest;
}

/** The time in the id of a backup. */
export const idOf = (time: number): string => new Date(time).toISOString().replace(/[-:]/g, "").replace(/\.\d+/, "");

/** Reads manifests, and keeps those that it has read: a repository may be far away. */
export class Catalogue {
  readonly #restic: Restic;
  readonly #folder: string;
  readonly #of: readonly string[];

  /** Backups of the service with a lineage; without one, of all services that share the repository. */
  constructor(restic: Restic, cache: string, lineage: string | undefined) {
    this.#restic = restic;
    this.#folder = join(cache, "manifests");
    this.#of = lineage === undefined ? [] : [tags.service(lineage)];
  }

  /** All backups, oldest first. */
  async all(): Promise<readonly Backup[]> {
    const found: Backup[] = [];
    for (const stored of await this.#restic.snapshots(tags.backup, ...this.#of))
      found.push(await this.#backupOf(stored));
    return found;
  }

  /** All backups of one service, to choose one of them. */
  async #ofOne(): Promise<readonly Backup[]> {
    const all = await this.all();
    const services = [...new Set(all.map(({ manifest }) => manifest.lineage))];
    if (services.length > 1)
      throw new BackupError(
        `the repository has backups of ${services.length} services: ${services.join(", ")}; name one with --service`,
      );
    return all;
  }

  /** The newest backup that is not newer than a time; without a time, the one with an id, or else the newest. */
  select({ id, at }: { readonly id?: string | undefined; readonly at?: number | undefined }): Promise<Backup> {
    return at === undefined ? this.find(id) : this.before(at);
  }

  /** A backup by its id; the newest without one. */
  async find(id: string | undefined): Promise<Backup> {
    const all = await this.#ofOne();
    const found = id === undefined ? all.at(-1) : all.find((one) => one.id === id);
    if (found) return found;
    if (all.length === 0) throw new BackupError("the repository has no backups yet");
    throw new BackupError(
      `there is no backup ${JSON.stringify(id)}; the newest ones are ${all
        .slice(-3)
        .map((one) => one.id)
        .join(", ")}`,
    );
  }

  /** The newest backup that is not newer than a time. */
  async before(time: number): Promise<Backup> {
    const all = await this.#ofOne();
    const found = all.filter(({ manifest }) => manifest.at <= time).at(-1);
    if (found) return found;
    const [oldest] = all;
    throw new BackupError(
      oldest === undefined
        ? "the repository has no backups yet"
        : `there is no backup of ${new Date(time).toISOString()} or earlier; the oldest one is of ${new Date(oldest.manifest.at).toISOString()}`,
    );
  }

  async #backupOf({ id: snapshot, time }: Stored): Promise<Backup> {
    const file = join(this.#folder, `${snapshot}.json`);
    let text: string;
    if (existsSync(file)) text = readFileSync(file, "utf8");
    else {
      text = await this.#restic.text(snapshot, files.manifest);
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writePrivately(file, text);
    }
    const manifest = JSON.parse(text) as Manifest;
    if (manifest.format !== 1)
      throw new BackupError(`the backup ${snapshot.slice(0, 8)} was made by a newer version; upgrade machines-service`);
    return { id: manifest.id, snapshot, time, manifest };
  }
}
