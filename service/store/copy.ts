// Copies stores, also while they are in use.
import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { syncFile, syncFolder } from "./privateFile.ts";

/**
 * Copies a store atomically into a file that only the user can read; `finish` may add to the copy before. Errors of the disk
 * and of `finish` are thrown.
 */
export function copyStore(db: DatabaseSync, file: string, finish: (copy: DatabaseSync) => void = () => {}): void {
  const draft = `${file}.${process.pid}`;
  try {
    rmSync(draft, { force: true });
    writeFileSync(draft, "", { mode: 0o600, flag: "wx" }); // never follows a link
    db.prepare("VACUUM INTO ?").run(draft);
    const copy = new DatabaseSync(draft);
    try {
      finish(copy);
    } finally {
      copy.close();
    }
    syncFile(draft); // SQLite does not sync such a copy
    renameSync(draft, file);
    syncFolder(file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Removes the drafts that killed processes left next to a file, by their suffix. */
export function removeDrafts(file: string, end: RegExp): void {
  const name = basename(file);
  for (const other of readdirSync(dirname(file)))
    if (other.startsWith(name) && end.test(other.slice(name.length)))
      rmSync(join(dirname(file), other), { force: true });
}
