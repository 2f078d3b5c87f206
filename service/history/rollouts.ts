// Rollouts, from what clients report and from what happened to Machines. One by plain Machines is all that one run of Pulumi changed in
// an App. No client reports its end, so it ends when all of its Machines are at rest.
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import {
  isOfFleet,
  type Entry,
  type EventEntry,
  type RequestEntry,
  type Result,
  type RolloutEntry,
  type OnlyApps,
} from "./entry.ts";
import { continued } from "./exits.ts";
import { barsOf, isAsBefore, isComingUp, isCritical, reasonAfter, type Doing } from "./timeline.ts";

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

/** Which rollouts are wanted, newest first. */
export interface RolloutQuery {
  readonly org: string;
  readonly only?: OnlyApps | undefined;
  readonly fleet?: string | undefined;
  /** Id of a Machine that it concerns. */
  readonly machine?: string | undefined;
  /** Only those that began before that moment, and not before this one. */
  readonly before?: number | undefined;
  readonly since?: number | undefined;
  readonly limit: number;
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
  CREATE INDEX IF NOT EXISTS rollouts_open ON rollouts (began) WHERE ended IS NULL;
  CREATE INDEX IF NOT EXISTS rollouts_ended ON rollouts (ended) WHERE ended IS NOT NULL;
  CREATE TABLE IF NOT EXISTS rollout_machines (
    rollout TEXT NOT NULL REFERENCES rollouts(id) ON DELETE CASCADE, machine TEXT NOT NULL, name TEXT NOT NULL,
    doing TEXT NOT NULL, reason TEXT, PRIMARY KEY (rollout, machine)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS rollout_machines_machine ON rollout_machines (machine);
  -- The entries of a rollout that were written together: their lines, and the number of the last.
  CREATE TABLE IF NOT EXISTS rollout_packs (
    rollout TEXT NOT NULL REFERENCES rollouts(id) ON DELETE CASCADE, last INTEGER NOT NULL, text TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS rollout_packs_rollout ON rollout_packs (rollout, last);
`;

// ASSUMED: a rollout whose client reports its end is interrupted when the client has sent no request for a minute; one by plain Machines
// has ended when all are at rest and its client has sent none for ten seconds, or after five minutes in which nothing happened.
const silentMs = 60_000;
const restMs = 10_000;
const stuckMs = 300_000;

const columns = `id, org, app, fleet, update_id AS "update", urn, token, token_name AS tokenName, strategy, from_image AS "from",
  to_image AS "to", phase, began, ended, result, reason, back_from AS backFrom`;

const busy: readonly Doing[] = ["updating", "starting", "checks", "rolling back", "destroying"];

/**
 * The id of a rollout: a run of Pulumi changes a fleet, or the plain Machines of an App, once. Clients choose the id of the run, and an
 * App of another organization may get the name of one that was deleted, so the organization is a part of it.
 */
const rolloutId = (org: string, update: string, app: string, fleet: string | null): string =>
  [org, update, app, ...(fleet === null ? [] : [fleet])].join(".");

type Row = Omit<Rollout, "machines">;

/** A Machine of a rollout. */
interface Part {
  readonly name: string;
  readonly doing: Doing;
  readonly reason: string | null;
}

/** A rollout that has not ended, as far as entries change it. */
interface Open {
  readonly id: string;
  readonly began: number;
  readonly update: string;
  readonly app: string;
  readonly fleet: string | null;
  readonly urn: string | null;
  isReported: boolean;
  last: number;
  from: string | null;
  to: string | null;
  backFrom: number | null;
  readonly parts: Map<string, Part>;
  /** What the tables do not have yet: Machines, and whether the rollout itself has changed. */
  readonly changed: Set<string>;
  hasChanged: boolean;
  lines: { readonly seq: number; readonly line: string }[];
}

/** Its columns. */
type OpenRow = Pick<Open, "id" | "began" | "update" | "app" | "fleet" | "urn" | "last" | "from" | "to" | "backFrom"> & {
  readonly is_reported: number;
};

const openRows = `SELECT id, update_id AS "update", app, fleet, urn, began, last, from_image AS "from", to_image AS "to",
  back_from AS backFrom, is_reported FROM rollouts WHERE ended IS NULL`;

/** The rollouts in the tables. Those that have not ended are in memory too, because most entries are about Machines of none. */
export class Rollouts {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #open = new Map<string, Open>();
  /** The latest rollout that changes each Machine. */
  readonly #ofMachine = new Map<string, Open>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.read();
  }

  /** Removes all of them. */
  clear(): void {
    this.#db.exec("DELETE FROM rollouts");
    this.read();
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

  /** Reads those that have not ended, oldest first: after the start, and after a transaction that failed. */
  read(): void {
    this.#open.clear();
    this.#ofMachine.clear();
    for (const row of this.#all<OpenRow>(`${openRows} ORDER BY began, rowid`)) this.#opened(row);
  }

  #opened({ is_reported, ...row }: OpenRow): Open {
    const parts = this.#all<Part & { machine: string }>(
      "SELECT machine, name, doing, reason FROM rollout_machines WHERE rollout = ?",
      row.id,
    );
    const open: Open = {
      ...row,
      isReported: is_reported === 1,
      parts: new Map(parts.map(({ machine, ...part }) => [machine, part])),
      changed: new Set(),
      hasChanged: false,
      lines: [],
    };
    this.#open.set(open.id, open);
    for (const machine of open.parts.keys()) this.#ofMachine.set(machine, open);
    return open;
  }

  /** Whether one that has not ended has Machines. */
  get hasMachines(): boolean {
    return this.#ofMachine.size > 0;
  }

  /** Takes an entry, with its number and its line. */
  add(entry: Entry, seq: number, line: string): void {
    const of =
      entry.kind === "event" ? this.#happened(entry) : entry.kind === "request" ? this.#ofRequest(entry) : undefined;
    of?.lines.push({ seq, line });
    if (entry.kind === "rollout") this.#report(entry);
  }

  /** The rollout that a request belongs to, if it has begun. */
  #ofRequest({ update, app, urn, operation }: RequestEntry): Open | undefined {
    if (update === null || !operation.startsWith("machines.")) return undefined;
    const isFleet = isOfFleet(urn);
    for (const open of this.#open.values())
      if (open.update === update && open.app === app && (isFleet ? open.urn === urn : open.fleet === null)) return open;
    return undefined;
  }

  /** Takes a report of a client. */
  #report(entry: RolloutEntry): void {
    const { org, app, fleet, update, at, urn, token, tokenName, strategy, from, to, phase, result, reason } = entry;
    if (app === null || update === null) return;
    const id = rolloutId(org, update, app, fleet);
    this.flush();
    // Another run continues it.
    const others = this.#all<{ id: string; last: number }>(
      "SELECT id, last FROM rollouts WHERE org = ? AND app = ? AND fleet = ? AND ended IS NULL AND id <> ?",
      ...[org, app, fleet, id],
    );
    for (const other of others) this.#end(other.id, other.last, "interrupted", "another update has begun");
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
    if (result !== null) this.#failUnready(id);
    this.#reopen(id);
  }

  /** Reads a rollout again. */
  #reopen(id: string): Open | undefined {
    this.#forget(id);
    const [row] = this.#all<OpenRow>(`${openRows} AND id = ?`, id);
    return row && this.#opened(row);
  }

  #forget(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    for (const machine of open.parts.keys()) if (this.#ofMachine.get(machine) === open) this.#ofMachine.delete(machine);
  }

  /** Takes what happened to a Machine. */
  #happened(event: EventEntry): Open | undefined {
    const { machine, name, at, by, app } = event;
    if (by && by.update !== null && app !== null) {
      const fleet = isOfFleet(by.urn) ? event.fleet : null;
      const open = this.#begun(rolloutId(event.org, by.update, app, fleet), fleet, event);
      if (open && !open.parts.has(machine)) {
        open.parts.set(machine, { name, doing: "waiting", reason: null });
        open.changed.add(machine);
      }
      // What happens to a Machine belongs to the latest rollout that changes it.
      if (open) this.#ofMachine.set(machine, open);
    }
    const open = this.#ofMachine.get(machine);
    const part = open?.parts.get(machine);
    if (!open || !part || (part.doing === "waiting" && isAsBefore(event))) return undefined;
    const course = { began: at, until: at, isOver: true, backFrom: open.backFrom, members: [], events: [event] };
    const now = barsOf(course)[0]?.now ?? part.doing;
    const reason = reasonAfter(event, now, part.reason);
    const isNotReady = open.isReported && isCritical(event) && isComingUp(part.doing);
    const doing = isNotReady ? (part.doing === "rolling back" ? part.doing : "checks") : now;
    open.parts.set(machine, { name: part.name, doing, reason });
    open.changed.add(machine);
    open.last = Math.max(open.last, at);
    open.hasChanged = true;
    return open;
  }

  /** The rollout that a request belongs to, which it begins or opens again; undefined if its client has reported the end. */
  #begun(id: string, fleet: string | null, { org, app, at, by, type, image, from }: EventEntry): Open | undefined {
    if (!by || app === null) return undefined;
    const to = type === "launch" || type === "update" ? image : null;
    let open = this.#open.get(id);
    if (!open) {
      this.#run(
        `INSERT INTO rollouts (id, org, app, fleet, update_id, urn, token, token_name, strategy, phase, began, last, is_reported)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 'rolling out', ?, ?, 0)
         ON CONFLICT (id) DO UPDATE SET ended = iif(is_reported, ended, NULL), result = iif(is_reported, result, NULL),
           reason = iif(is_reported, reason, NULL)`,
        ...[id, org, app, fleet, by.update, by.urn, by.token, by.tokenName, at, at],
      );
      open = this.#reopen(id);
    }
    if (!open) return undefined;
    if ((open.to === null && to !== null) || (open.from === null && from !== undefined)) {
      open.to ??= to;
      open.from ??= from ?? null;
      open.hasChanged = true;
    }
    return open;
  }

  /** Writes what has changed. */
  flush(): void {
    for (const open of this.#open.values()) {
      const { id, last, from, to, parts, changed } = open;
      for (const machine of changed) {
        const { name, doing, reason } = parts.get(machine) ?? { name: "", doing: "waiting", reason: null };
        this.#run("INSERT OR REPLACE INTO rollout_machines VALUES (?, ?, ?, ?, ?)", id, machine, name, doing, reason);
      }
      changed.clear();
      const end = open.lines.at(-1);
      if (end) {
        const text = open.lines.map(({ line }) => line).join("\n");
        this.#run("INSERT INTO rollout_packs VALUES (?, ?, ?)", id, end.seq, text);
        open.lines = [];
      }
      if (!open.hasChanged) continue;
      open.hasChanged = false;
      this.#run("UPDATE rollouts SET last = ?, from_image = ?, to_image = ? WHERE id = ?", last, from, to, id);
    }
  }

  /** Ends those whose end no client reports. `heard` says when a run sent its last request. */
  settle(now: number, heard: (update: string) => number): void {
    for (const { id, update, last, isReported, parts } of [...this.#open.values()]) {
      const lately = Math.max(last, heard(update));
      const silent = now - lately;
      if (isReported) {
        if (silent > silentMs)
          this.#end(id, lately, "interrupted", "its client sent no more requests; the next update continues it");
        continue;
      }
      const some = [...parts.values()].filter(({ doing }) => busy.includes(doing)).length;
      if (silent > (some === 0 ? restMs : stuckMs)) this.#endByMachines(id, last, [...parts.values()], some);
    }
  }

  #endByMachines(id: string, last: number, parts: readonly Part[], some: number): void {
    const bad = parts
      .filter(({ doing, reason }) => doing === "failed" || reason !== null)
      .reduce<Part | undefined>((first, one) => (first && first.name < one.name ? first : one), undefined);
    const reason = bad
      ? `${bad.name}: ${continued(bad.reason ?? "Failed")}`
      : some > 0
        ? `${some === 1 ? "a Machine is" : `${some} Machines are`} not ready`
        : null;
    this.#end(id, last, reason === null ? "succeeded" : "failed", reason);
  }

  /** Those that were coming up and have a reason, such as a critical check, have failed, because nothing follows. */
  #failUnready(id: string): void {
    this.#run(
      "UPDATE rollout_machines SET doing = 'failed' WHERE rollout = ? AND doing IN ('checks', 'rolling back') AND reason IS NOT NULL",
      id,
    );
  }

  #end(id: string, at: number, result: Result, reason: string | null): void {
    this.#failUnready(id);
    this.#run("UPDATE rollouts SET ended = ?, result = ?, reason = ? WHERE id = ?", at, result, reason, id);
    this.#forget(id);
  }

  /** Of an organization, newest first; of some Apps or a fleet, if they are given. */
  list(of: RolloutQuery): Rollout[] {
    const { org, only, fleet, machine, before = Number.MAX_SAFE_INTEGER, since = 0, limit } = of;
    const filters = [
      ["EXISTS (SELECT 1 FROM json_each(?) WHERE key = app AND began >= value)", only && JSON.stringify(only)],
      ["fleet = ?", fleet],
      ["id IN (SELECT rollout FROM rollout_machines WHERE machine = ?)", machine],
    ].filter((filter): filter is [string, string] => filter[1] !== undefined);
    const where = ["org = ?", "began < ?", "began >= ?", ...filters.map(([sql]) => sql)].join(" AND ");
    const values = [org, before, since, ...filters.map(([, value]) => value), limit];
    return this.#all<Row>(
      `SELECT ${columns} FROM rollouts WHERE ${where} ORDER BY began DESC, rowid DESC LIMIT ?`,
      ...values,
    ).map((row) => this.#whole(row));
  }

  /** One of an organization, with the Machines that its fleet had at its beginning. */
  find(org: string, id: string): (Rollout & { readonly members: string }) | undefined {
    const [row] = this.#all<Row & { members: string }>(
      `SELECT ${columns}, members FROM rollouts WHERE org = ? AND id = ?`,
      ...[org, id],
    );
    return row && { ...this.#whole(row), members: row.members };
  }

  /** Its entries, oldest first, at most so many. */
  entriesOf(id: string, most: number): Entry[] {
    const found: Entry[] = [];
    const packs = this.#prepare("SELECT text FROM rollout_packs WHERE rollout = ? ORDER BY last");
    for (const { text } of packs.iterate(id) as Iterable<unknown> as Iterable<{ readonly text: string }>) {
      for (const line of text.split("\n")) found.push(JSON.parse(line) as Entry);
      if (found.length >= most) break;
    }
    return found.slice(0, most);
  }

  #whole<T extends Row>(row: T): T & Rollout {
    const sql = "SELECT doing, count(*) AS n FROM rollout_machines WHERE rollout = ? GROUP BY doing";
    const counts = this.#all<{ doing: Doing; n: number }>(sql, row.id);
    return { ...row, machines: Object.fromEntries(counts.map(({ doing, n }) => [doing, n])) };
  }

  /** Removes what is older than an entry or a moment, and all but the newest ones. */
  prune(upTo: number, before: number, most: number): void {
    this.#run(
      "DELETE FROM rollout_packs WHERE rowid IN (SELECT rowid FROM rollout_packs ORDER BY rowid LIMIT 200) AND last <= ?",
      upTo,
    );
    this.#run("DELETE FROM rollouts WHERE ended < ?", before);
    this.#run(
      "DELETE FROM rollouts WHERE ended IS NOT NULL AND began < (SELECT began FROM rollouts ORDER BY began DESC LIMIT 1 OFFSET ?)",
      most,
    );
  }
}
