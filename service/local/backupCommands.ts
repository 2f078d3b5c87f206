// What the commands of backups do.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { backUp, wantedIn } from "../backup/backUp.ts";
import { Catalogue, type Backup } from "../backup/contents.ts";
import { readPending, type Pending } from "../backup/pending.ts";
import {
  lineageOf,
  placesOf,
  readEngines,
  readLineage,
  readRepository,
  type Engines,
  type LastResult,
} from "../backup/places.ts";
import { leaveToOwnerOf, restoreAll, type RestoredAll } from "../backup/restore.ts";
import { Restic, type Repository } from "../backup/restic.ts";
import { backupRequest, type Done, type RestoredApp, type Task } from "../backup/route.ts";
import { verify, type Verified } from "../backup/verify.ts";
import { systemRandom } from "../ids.ts";
import { ownCommand } from "../ownCommand.ts";
import { lockData } from "../store/lock.ts";
import { requireStore } from "../store/openForCommand.ts";
import { reading } from "../store/reading.ts";
import { repositoryOf, writeStore, type Opening } from "./backupDraft.ts";
import { problemOf } from "./backupProblem.ts";
import { memberKeyOf } from "./commandStore.ts";
import { findRunning } from "./daemon.ts";
import { settled } from "./options.ts";
import { Problem } from "./problem.ts";
import { sendTo } from "./send.ts";

/** Selects a repository, and whose backups are meant. */
export interface Selected extends Opening {
  readonly folder: string;
  /** The repository. Default: that of the service. */
  readonly at?: string | undefined;
  /** The service whose backups are meant, by its lineage. Default: of all that share the repository. */
  readonly service?: string | undefined;
}

const opens = ["restic", "backupPassphraseFile", "backupPassphraseCommand", "backupEnvironment"] as const;

/** The repository of options; undefined if they name none, and the service's own applies. */
function namedRepository({ folder: data, at, ...opening }: Selected): Repository | undefined {
  const given = opens.filter((name) => opening[name] !== undefined);
  if (at === undefined && given.length === 0) return undefined;
  const { backup, ...absolute } = settled({ data, ...(at === undefined ? {} : { backup: at }), ...opening });
  const own = readRepository(data);
  if (backup === undefined && own === undefined) return undefined;
  // What is not given applies as the service has it, if it is the same repository.
  const isOwn = own !== undefined && (backup === undefined || backup === own.at);
  const named = repositoryOf(backup ?? own?.at ?? "", absolute);
  const hasPassphrase = named.passphraseFile !== undefined || named.passphraseCommand !== undefined;
  return {
    ...named,
    ...(isOwn
      ? {
          restic: named.restic ?? own.restic,
          environmentFile: named.environmentFile ?? own.environmentFile,
          ...(hasPassphrase ? {} : { passphraseFile: own.passphraseFile, passphraseCommand: own.passphraseCommand }),
        }
      : {}),
  };
}

function requireRepository(selected: Selected, option: string): Repository {
  const found = namedRepository(selected) ?? readRepository(selected.folder);
  if (found) return found;
  throw new Problem(
    `${option} names the repository: a folder, or an address such as s3:https://s3.example.com/bucket; the service of ${selected.folder} has none of its own`,
  );
}

function open(selected: Selected, option: string): { readonly restic: Restic; readonly catalogue: Catalogue } {
  const { cache } = placesOf(selected.folder);
  return asProblem(() => {
    const restic = new Restic(requireRepository(selected, option), cache);
    return { restic, catalogue: new Catalogue(restic, cache, selected.service) };
  });
}

/** Makes a backup of the service of a data folder, which may run. */
export async function backUpNow(selected: Selected): Promise<LastResult> {
  const { folder } = selected;
  requireStore(folder);
  const repository = namedRepository(selected);
  const done = await askRunning(folder, { kind: "back up", ...(repository ? { repository } : {}) });
  if (done?.kind === "back up") return done.result;
  return backUpStopped(selected);
}

