// Copies of a store, also of one that is in use.
import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { syncFile, syncFolder } from "./privateFile.ts";

/**
 * Copies a store into a file that only the user can read, whole or not at all; `finish` may add to the copy before it is
 * in place. Throws what the disk or `finish` throws.
 */
export function copyStore(db: DatabaseSync, file: string, finish: (copy: DatabaseSync) => void = () => {}): void {
  const draft = `${file}.${process.pid}`;
  try {
    rmSync(draft, { force: true });
    writeFileSync(draft, "", { mode: 0o600, flag: "wx" }); // never through a link that somebody put there
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

/** Removes what processes that were killed left beside a file: whatever has its name and such an end. */
export function removeDrafts(file: string, end: RegExp): void {
  const name = basename(file);
  for (const other of readdirSync(dirname(file)))
    if (other.startsWith(name) && end.test(other.slice(name.length)))
      rmSync(join(dirname(file), other), { force: true });
}
