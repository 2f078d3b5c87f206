// Copies of a service's store, and what they contain.
import type { DatabaseSync } from "node:sqlite";
import { apply, decode, follow, prepareCopy } from "../../../service/replication/changes.ts";
import type { Log } from "../../../service/replication/log.ts";
import { Store } from "../../../service/store/database.ts";

/** An empty copy that follows. */
export function emptyCopy(): DatabaseSync {
  const { db } = new Store(":memory:");
  prepareCopy(db);
  follow(db);
  return db;
}

/** Applies the entries of a log after `from`, and returns the number of the last one. */
export async function followLog(db: DatabaseSync, log: Log, from = 0): Promise<number> {
  let last = from;
  for (;;) {
    const entries = await log.read(last, 100, 2 ** 20);
    if (entries.length === 0) return last;
    for (const { bytes, epoch, seq } of entries) {
      apply(db, [{ position: { epoch, seq }, recorded: await decode(bytes) }]);
      last = seq;
    }
  }
}

/** Every row of every table, by table; except for what belongs to one data folder. */
export function contentsOf(db: DatabaseSync): Readonly<Record<string, readonly string[]>> {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'written'").all();
  return Object.fromEntries(
    tables.map(({ name }) => {
      const rows = db.prepare(`SELECT * FROM ${String(name)}`).all();
      return [String(name), rows.map((row) => JSON.stringify(row, asText)).sort()];
    }),
  );
}

const asText = (_: string, value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
