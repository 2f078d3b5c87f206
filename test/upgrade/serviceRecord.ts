// The record of a data folder that a version of the service has written: its stores as SQL, its other files, and what the service
// answered. Everything in it is made up, keys and tokens too.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { folder } from "./records.ts";

/** A request that only reads, and its answer at the moment of the record. */
export interface Recorded {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  readonly status: number;
  readonly answer: unknown;
}

/** What is recorded beside the stores. */
export interface ServiceRecord {
  /** Milliseconds since 1970: when the answers were given. */
  readonly at: number;
  /** The small files of the folder, by name. */
  readonly files: Readonly<Record<string, string>>;
  /** Tables of which rows are added by hand, because the simulation never needs them. */
  readonly added: readonly string[];
  readonly answers: readonly Recorded[];
}

/** The files of the folder that are recorded as they are. */
const small = ["key", "token", "data-id", "service.db-mark"];

/** The stores of the folder. */
const stores = ["service", "history"] as const;

const recordFile = (name: string, file: string): string => join(folder, name, file);

/** The names of the recorded folders. */
export const recordedFolders = (): string[] =>
  readdirSync(folder).filter((name) => existsSync(recordFile(name, "service.json")));

/** The record with a name: a version, or the schema of one that was never published. */
export const serviceRecordOf = (name: string): ServiceRecord =>
  JSON.parse(readFileSync(recordFile(name, "service.json"), "utf8")) as ServiceRecord;

/** Statements that make a store again. */
export function dump(db: DatabaseSync): string {
  const objects = db
    .prepare(
      "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )
    .all();
  const ofType = (wanted: string): string[] =>
    objects.filter(({ type }) => type === wanted).map(({ sql }) => `${String(sql)};`);
  const tables = objects.filter(({ type }) => type === "table").map(({ name }) => String(name));
  const hasCounters = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").get() !== undefined;
  const counters = hasCounters ? ["DELETE FROM sqlite_sequence;", ...rowsOf(db, "sqlite_sequence")] : [];
  const version = Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
  return `${[
    ...["BEGIN;", ...ofType("table"), ...tables.flatMap((table) => rowsOf(db, table)), ...counters],
    ...[...ofType("index"), ...ofType("trigger"), `PRAGMA user_version = ${version};`, "COMMIT;"],
  ].join("\n")}\n`;
}

/** The rows of a table as statements, in an order that depends only on them. */
function rowsOf(db: DatabaseSync, table: string): string[] {
  const columns = db.prepare(`PRAGMA table_info("${table}")`).all();
  const quoted = columns.map(({ name }) => `quote("${String(name)}")`).join(" || ',' || ");
  return db
    .prepare(`SELECT ${quoted} AS row FROM "${table}"`)
    .all()
    .map(({ row }) => `INSERT INTO "${table}" VALUES(${String(row)});`)
    .toSorted();
}

/** Records a data folder that no service uses. */
export function writeServiceRecord(name: string, data: string, record: Omit<ServiceRecord, "files">): void {
  mkdirSync(join(folder, name), { recursive: true });
  for (const store of stores) {
    // Early versions have no history.
    if (!existsSync(join(data, `${store}.db`))) continue;
    const db = new DatabaseSync(join(data, `${store}.db`), { readOnly: true });
    writeFileSync(recordFile(name, `${store}.sql`), dump(db));
    db.close();
  }
  const files = small
    .filter((file) => existsSync(join(data, file)))
    .map((file) => [file, readFileSync(join(data, file), "utf8")] as const);
  const { at, added, answers } = record;
  const lines = answers.map((one) => JSON.stringify(one)).join(",\n");
  const head = JSON.stringify({ at, files: Object.fromEntries(files), added }, null, 1).slice(0, -2);
  writeFileSync(recordFile(name, "service.json"), `${head},\n "answers": [\n${lines}\n]}\n`);
}

/** Writes a recorded data folder. */
export function restoreServiceRecord(name: string, data: string): void {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  for (const store of stores) {
    if (!existsSync(recordFile(name, `${store}.sql`))) continue;
    const db = new DatabaseSync(join(data, `${store}.db`));
    db.exec("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF");
    db.exec(readFileSync(recordFile(name, `${store}.sql`), "utf8"));
    db.close();
  }
  for (const [file, text] of Object.entries(serviceRecordOf(name).files))
    writeFileSync(join(data, file), text, { mode: 0o600 });
}
