// The history on the disk: an SQLite file of its own, apart from the store, so that changes do not wait for it.
import { existsSync, renameSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { gunzipSync, gzipSync } from "node:zlib";
import type { HistoryPart } from "../replication/log.ts";
import { keepPrivate } from "../store/privateFile.ts";
import { isShown, type Entry, type EventEntry, type OnlyApps, type RequestEntry, type Stored } from "./entry.ts";
import { Points, pointTables, type CourseQuery, type Point } from "./points.ts";
import { Rollouts, rolloutTables, type Rollout, type RolloutQuery } from "./rollouts.ts";
import { barsOf, type Bar } from "./timeline.ts";

/** How much is kept. */
export interface Bounds {
  /** Number of entries. */
  readonly entries: number;
  /** Milliseconds. */
  readonly ageMs: number;
}

/** Where a member's own file is. */
export interface Position {
  /** Number of its last entry. */
  readonly last: number;
  /** The last one that the shared history is known to have. */
  readonly sent: number;
}

/** Which entries are wanted. */
export interface EntryQuery {
  /** Slug of the organization; all of them without one. */
  readonly org?: string | undefined;
  readonly only?: OnlyApps | undefined;
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
  readonly after?: number | undefined;
  readonly limit: number;
}

/** A rollout with its course. */
export interface RolloutDetail extends Rollout {
  readonly bars: readonly Bar[];
  /** How many Machines it has beyond those with a bar. */
  readonly more: number;
  /** Its requests, oldest first. */
  readonly requests: readonly RequestEntry[];
}

// Entries that were written together are one row, because a row for each would take most of the time. `text` has a line of JSON
// for each, `first` and `last` are their numbers.
const tables = `
  CREATE TABLE IF NOT EXISTS packs (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, last_at INTEGER NOT NULL, text TEXT NOT NULL
  );
  -- The last entry that the history of several members is known to have.
  CREATE TABLE IF NOT EXISTS shared (id INTEGER PRIMARY KEY CHECK (id = 1), sent INTEGER NOT NULL);
`;

/** Rows that are removed at a time: other questions wait meanwhile. */
const removedAtATime = 200;
/** Entries of one row. */
const mostInPack = 500;
/** Packs that are sent to other members together, and the characters of their texts. */
const mostSentPacks = 200;
const mostSentText = 2_000_000;
/** Entries between two looks at the bounds. */
const lookEvery = 1000;
/** Bars and requests of one rollout that are shown, and the entries that are read for them. */
const mostBars = 500;
const mostEntries = 20_000;
const mostRequests = 500;
const mostRollouts = 20_000;

/** What a history is asked by its service. */
export type Method =
  | "add"
  | "entries"
  | "rollouts"
  | "rollout"
  | "count"
  | "addPoints"
  | "series"
  | "course"
  | "position"
  | "unsent"
  | "sent"
  | "receive"
  | "forget";

/** What entries that are added together are about. */
export interface About {
  /** When the last of them was. */
  readonly at: number;
  /** Whether a run of Pulumi sent one. */
  readonly isOfUpdate: boolean;
}

/** When runs of Pulumi were heard of last. */
interface Heard {
  /** When the service was started: nothing was heard of the others since. */
  readonly begun: number;
  readonly heard: ReadonlyMap<string, number>;
}

interface Pack {
  readonly first: number;
  readonly text: string;
}

interface SentPack extends Pack {
  readonly last: number;
  readonly at: number;
}

/** A member as JSON has it. */
const member = (name: string, value: string): string => `${JSON.stringify(name)}:${JSON.stringify(value)}`;

/** The entries of a row. */
const entriesIn = ({ first, text }: Pack): Stored[] =>
  text.split("\n").map((line, i) => ({ seq: first + i, ...(JSON.parse(line) as Entry) }));

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
    db.exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -8000",
    );
    db.exec(tables + rolloutTables + pointTables);
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
  readonly #points: Points;
  readonly #insert: StatementSync;
  readonly #bounds: Bounds;
  /** Where a damaged file was moved to; undefined if it was none. */
  readonly movedTo: string | undefined;
  /** Number of the newest entry. */
  #last: number;
  #sinceLook = lookEvery;

  constructor(file: string, bounds: Bounds) {
    const { db, movedTo } = openFile(file);
    if (file !== ":memory:") for (const end of ["", "-wal", "-shm"]) keepPrivate(file + end);
    this.#db = db;
    this.#rollouts = new Rollouts(db);
    this.#points = new Points(db);
    this.#insert = db.prepare("INSERT INTO packs (first, last, last_at, text) VALUES (?, ?, ?, ?)");
    this.#last = (db.prepare("SELECT coalesce(max(last), 0) AS last FROM packs").get() as { last: number }).last;
    this.#bounds = bounds;
    this.movedTo = movedTo;
  }

  /** Answers its service. */
  answer(method: Method, args: readonly unknown[]): unknown {
    if (method === "add") return this.add(args[0] as string, args[1] as About);
    if (method === "count") return this.count;
    if (method === "entries") return this.entries(args[0] as EntryQuery);
    if (method === "addPoints") return this.#points.add(args[0] as number, args[1] as readonly Point[]);
    if (method === "series") return this.#points.names(args[0] as string);
    if (method === "course") return this.#points.course(args[0] as CourseQuery);
    if (method === "position") return this.position;
    if (method === "unsent") return this.partAfter(this.position.sent);
    if (method === "sent") return this.#noteSent(args[0] as number);
    if (method === "receive") return this.receive(args[0] as readonly HistoryPart[]);
    if (method === "forget") return this.forget(args[0] as number);
    const [now, { begun, heard }] = args.slice(method === "rollouts" ? 1 : 2) as [number, Heard];
    this.#rollouts.settle(now, (update) => heard.get(update) ?? begun);
    if (method === "rollouts") return this.#rollouts.list(args[0] as RolloutQuery);
    return this.rollout(args[0] as string, args[1] as string, now);
  }

  /** Adds entries, each a line of JSON, in one transaction. */
  add(text: string, { at, isOfUpdate }: About): void {
    const lines = text.split("\n");
    let last = this.#last;
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      // Most entries are about Machines of no rollout that is under way, and need not be read.
      const isRead = isOfUpdate || this.#rollouts.hasMachines;
      for (let i = 0; i < lines.length; i += mostInPack) {
        const some = lines.slice(i, i + mostInPack);
        const first = last + 1;
        if (isRead) for (const line of some) this.#rollouts.add(JSON.parse(line) as Entry, ++last, line);
        else last += some.length;
        this.#insert.run(first, last, at, some.join("\n"));
      }
      this.#rollouts.flush();
      this.#sinceLook += last - this.#last;
      if (this.#sinceLook >= lookEvery) this.#prune(last, at);
      this.#db.exec("COMMIT");
      this.#last = last;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      // Those in memory have changes that were rolled back.
      this.#rollouts.read();
      throw error;
    }
  }

  /** Where this file is. */
  get position(): Position {
    const row = this.#db.prepare("SELECT sent FROM shared").get() as { sent: number } | undefined;
    return { last: this.#last, sent: row?.sent ?? 0 };
  }

  #noteSent(sent: number): void {
    this.#db
      .prepare("INSERT INTO shared (id, sent) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET sent = excluded.sent")
      .run(sent);
  }

  /** The next entries after a number; undefined if there are none. */
  partAfter(after: number): Omit<HistoryPart, "epoch"> | undefined {
    const packs = this.#db
      .prepare("SELECT first, last, last_at AS at, text FROM packs WHERE first > ? ORDER BY first LIMIT ?")
      .all(after, mostSentPacks) as Iterable<unknown> as readonly SentPack[];
    let size = 0;
    const some = packs.filter((pack, i) => i === 0 || (size += pack.text.length) < mostSentText);
    const [first, last] = [some[0], some.at(-1)];
    if (!first || !last) return undefined;
    const bytes = gzipSync(some.map(({ text }) => text).join("\n"), { level: 1 });
    return { first: first.first, last: last.last, at: last.at, bytes };
  }

  /** Adds what other leaders have sent, in order, with their numbers. */
  receive(parts: readonly HistoryPart[]): void {
    for (const { first, last, at, bytes } of parts) {
      if (last <= this.#last) continue;
      const lines = gunzipSync(bytes).toString().split("\n");
      // What comes before is older than what is kept, or is here already.
      const known = Math.max(0, this.#last - first + 1);
      this.#last = first + known - 1;
      // Noted before: entries of another leader must not be taken for its own that others do not have.
      this.#noteSent(last);
      this.add(lines.slice(known).join("\n"), { at, isOfUpdate: true });
    }
  }

  /** Removes the entries after a number, and what followed from them. */
  forget(after: number): void {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      this.#db.prepare("DELETE FROM packs WHERE first > ?").run(after);
      this.#rollouts.clear();
      const packs = this.#db.prepare("SELECT first, text FROM packs ORDER BY first").iterate();
      for (const { first, text } of packs as Iterable<unknown> as Iterable<Pack>) {
        for (const [i, line] of text.split("\n").entries())
          this.#rollouts.add(JSON.parse(line) as Entry, first + i, line);
        this.#rollouts.flush();
      }
      this.#db.exec("COMMIT");
      this.#last = after;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      this.#rollouts.read();
      throw error;
    }
  }

  #prune(last: number, now: number): void {
    this.#sinceLook = 0;
    const { entries, ageMs } = this.#bounds;
    const oldest = `SELECT first FROM packs ORDER BY first LIMIT ${removedAtATime}`;
    this.#db
      .prepare(`DELETE FROM packs WHERE first IN (${oldest}) AND (last <= ? OR last_at < ?)`)
      .run(last - entries, now - ageMs);
    this.#rollouts.prune(last - entries, now - ageMs, mostRollouts);
  }

  /** Number of entries. */
  get count(): number {
    const sum = "SELECT coalesce(sum(last - first + 1), 0) AS n FROM packs";
    return (this.#db.prepare(sum).get() as { n: number }).n;
  }

  /** Entries after a number, oldest first. */
  entries({ org, only, since = 0, after = 0, limit }: EntryQuery): Stored[] {
    const found: Stored[] = [];
    const packs = this.#db.prepare("SELECT first, text FROM packs WHERE last > ? AND last_at >= ? ORDER BY first");
    // Most are left out by their text, without being read.
    const texts = [...(org === undefined ? [] : [member("org", org)])];
    const ofApps = only && Object.keys(only).map((app) => member("app", app));
    for (const pack of packs.iterate(after, since) as Iterable<unknown> as Iterable<Pack>) {
      if (!texts.every((text) => pack.text.includes(text))) continue;
      if (ofApps && !ofApps.some((text) => pack.text.includes(text))) continue;
      for (const entry of entriesIn(pack)) {
        if (entry.seq <= after || entry.at < since) continue;
        if ((org !== undefined && entry.org !== org) || !isShown(only, entry.app, entry.at)) continue;
        if (found.push(entry) >= limit) return found;
      }
    }
    return found;
  }

  /** One rollout with its course up to now. */
  rollout(org: string, id: string, now: number): RolloutDetail | undefined {
    const found = this.#rollouts.find(org, id);
    if (!found) return undefined;
    const { members, ...rollout } = found;
    const { began, ended, backFrom } = rollout;
    const until = Math.max(began, ended ?? now);
    const entries = this.#rollouts.entriesOf(id, mostEntries);
    const events = entries.filter((entry) => entry.kind === "event" && entry.at <= until) as EventEntry[];
    const bars = barsOf({
      began,
      until,
      isOver: ended !== null,
      backFrom,
      members: JSON.parse(members) as Bar[],
      events,
    });
    const requests = entries.filter((entry) => entry.kind === "request");
    return {
      ...rollout,
      bars: bars.slice(0, mostBars),
      more: Math.max(0, bars.length - mostBars),
      requests: requests.slice(0, mostRequests),
    };
  }

  close(): void {
    this.#db.close();
  }
}
