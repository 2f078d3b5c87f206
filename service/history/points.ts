// What was measured, at even times: a point has the values of one series at one moment. A worker thread keeps the last hours.
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Milliseconds between two points of a series. */
export const stepMs = 30_000;
/** Milliseconds for which points are kept. */
export const keptMs = 12 * 3_600_000;
/** Points of all series that are kept at most, about 80 MB. With more, the oldest go first. */
const mostPoints = 1_500_000;
/** Values of a point. */
const mostValues = 6;

/** The values of one series at one moment; null for one that is not known. */
export interface Point {
  readonly series: string;
  readonly values: readonly (number | null)[];
}

/** Which points are wanted. */
export interface CourseQuery {
  readonly series: string;
  /** Milliseconds since 1970, both included. */
  readonly from: number;
  readonly to: number;
  /** Moments of the answer at most: several points become one. */
  readonly most: number;
  /** For each value, how several become one. */
  readonly merge: readonly Merge[];
}

/** How several values become one: their mean, or the greatest. */
export type Merge = "mean" | "most";

/** Values in the order of time; null where nothing was measured. */
export interface Course {
  /** Milliseconds since 1970. */
  readonly times: readonly number[];
  readonly values: readonly (readonly (number | null)[])[];
}

const columns = Array.from({ length: mostValues }, (_, i) => `v${i}`);

// In the order of time: points are added at the end and removed at the beginning, wherever their series is.
export const pointTables = `
  CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last_at INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS points (
    at INTEGER NOT NULL, series INTEGER NOT NULL, ${columns.map((name) => `${name} REAL`).join(", ")},
    PRIMARY KEY (at, series)
  ) WITHOUT ROWID;
`;

/** The points in the file of the history. */
export class Points {
  readonly #db: DatabaseSync;
  readonly #note: StatementSync;
  readonly #insert: StatementSync;
  readonly #most: number;
  #count: number;

  constructor(db: DatabaseSync, most = mostPoints) {
    this.#db = db;
    this.#most = most;
    this.#note = db.prepare(
      "INSERT INTO series (name, last_at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last_at = excluded.last_at RETURNING id",
    );
    const marks = ["?", "?", ...columns.map(() => "?")].join(", ");
    this.#insert = db.prepare(`INSERT OR REPLACE INTO points (at, series, ${columns.join(", ")}) VALUES (${marks})`);
    this.#count = (db.prepare("SELECT count(*) AS n FROM points").get() as { n: number }).n;
  }

  /** Adds the points of one moment, and removes old ones. */
  add(at: number, points: readonly Point[]): void {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      for (const { series, values } of points) {
        const { id } = this.#note.get(series, at) as { id: number };
        this.#insert.run(at, id, ...columns.map((_, i) => values[i] ?? null));
      }
      const removed = this.#prune(at, this.#count + points.length);
      this.#db.exec("COMMIT");
      this.#count += points.length - removed;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /** Removes what is too old or too much, whole moments at a time; returns the number of points. */
  #prune(now: number, count: number): number {
    const remove = this.#db.prepare("DELETE FROM points WHERE at < ?");
    // A clock that was set back leaves points of the future.
    let removed = Number(remove.run(now - keptMs).changes);
    removed += Number(this.#db.prepare("DELETE FROM points WHERE at > ?").run(now + keptMs).changes);
    if (count - removed > this.#most) {
      const nth = this.#db
        .prepare("SELECT at FROM points ORDER BY at LIMIT 1 OFFSET ?")
        .get(count - removed - this.#most);
      if (nth) removed += Number(remove.run((nth as { at: number }).at).changes);
    }
    if (removed > 0) this.#db.prepare("DELETE FROM series WHERE last_at < ?").run(now - keptMs);
    return removed;
  }

  /** Names of the series that begin so, in the order of the alphabet. */
  names(prefix: string): string[] {
    const found = this.#db
      .prepare("SELECT name FROM series WHERE name >= ? AND name < ? ORDER BY name")
      .all(prefix, `${prefix}\u{10ffff}`);
    return (found as { name: string }[]).map(({ name }) => name);
  }

  /** The course of one series. */
  course({ series, from, to, most, merge }: CourseQuery): Course {
    const first = Math.ceil(from / stepMs) * stepMs;
    const moments = Math.floor((to - first) / stepMs) + 1;
    const width = Math.max(1, Math.ceil(moments / most)) * stepMs;
    const merged = merge.map((how, i) => `${how === "mean" ? "avg" : "max"}(v${i}) AS v${i}`);
    // Each moment is looked up, because the series of a moment are side by side, and the moments of a series are not.
    const rows = this.#db
      .prepare(
        `WITH RECURSIVE moments (at) AS (SELECT CAST(? AS INTEGER) UNION ALL SELECT at + ${stepMs} FROM moments WHERE at + ${stepMs} <= ?),
           wanted (id) AS (SELECT id FROM series WHERE name = ?)
         SELECT (moments.at - CAST(? AS INTEGER)) / ${width} AS n, ${merged.join(", ")}
           FROM moments LEFT JOIN points ON points.at = moments.at AND points.series = (SELECT id FROM wanted)
          GROUP BY n ORDER BY n`,
      )
      .all(first, to, series, first) as Record<string, number | null>[];
    return {
      times: rows.map(({ n }) => first + (n ?? 0) * width),
      values: merge.map((_, i) => rows.map((row) => row[`v${i}`] ?? null)),
    };
  }
}
