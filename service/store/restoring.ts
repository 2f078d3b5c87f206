// The mark of a restore that has not ended. The store is placed last, so a folder with the mark and without a store has only a part.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { StoreError, storeFile } from "./database.ts";

/** The folder with what is being restored into a data folder. It is also the mark. */
export const restoringFolder = (folder: string): string => join(folder, "backup", "restoring");

/** Throws a StoreError if a restore has not ended: a service that starts meanwhile would be empty, and would end the restore. */
export function requireRestored(folder: string): void {
  if (!existsSync(restoringFolder(folder)) || existsSync(storeFile(folder))) return;
  throw new StoreError(`a restore into ${folder} has not ended; repeat it, or choose another folder with --data.`);
}
