// The history on the disk: an SQLite file of its own, apart from the store, so that changes do not wait for it.
import { existsSync, renameSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { keepPrivate } from "../store/privateFile.ts";
import { isOfFleet, type Entry, type EventEntry, type RequestEntry, type Stored } from "./entry.ts";
import { Rollouts, rolloutTables, type Rollout } from "./rollouts.ts";
import { barsOf, type Bar } from "./timeline.ts";

/** How much is kept. */
export interface Bounds {
  /** Number of entries. */
  readonly entries: number;
  /** Milliseconds. */
  readonly ageMs: number;
}

/** Which entries are wanted. */
export interface EntryQuery {
  /** Slug of the organization; all of them without one. */
  readonly org?: string | undefined;
  readonly app?: string | undefined;
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Which rollouts are wanted, newest first. */
export interface RolloutQuery {
  readonly org: string;
  readonly app?: string | undefined;
  readonly fleet?: string | undefined;
  /** Id of a Machine that it concerns. */
  readonly machine?: string | undefined;
  /** Only those that began before that moment. */
  readonly before?: number | undefined;
  readonly limit: number;
}

/** A rollout with its course. */
export interface RolloutDetail extends Rollout {
  readonly bars: readonly Bar[];
  /** How many Machines it has beyond those with a bar. */
  readonly more: number;
  /** Its requests, oldest first. */
  readonly requests: readonly (RequestEntry & { readonly seq: number })[];
}

const tables = `
  CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, org TEXT NOT NULL, app TEXT, kind TEXT NOT NULL, update_id TEXT,
    data TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS entries_app ON entries (app, at) WHERE app IS NOT NULL;
  CREATE INDEX IF NOT EXISTS entries_update ON entries (update_id, seq) WHERE update_id IS NOT NULL;
  CREATE INDEX IF NOT EXISTS entries_org ON entries (org, seq);
  CREATE INDEX IF NOT EXISTS entries_at ON entries (at);
`;

/** What is removed at a time, so that nobody waits for it. */
const removedAtATime = 2000;
/** Entries between two looks at the bounds. */
const lookEvery = 1000;
/** Bars and requests of one rollout that are shown, and the events that are read for them. */
const mostBars = 500;
const mostEvents = 20_000;
const mostRequests = 500;
const mostRollouts = 20_000;

/** What a history is asked by its service. */
export type Method = "add" | "entries" | "rollouts" | "rollout" | "count";

/** When runs of Pulumi were heard of last. */
interface Heard {
  /** When the service was started: nothing was heard of the others since. */
  readonly begun: number;
  readonly heard: ReadonlyMap<string, number>;
}

interface Row {
  readonly seq: number;
  readonly data: string;
}

const entryOf = ({ seq, data }: Row): Stored => ({ seq, ...(JSON.parse(data) as Entry) });

/** Opens a file; one that is damaged is moved away, and a new one begun. */
function openFile(file: string): { readonly db: DatabaseSync; readonly movedTo: string | undefined } {
  try {
    return { db: prepared(new DatabaseSync(file)), movedTo: undefined };
  } catch (error) {
    if (file === ":memory:" || !existsSync(file)) throw error;
    const movedTo = `${file}.damaged-${Date.now()}`;
    for (const end of ["", "-wal", "-shm"]) if (existsSync(file + end)) renameSync(file + end, movedTo + end);
    return { db: prepared(new DatabaseSync(file)), movedTo };
  }
}

function prepared(db: DatabaseSync): DatabaseSync {
  try {
    // A kill loses nothing that was written; only the loss of power may lose the last moment.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -8000");
    db.exec(tables + rolloutTables);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The history. */
export class HistoryStore {
  readonly #db: DatabaseSync;
  readonly #rollouts: Rollouts;
  readonly #bounds: Bounds;
  /** Where a damaged file was moved to; undefined if it was none. */
  readonly movedTo: string | undefined;
  #sinceLook = lookEvery;

  constructor(file: string, bounds: Bounds) {
    const { db, movedTo } = openFile(file);
    if (file !== ":memory:") for (const end of ["", "-wal", "-shm"]) if (existsSync(file + end)) keepPrivate(file + end);
    this.#db = db;
    this.#rollouts = new Rollouts(db);
    this.#bounds = bounds;
    this.movedTo = movedTo;
  }

  /** Answers its service. */
  answer(method: Method, args: readonly unknown[]): unknown {
    if (method === "add") return this.add((args[0] as string).split("\n"));
    if (method === "count") return this.count;
    if (method === "entries") return this.entries(args[0] as EntryQuery);
    const [now, { begun, heard }] = args.slice(method === "rollouts" ? 1 : 2) as [number, Heard];
    this.settle(now, (update) => heard.get(update) ?? begun);
    if (method === "rollouts") return this.rollouts(args[0] as RolloutQuery);
    return this.rollout(args[0] as string, args[1] as string, now);
  }

  /** Adds entries, each a line of JSON, in one transaction. */
  add(lines: readonly string[]): void {
    const insert = this.#db.prepare(
      "INSERT INTO entries (at, org, app, kind, update_id, data) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      let at = 0;
      for (const line of lines) {
        const entry = JSON.parse(line) as Entry;
        const update = entry.kind === "event" ? (entry.by?.update ?? null) : entry.update;
        insert.run(entry.at, entry.org, entry.app, entry.kind, update, line);
        if (entry.kind === "event") this.#rollouts.happened(entry);
        else if (entry.kind === "rollout") this.#rollouts.report(entry);
        at = entry.at;
      }
      this.#sinceLook += lines.length;
      if (this.#sinceLook >= lookEvery) this.#prune(at);
      this.#db.exec("COMMIT");
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  #prune(now: number): void {
    this.#sinceLook = 0;
    const { entries, ageMs } = this.#bounds;
    const { last } = this.#db.prepare("SELECT coalesce(max(seq), 0) AS last FROM entries").get() as { last: number };
    const oldest = `SELECT seq FROM entries WHERE seq <= ? OR at < ? ORDER BY seq LIMIT ${removedAtATime}`;
    this.#db.prepare(`DELETE FROM entries WHERE seq IN (${oldest})`).run(last - entries, now - ageMs);
    this.#rollouts.prune(now - ageMs, mostRollouts);
  }

  /** Ends the rollouts whose end nobody reports. */
  settle(now: number, heard: (update: string) => number): void {
    this.#rollouts.settle(now, heard);
  }

  /** Number of entries. */
  get count(): number {
    return (this.#db.prepare("SELECT count(*) AS n FROM entries").get() as { n: number }).n;
  }

  /** Entries after a number, oldest first. */
  entries({ org, app, since = 0, after = 0, limit }: EntryQuery): Stored[] {
    const first = this.#db.prepare("SELECT min(seq) AS seq FROM entries WHERE at >= ?").get(since) as {
      seq: number | null;
    };
    if (first.seq === null) return [];
    return (
      this.#db
        .prepare(
          `SELECT seq, data FROM entries WHERE seq > ? AND (? IS NULL OR org = ?) AND (? IS NULL OR app = ?) AND at >= ?
           ORDER BY seq LIMIT ?`,
        )
        .all(
          ...[Math.max(after, since === 0 ? 0 : first.seq - 1), org ?? null, org ?? null],
          ...[app ?? null, app ?? null, since, limit],
        ) as unknown as Row[]
    ).map(entryOf);
  }

  rollouts(query: RolloutQuery): Rollout[] {
    return this.#rollouts.list(query);
  }

  /** One rollout with its course up to now. */
  rollout(org: string, id: string, now: number): RolloutDetail | undefined {
    const found = this.#rollouts.find(org, id);
    if (!found) return undefined;
    const { members, ...rollout } = found;
    const { app, began, ended, backFrom } = rollout;
    const until = Math.max(began, ended ?? now);
    const own = this.#rollouts.machinesOf(id);
    const events = (
      this.#db
        .prepare(
          `SELECT seq, data FROM entries WHERE app = ? AND at BETWEEN ? AND ? AND kind = 'event' AND org = ?
           ORDER BY at, seq LIMIT ${mostEvents}`,
        )
        .all(app, began, until, org) as unknown as Row[]
    )
      .map((row) => JSON.parse(row.data) as EventEntry)
      .filter(({ machine }) => own.has(machine));
    const bars = barsOf({ began, until, backFrom, members: JSON.parse(members) as Bar[], events });
    return {
      ...rollout,
      bars: bars.slice(0, mostBars),
      more: Math.max(0, bars.length - mostBars),
      requests: this.#requestsOf(rollout),
    };
  }

  #requestsOf({ update, app, fleet, urn, org }: Rollout): RolloutDetail["requests"] {
    const rows = this.#db
      .prepare("SELECT seq, data FROM entries WHERE update_id = ? AND app = ? AND kind = 'request' AND org = ? ORDER BY seq LIMIT 5000")
      .all(update, app, org) as unknown as Row[];
    return rows
      .map((row) => entryOf(row) as RequestEntry & { seq: number })
      .filter((one) => one.machine !== null || one.operation.startsWith("machines."))
      .filter((one) => (fleet === null ? !isOfFleet(one.urn) : one.urn === urn))
      .slice(0, mostRequests);
  }

  close(): void {
    this.#db.close();
  }
}
