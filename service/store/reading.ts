// Reads a file of SQLite by a connection of its own.
import { DatabaseSync } from "node:sqlite";

/** Reads from a database, which is closed afterwards. Nothing can be written. */
export function reading<T>(file: string, read: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}
