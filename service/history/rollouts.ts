// Rollouts, from what clients report and from what happened to Machines. One by plain Machines is all that one run of Pulumi changed in
// an App; nobody reports its end, so it ends when all of its Machines are at rest.
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { isOfFleet, type EventEntry, type Result, type RolloutEntry } from "./entry.ts";
import { barsOf, problemIn, type Doing } from "./timeline.ts";

/** A rollout. */
export interface Rollout {
  readonly id: string;
  readonly org: string;
  readonly app: string;
  /** Null for one by plain Machines. */
  readonly fleet: string | null;
  readonly update: string;
  readonly urn: string | null;
  readonly token: string;
  readonly tokenName: string | null;
  readonly strategy: string | null;
  readonly from: string | null;
  readonly to: string | null;
  readonly phase: string;
  readonly began: number;
  /** Null while it is under way. */
  readonly ended: number | null;
  readonly result: Result | null;
  readonly reason: string | null;
  /** When it began to go back; null if it did not. */
  readonly backFrom: number | null;
  /** Number of its Machines by what they do. */
  readonly machines: Readonly<Partial<Record<Doing, number>>>;
}

/** The tables. */
export const rolloutTables = `
  CREATE TABLE IF NOT EXISTS rollouts (
    id TEXT PRIMARY KEY, org TEXT NOT NULL, app TEXT NOT NULL, fleet TEXT, update_id TEXT NOT NULL, urn TEXT, token TEXT NOT NULL,
    token_name TEXT, strategy TEXT, from_image TEXT, to_image TEXT, phase TEXT NOT NULL, began INTEGER NOT NULL,
    last INTEGER NOT NULL, ended INTEGER, result TEXT, reason TEXT, back_from INTEGER, is_reported INTEGER NOT NULL,
    members TEXT NOT NULL DEFAULT '[]'
  );
  CREATE INDEX IF NOT EXISTS rollouts_org ON rollouts (org, began);
  CREATE INDEX IF NOT EXISTS rollouts_app ON rollouts (org, app, began);
  CREATE INDEX IF NOT EXISTS rollouts_open ON rollouts (ended) WHERE ended IS NULL;
  CREATE TABLE IF NOT EXISTS rollout_machines (
    rollout TEXT NOT NULL REFERENCES rollouts(id) ON DELETE CASCADE, machine TEXT NOT NULL, name TEXT NOT NULL,
    doing TEXT NOT NULL, reason TEXT, PRIMARY KEY (rollout, machine)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS rollout_machines_machine ON rollout_machines (machine);
`;

// ASSUMED: a rollout whose client reports its end is interrupted when the client has sent no request for a minute; one by plain Machines
// has ended when all are at rest and its client has sent none for ten seconds, or after five minutes in which nothing happened.
const silentMs = 60_000;
const restMs = 10_000;
const stuckMs = 300_000;

const columns = `id, org, app, fleet, update_id AS "update", urn, token, token_name AS tokenName, strategy, from_image AS "from",
  to_image AS "to", phase, began, ended, result, reason, back_from AS backFrom`;

const busy = "('updating', 'starting', 'checks', 'rolling back', 'destroying')";

/** The id of a rollout: a run of Pulumi changes a fleet, or the plain Machines of an App, once. */
export const rolloutId = (update: string, app: string, fleet: string | null): string =>
  [update, app, ...(fleet === null ? [] : [fleet])].join(".");

type Row = Omit<Rollout, "machines">;

