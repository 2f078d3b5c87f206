// What the data folder has for backups: the repository of the running service, the result of the last backup, and drafts.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dataIdOf } from "../store/dataId.ts";
import { writePrivately } from "../store/privateFile.ts";
import type { RandomBytes } from "../ids.ts";
import type { Missing } from "./contents.ts";
import type { Repository } from "./restic.ts";

/** The files and folders for backups in a data folder. */
export const placesOf = (folder: string) => {
  const own = join(folder, "backup");
  return {
    folder: own,
    /** What restic keeps of the repository. It can be removed at any time. */
    cache: join(own, "cache"),
    /** What is about to be stored. */
    staging: join(own, "staging"),
    /** Beside it: what is stored of the logs of clusters. */
    log: join(own, "log.json"),
    lastResult: join(own, "last.json"),
    repository: join(own, "repository.json"),
    lineage: join(own, "lineage"),
    /** Not among what is only for backups: every start writes it. */
    engines: join(folder, "engines.json"),
  };
};

/** The result of the last backup. */
export interface LastResult {
  /** Undefined if it failed before it had one. */
  readonly id?: string;
  readonly result: "complete" | "incomplete" | "failed";
  readonly begun: number;
  readonly ended: number;
  /** Bytes that the repository has grown by. */
  readonly addedBytes: number;
  /** Why it failed. */
  readonly reason?: string;
  readonly missing: readonly Missing[];
  /** The id of the last backup that was stored. */
  readonly stored?: string;
  /** The moment of the last complete backup. */
  readonly lastComplete?: number;
}

function prepare(folder: string): ReturnType<typeof placesOf> {
  const places = placesOf(folder);
  mkdirSync(places.folder, { recursive: true, mode: 0o700 });
  return places;
}

const readJson = <T>(file: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
};

/** The result of the last backup of a data folder; undefined if there was none. */
export const readLast = (folder: string): LastResult | undefined => readJson(placesOf(folder).lastResult);

/** Keeps the result of a backup. */
export const writeLast = (folder: string, last: LastResult): void =>
  writePrivately(prepare(folder).lastResult, `${JSON.stringify(last)}\n`);

/** The repository of the service in a data folder, as its last start named it. */
export const readRepository = (folder: string): Repository | undefined => readJson(placesOf(folder).repository);

/** Keeps the repository for commands. It may have a password in its address, and no other secret. */
export const writeRepository = (folder: string, repository: Repository): void =>
  writePrivately(prepare(folder).repository, `${JSON.stringify(repository)}\n`);

/** Names of the runtime and of the engine of Postgres clusters. */
export interface Engines {
  readonly runtime: string;
  readonly postgres: string;
}

/** The engines that the last start of the service in a data folder had; undefined of services before this was kept. */
export const readEngines = (folder: string): Engines | undefined => readJson(placesOf(folder).engines);

/** Keeps the engines for a backup of the stopped service. */
export function writeEngines(folder: string, engines: Engines): void {
  const { runtime, postgres } = readEngines(folder) ?? {};
  // It waits for the disk.
  if (runtime === engines.runtime && postgres === engines.postgres) return;
  writePrivately(placesOf(folder).engines, `${JSON.stringify(engines)}\n`);
}

/** The lineage of a data folder, if a backup gave it one. */
export function readLineage(folder: string): string | undefined {
  const { lineage } = placesOf(folder);
  return existsSync(lineage) ? readFileSync(lineage, "utf8").trim() : undefined;
}

/** Identifies a service over restores: its backups are thinned out together. */
export function lineageOf(folder: string, random: RandomBytes): string {
  const known = readLineage(folder);
  if (known !== undefined) return known;
  const lineage = dataIdOf(folder, random);
  writeLineage(folder, lineage);
  return lineage;
}

/** Lets a restored service continue the backups of the original. */
export const writeLineage = (folder: string, lineage: string): void =>
  writePrivately(prepare(folder).lineage, `${lineage}\n`);
