// Copies of a store, also of one that is in use.
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/**
 * Copies a store into a file that only the user can read, whole or not at all; `finish` may add to the copy before it is
 * in place. Throws what the disk or `finish` throws.
 */
export function copyStore(db: DatabaseSync, file: string, finish: (copy: DatabaseSync) => void = () => {}): void {
  const draft = `${file}.${process.pid}`;
  try {
    rmSync(draft, { force: true });
    writeFileSync(draft, "", { mode: 0o600 });
    db.prepare("VACUUM INTO ?").run(draft);
    const copy = new DatabaseSync(draft);
    try {
      finish(copy);
    } finally {
      copy.close();
    }
    const written = openSync(draft, "r+");
    fsyncSync(written); // SQLite does not sync such a copy
    closeSync(written);
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