/** The rollouts in the tables. */
export class Rollouts {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  #prepare(sql: string): StatementSync {
    let found = this.#statements.get(sql);
    if (!found) this.#statements.set(sql, (found = this.#db.prepare(sql)));
    return found;
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    this.#prepare(sql).run(...values);
  }

  #all<T>(sql: string, ...values: SQLInputValue[]): T[] {
    return this.#prepare(sql).all(...values) as T[];
  }

  /** Takes a report of a client. */
  report(entry: RolloutEntry): void {
    const { org, app, fleet, update, at, urn, token, tokenName, strategy, from, to, phase, result, reason } = entry;
    if (app === null || update === null) return;
    const id = rolloutId(update, app, fleet);
    // Another run goes on with it.
    this.#run(
      `UPDATE rollouts SET ended = last, result = 'interrupted', reason = 'another update has begun'
       WHERE org = ? AND app = ? AND fleet = ? AND ended IS NULL AND id <> ?`,
      ...[org, app, fleet, id],
    );
    const ended = result === null ? null : at;
    const backFrom = phase === "rolling back" ? at : null;
    this.#run(
      `INSERT INTO rollouts (id, org, app, fleet, update_id, urn, token, token_name, strategy, from_image, to_image, phase, began, last,
         ended, result, reason, back_from, is_reported, members)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)
       ON CONFLICT (id) DO UPDATE SET phase = excluded.phase, last = excluded.last, ended = excluded.ended, result = excluded.result,
         reason = excluded.reason, back_from = coalesce(back_from, excluded.back_from), is_reported = 1,
         strategy = coalesce(excluded.strategy, strategy), from_image = coalesce(excluded.from_image, from_image),
         to_image = coalesce(excluded.to_image, to_image),
         members = iif(members = '[]', excluded.members, members)`,
      ...[id, org, app, fleet, update, urn, token, tokenName, strategy, from, to, phase, at, at],
      ...[ended, result, reason, backFrom, JSON.stringify(entry.members)],
    );
    for (const { machine, name } of entry.members)
      this.#run("INSERT OR IGNORE INTO rollout_machines VALUES (?, ?, ?, 'waiting', NULL)", id, machine, name);
  }

  /** Takes what happened to a Machine. */
  happened(event: EventEntry): void {
    const { machine, name, at, by, app } = event;
    if (by && by.update !== null && app !== null) {
      const fleet = isOfFleet(by.urn) ? event.fleet : null;
      const id = rolloutId(by.update, app, fleet);
      this.#begin(id, fleet, event);
      this.#run("INSERT OR IGNORE INTO rollout_machines VALUES (?, ?, ?, 'waiting', NULL)", id, machine, name);
    }
    // What happens to a Machine belongs to the latest rollout that changes it.
    const [open] = this.#all<{ id: string; doing: Doing; reason: string | null; back: number | null }>(
      `SELECT r.id, m.doing, m.reason, r.back_from AS back FROM rollout_machines m JOIN rollouts r ON r.id = m.rollout
       WHERE m.machine = ? AND r.ended IS NULL ORDER BY r.began DESC, r.rowid DESC LIMIT 1`,
      machine,
    );
    if (!open || (open.doing === "waiting" && event.type === "checks" && event.checks === "passing")) return;
    const { id, doing, reason, back } = open;
    const [bar] = barsOf({ began: at, until: at, backFrom: back, members: [], events: [event] });
    const isWell = bar?.now === "healthy" || bar?.now === "rolled back";
    const now = problemIn(event) ?? (isWell ? null : reason);
    const sql = "UPDATE rollout_machines SET doing = ?, reason = ? WHERE rollout = ? AND machine = ?";
    this.#run(sql, bar?.now ?? doing, now, id, machine);
    this.#run("UPDATE rollouts SET last = max(last, ?) WHERE id = ?", at, id);
  }

  #begin(id: string, fleet: string | null, { org, app, at, by, type, image, from }: EventEntry): void {
    if (!by || app === null) return;
    const to = type === "launch" || type === "update" ? image : null;
    // A new request of the same run opens it again.
    this.#run(
      `INSERT INTO rollouts (id, org, app, fleet, update_id, urn, token, token_name, strategy, from_image, to_image, phase, began, last,
         is_reported) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, 'rolling out', ?, ?, 0)
       ON CONFLICT (id) DO UPDATE SET to_image = coalesce(to_image, excluded.to_image),
         from_image = coalesce(from_image, excluded.from_image),
         ended = iif(is_reported, ended, NULL), result = iif(is_reported, result, NULL), reason = iif(is_reported, reason, NULL)`,
      ...[id, org, app, fleet, by.update, by.urn, by.token, by.tokenName, from ?? null, to, at, at],
    );
  }

  /** Ends those whose end nobody reports. `heard` says when a run was heard of last. */
  settle(now: number, heard: (update: string) => number): void {
    const open = this.#all<{ id: string; update: string; last: number; is_reported: number; busy: number }>(
      `SELECT id, update_id AS "update", last, is_reported,
         (SELECT count(*) FROM rollout_machines m WHERE m.rollout = r.id AND m.doing IN ${busy}) AS busy
       FROM rollouts r WHERE ended IS NULL`,
    );
    for (const { id, update, last, is_reported, busy: some } of open) {
      const lately = Math.max(last, heard(update));
      const silent = now - lately;
      if (is_reported === 1) {
        if (silent > silentMs)
          this.#end(id, lately, "interrupted", "its client sent no more requests; the next update goes on with it");
      } else if (silent > (some === 0 ? restMs : stuckMs)) this.#endByMachines(id, last, some);
    }
  }

  #endByMachines(id: string, last: number, some: number): void {
    const [bad] = this.#all<{ name: string; reason: string | null; doing: Doing }>(
      `SELECT name, reason, doing FROM rollout_machines WHERE rollout = ? AND (doing = 'failed' OR reason IS NOT NULL) ORDER BY name`,
      id,
    );
    const reason = bad
      ? `${bad.name}: ${bad.reason ?? "failed"}`
      : some > 0
        ? `${some === 1 ? "a Machine is" : `${some} Machines are`} not ready`
        : null;
    this.#end(id, last, reason === null ? "succeeded" : "failed", reason);
  }

  #end(id: string, at: number, result: Result, reason: string | null): void {
    this.#run("UPDATE rollouts SET ended = ?, result = ?, reason = ? WHERE id = ?", at, result, reason, id);
  }

  /** Of an organization, newest first; of one App or fleet, if they are given. */
  list(of: {
    readonly org: string;
    readonly app?: string | undefined;
    readonly fleet?: string | undefined;
    readonly machine?: string | undefined;
    readonly before?: number | undefined;
    readonly limit: number;
  }): Rollout[] {
    const { org, app, fleet, machine, before = Number.MAX_SAFE_INTEGER, limit } = of;
    const filters = [
      ["app = ?", app],
      ["fleet = ?", fleet],
      ["id IN (SELECT rollout FROM rollout_machines WHERE machine = ?)", machine],
    ].filter((filter): filter is [string, string] => filter[1] !== undefined);
    const where = ["org = ?", "began < ?", ...filters.map(([sql]) => sql)].join(" AND ");
    const values = [org, before, ...filters.map(([, value]) => value), limit];
    return this.#all<Row>(`SELECT ${columns} FROM rollouts WHERE ${where} ORDER BY began DESC, rowid DESC LIMIT ?`, ...values).map(
      (row) => this.#whole(row),
    );
  }

  /** One of an organization, with the Machines that its fleet had at its beginning. */
  find(org: string, id: string): (Rollout & { readonly members: string }) | undefined {
    const [row] = this.#all<Row & { members: string }>(
      `SELECT ${columns}, members FROM rollouts WHERE org = ? AND id = ?`,
      ...[org, id],
    );
    return row && { ...this.#whole(row), members: row.members };
  }

  /** Ids of its Machines. */
  machinesOf(id: string): ReadonlySet<string> {
    const sql = "SELECT machine FROM rollout_machines WHERE rollout = ?";
    return new Set(this.#all<{ machine: string }>(sql, id).map(({ machine }) => machine));
  }

  #whole<T extends Row>(row: T): T & Rollout {
    const sql = "SELECT doing, count(*) AS n FROM rollout_machines WHERE rollout = ? GROUP BY doing";
    const counts = this.#all<{ doing: Doing; n: number }>(sql, row.id);
    return { ...row, machines: Object.fromEntries(counts.map(({ doing, n }) => [doing, n])) };
  }

  /** Removes those that ended before a moment, and all but the newest ones. */
  prune(before: number, most: number): void {
    this.#run("DELETE FROM rollouts WHERE ended < ?", before);
    this.#run(
      `DELETE FROM rollouts WHERE ended IS NOT NULL AND began < (SELECT began FROM rollouts ORDER BY began DESC LIMIT 1 OFFSET ?)`,
      most,
    );
  }
}

