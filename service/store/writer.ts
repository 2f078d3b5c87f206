// The version of machines-service that wrote a store last, and what an older one says when it cannot read it.
import { readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { docsUrl } from "../../api/docsUrl.ts";
import { version } from "../version.ts";
import { currentSchema, firstSchema } from "./schema.ts";

/** Whether a store is new enough to have it. Every later version keeps this table, because older ones read it. */
const hasWriter = (db: DatabaseSync): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'written_by'").get() !== undefined;

/** The version that wrote a store last; undefined if the store is older than this record. */
export function writerOf(db: DatabaseSync): string | undefined {
  if (!hasWriter(db)) return undefined;
  const found = db.prepare("SELECT version FROM written_by").get()?.["version"];
  return typeof found === "string" ? found : undefined;
}

/** Records this version, inside a transaction. Nothing changes if it is recorded already. */
export function recordWriter(db: DatabaseSync): void {
  if (!hasWriter(db)) return;
  const row = "INSERT INTO written_by VALUES (1, ?)";
  db.prepare(`${row} ON CONFLICT DO UPDATE SET version = excluded.version WHERE version <> excluded.version`).run(
    version,
  );
}

/** The copies beside a store that this version can read, from before its migrations, newest first. */
function readableCopies(file: string): readonly string[] {
  return readdirSync(dirname(file))
    .map((name) => ({ name, schema: Number(/\.backup-(\d+)$/.exec(name)?.[1] ?? Number.NaN) }))
    .filter(({ name, schema }) => name.startsWith(`${basename(file)}.`) && schema <= currentSchema())
    .filter(({ schema }) => schema >= firstSchema)
    .sort((a, b) => b.schema - a.schema)
    .map(({ name }) => name);
}

/** How to install a version, in brackets; nothing if it is unknown. */
const installation = (writer: string | undefined): string =>
  writer === undefined ? "" : ` (npm install --global machines-service@${writer})`;

/** The sentence of a version that needs another one. */
export const otherVersionNeeded = (writer: string | undefined): string =>
  writer === undefined ? "Start the newer version again" : `Start that version again${installation(writer)}`;

/** What wrote a file, and what this version reads. */
function written(db: DatabaseSync, file: string, schema: number): string {
  const writer = writerOf(db);
  const by = writer === undefined ? "a newer machines-service" : `machines-service ${writer}`;
  return `${file} was written by ${by} (schema ${schema}), and this is ${version}, which reads schema ${firstSchema} to ${currentSchema()}.`;
}

/** Why this version cannot import an export. */
export const newerExport = (db: DatabaseSync, file: string, schema: number): string =>
  `${written(db, file, schema)} Import it with that version${installation(writerOf(db))}.`;

/** Why this version cannot read a store, and how to continue. */
export function newerStore(db: DatabaseSync, file: string, schema: number): string {
  const [copy] = readableCopies(file);
  const name = basename(file);
  const back =
    copy === undefined
      ? `restore a backup that ${version} or an older version made (${docsUrl("backups.md")})`
      : `move away ${name} and all files whose name begins with ${name}-, and rename ${copy} to ${name}`;
  return `${written(db, file, schema)} ${otherVersionNeeded(writerOf(db))}. To return to ${version} instead, ${back}: all changes since the upgrade are lost (${docsUrl("upgrades.md#downgrade")}).`;
}