/** Asks the running service; undefined if it does not run. */
async function askRunning(folder: string, task: Task): Promise<Done | undefined> {
  const running = findRunning(folder);
  if (!running) return undefined;
  const { status, text } = await sendTo(running, backupRequest(memberKeyOf(folder), task, Date.now()));
  const answer = JSON.parse(text) as Done & { readonly error?: string };
  if (status !== 200) throw new Problem(answer.error ?? `the service answered ${status}`);
  return answer;
}

/** The service does not run, and neither does what reads volumes and clusters. */
async function backUpStopped(selected: Selected): Promise<LastResult> {
  const { folder } = selected;
  const { restic } = open(selected, "--to");
  const file = requireStore(folder);
  const lock = lockData(folder);
  try {
    const wanted = reading(file, wantedIn);
    const hasServers = wanted.clusters.some((id) => existsSync(join(folder, "postgres", id)));
    if (wanted.volumes.length > 0 || hasServers)
      throw new Problem(
        `only the running service reads its volumes and Postgres clusters; start it first: ${ownCommand("start --detach", folder)}`,
      );
    const closing = new AbortController();
    const begun = Date.now();
    const source = {
      ...{ folder, volumes: undefined, clusters: undefined },
      // One that was restored and not started since has those of its backup.
      ...enginesOf(readEngines(folder) ?? readPending(folder)),
      lineage: lineageOf(folder, systemRandom()),
      writeStore: (target: string) => writeStore(folder, target, closing.signal),
      now: () => Date.now(),
      signal: closing.signal,
    };
    const { manifest, addedBytes } = await backUp(restic, source, wanted, (made) => Promise.resolve(made)).catch(
      problemOf,
    );
    await leaveToOwnerOf(folder, placesOf(folder).folder);
    const { id, missing, at } = manifest;
    return { id, result: "complete", begun, ended: Date.now(), addedBytes, missing, lastComplete: at };
  } finally {
    lock.release();
  }
}

const enginesOf = ({ runtime, postgres }: Pick<Pending, keyof Engines> = {}) => ({ runtime, postgres });

/** The backups of a repository, oldest first. */
export const listBackups = async (selected: Selected): Promise<readonly Backup[]> =>
  open(selected, "--from").catalogue.all().catch(problemOf);

/** Rehearses the restore of a backup. */
export async function verifyBackup(
  selected: Selected,
  id: string | undefined,
): Promise<Verified & { readonly backup: Backup }> {
  const { folder, service = readLineage(folder) } = selected;
  const { restic, catalogue } = open({ ...selected, service }, "--from");
  try {
    const backup = await catalogue.find(id);
    return { backup, ...(await verify(restic, backup)) };
  } catch (error) {
    return problemOf(error);
  }
}

/** Which backup to restore. */
export interface Wanted {
  readonly id?: string | undefined;
  /** Milliseconds since 1970. */
  readonly at?: number | undefined;
}

/** Restores a backup into an empty data folder. */
export async function restoreBackup(selected: Selected, { id, at }: Wanted): Promise<RestoredAll> {
  const { folder, service } = selected;
  if (findRunning(folder)) throw new Problem(`the service of ${folder} runs; stop it, or restore one App with --app`);
  const { restic } = open(selected, "--from");
  return restoreAll({ restic, folder, service, id, at, volumesOf }).catch(problemOf);
}

async function volumesOf(dataId: string) {
  const docker = await import("../runtime/docker/index.ts");
  return docker.volumesOf(dataId).catch((error: unknown) => {
    throw error instanceof docker.EngineError
      ? new Problem(`the backup has volumes of containers: ${error.message}`)
      : error;
  });
}

/** Restores one App into the running service. */
export async function restoreApp(selected: Selected, app: string, { id, at }: Wanted): Promise<RestoredApp> {
  const { folder } = selected;
  const repository = namedRepository(selected);
  const done = await askRunning(folder, {
    ...{ kind: "restore an App", app },
    ...(repository ? { repository } : {}),
    ...(id === undefined ? {} : { id }),
    ...(at === undefined ? {} : { at }),
  });
  if (done?.kind === "restore an App") return done.restored;
  throw new Problem(`--app restores into the running service; start it first: ${ownCommand("start --detach", folder)}`);
}

function asProblem<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    return problemOf(error);
  }
}
