// A data folder as the last service wrote it whose store was made by 13 migrations, and a migration that is planted to test how
// such a folder is upgraded.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { seededRandom } from "../../service/index.ts";
import { firstSchema, migrations } from "../../service/store/schema.ts";

/** The content of the old folder, as answers show it. */
export const held = {
  secrets: { ONE: "first", TWO: "second" },
  config: { image: "nginx:2", env: { A: "é\u2028\"'" }, guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 } },
  metadata: { role: "leader" },
  versions: ["01HQ73A7BFFDF1B6WMGHFZZ4E7", "01HQ73A7BFFDF1B6WMGHFZZ4E8"],
  machine: "00000000000001",
} as const;

/** Writes the old folder. Its store is recorded, with a row in every table. */
export function writeOldFolder(data: string): void {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(join(data, "key"), `${Buffer.from(seededRandom("old")(32)).toString("base64")}\n`, { mode: 0o600 });
  const db = new DatabaseSync(join(data, "service.db"));
  db.exec("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF");
  db.exec(readFileSync(join(__dirname, `schema${firstSchema}.sql`), "utf8"));
  db.close();
}

/** A migration that changes in every way: a column and its values, a table of another shape, and an index. */
export const planted = `
  ALTER TABLE apps ADD COLUMN planted TEXT;
  UPDATE apps SET planted = name || '-planted';
  CREATE TABLE new_machines AS SELECT * FROM machines;
  CREATE TABLE new_versions (
    machine TEXT NOT NULL REFERENCES machines(id) ON DELETE CASCADE, version TEXT NOT NULL, size INTEGER NOT NULL,
    metadata TEXT, config TEXT NOT NULL, PRIMARY KEY (version, machine)
  );
  INSERT INTO new_versions SELECT machine, version, size, metadata, config FROM machine_versions;
  DROP TABLE machine_versions;
  ALTER TABLE new_versions RENAME TO machine_versions;
  CREATE INDEX planted_versions ON machine_versions (machine, version);
  DELETE FROM machines;
  INSERT INTO machines SELECT * FROM new_machines;
  DROP TABLE new_machines;
`;

/** Replaces the migrations of the service in this process. Returns how to restore them. */
export function replaceMigrations(steps: readonly string[]): () => void {
  const all = migrations as string[];
  const own = all.splice(0, all.length, ...steps);
  return () => void all.splice(0, all.length, ...own);
}

/** Adds the planted migration to those of the service. Returns how to remove it again. */
export const plantMigration = (): (() => void) => replaceMigrations([...migrations, planted]);

const byText = (a: object, b: object): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

/** The rows of every table of a store. */
export function contents(data: string, name = "service.db"): Record<string, Record<string, unknown>[]> {
  const db = new DatabaseSync(join(data, name), { readOnly: true });
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  const all = tables.map(({ name }) => [
    name,
    db
      .prepare(`SELECT * FROM ${String(name)}`)
      .all()
      .sort(byText),
  ]);
  db.close();
  return Object.fromEntries(all);
}
