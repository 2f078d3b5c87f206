// Restores one App into the running service: first its volumes in the engine, then its rows, so that no Machine starts without them.
import { systemRandom } from "../ids.ts";
import { reasonOf } from "../reasonOf.ts";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "node:sqlite";
import type { Context } from "../context.ts";
import { addRestoredApp, storedApp, type StoredApp } from "../lifecycle/restoredApp.ts";
import { Store, storeFile } from "../store/database.ts";
import { readKey } from "../store/keyFile.ts";
import { importStore } from "../store/transfer.ts";
import { keyFile } from "../store/vault.ts";
import { Catalogue, files, type Backup } from "./contents.ts";
import { lineageOf, placesOf } from "./places.ts";
import { fillVolume } from "./restore.ts";
import { BackupError } from "./backupError.ts";
import type { Restic } from "./restic.ts";
import type { RestoredApp } from "./route.ts";

/** Which App, from which backup, into which service. */
export interface RestoringApp {
  readonly restic: Restic;
  readonly folder: string;
  readonly context: Context;
  readonly app: string;
  readonly id?: string | undefined;
  readonly at?: number | undefined;
  readonly signal: AbortSignal;
}

/** Restores an App. Refuses if the service has one of its name. */
export async function restoreApp(restoring: RestoringApp): Promise<RestoredApp> {
  const { restic, folder, context, app, id, at } = restoring;
  requireFree(context, app);
  const catalogue = new Catalogue(restic, placesOf(folder).cache, lineageOf(folder, systemRandom()));
  const backup = await catalogue.select({ id, at });
  const scratch = mkdtempSync(join(tmpdir(), "machines-restore-"));
  try {
    const draft = join(scratch, "draft");
    await restic.restore(backup.snapshot, "/", draft);
    const data = join(scratch, "data");
    importStore(data, join(draft, files.store));
    requireSameKey(data, folder);
    // Its tables may be those of an older version.
    new Store(storeFile(data)).close();
    const db = new DatabaseSync(storeFile(data), { readOnly: true });
    try {
      return await addFrom(db, backup, restoring);
    } finally {
      db.close();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function addFrom(
  db: DatabaseSync,
  backup: Backup,
  { restic, context, app, signal }: RestoringApp,
): Promise<RestoredApp> {
  const stored = storedApp(db, app);
  if (!stored) throw new BackupError(`backup ${backup.id} has no App ${JSON.stringify(app)}`);
  requireOrg(context, stored);
  const missing: string[] = [];
  const had = new Set<string>();
  const { archives } = context.runtime;
  for (const id of archives ? stored.volumes : []) {
    const part = backup.manifest.volumes[id];
    if (!archives || !part) continue;
    await untilDiscarded(context, id, signal);
    try {
      await fillVolume(restic, id, part, archives);
      had.add(id);
    } catch (error) {
      signal.throwIfAborted();
      missing.push(`${id}: ${reasonOf(error)}`);
    }
  }
  const added = await context.store.write(() => {
    requireFree(context, app);
    return addRestoredApp(context, db, stored, had);
  });
  return { backup: backup.id, ...added, missing: [...missing, ...added.missing] };
}

function requireFree({ store }: Context, app: string): void {
  if (store.get("SELECT 1 FROM apps WHERE name = ?", app))
    throw new BackupError(
      `the service has an App ${JSON.stringify(app)}; delete it first, or restore the backup into an empty folder with --data`,
    );
}

function requireOrg({ store }: Context, { org, row }: StoredApp): void {
  if (store.get("SELECT 1 FROM apps WHERE id = ?", row.id))
    throw new BackupError("the App of this backup is still being deleted; try again in a few seconds");
  if (!store.get("SELECT 1 FROM orgs WHERE slug = ?", org))
    throw new BackupError(`the App belongs to organization ${org}, which the service does not have; create it first`);
}

/** Secrets are sealed with the key of their service. */
function requireSameKey(data: string, folder: string): void {
  const keyOf = (of: string): string =>
    existsSync(keyFile(of)) ? Buffer.from(readKey(keyFile(of)) ?? []).toString("hex") : "";
  if (keyOf(data) !== keyOf(folder))
    throw new BackupError(
      "the backup is of another service, with another key; restore it into an empty folder with --data, without --app",
    );
}

// ASSUMED: an engine removes the volume of a deleted App within half a minute.
const discardMs = 30_000;

/** A volume that the engine has yet to remove must not be removed after it was restored. */
async function untilDiscarded({ store }: Context, id: string, signal: AbortSignal): Promise<void> {
  for (const end = performance.now() + discardMs; ; await sleep(50, undefined, { signal })) {
    if (!store.get("SELECT 1 FROM discarded WHERE id = ?", id)) return;
    if (performance.now() > end)
      throw new BackupError(`the engine has not removed volume ${id} of the deleted App yet; try again`);
  }
}
