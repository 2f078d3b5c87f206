// The log in a PostgreSQL database: one schema with eight tables. Every method is statements that commit by themselves, so that a
// pool of connections in front of the database (PgBouncer, also in statement mode) changes nothing.
import { randomUUID } from "node:crypto";
import pg from "pg";
import {
  LogUnavailable,
  type Contents,
  type End,
  type Entry,
  type Extent,
  type HistoryPart,
  type Leadership,
  type Listed,
  type Log,
  type Logged,
  type Member,
  type Snapshot,
  type Standing,
} from "./log.ts";

/** Name of the schema. */
export const logSchema = "machines_service";

// As long as a lease: a leader that waits longer leads no more.
const answerMs = 2000;
// To remove a long log takes longer, and no member waits for it.
const replaceMs = 3600_000;

const tables = `
  CREATE TABLE IF NOT EXISTS ${logSchema}.leadership (
    id integer PRIMARY KEY CHECK (id = 1), epoch bigint NOT NULL, member text NOT NULL, address text NOT NULL,
    renewal uuid NOT NULL, lease_ms integer NOT NULL
  );
  CREATE TABLE IF NOT EXISTS ${logSchema}.log (
    seq bigint PRIMARY KEY, epoch bigint NOT NULL, schema integer NOT NULL, bytes bytea NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE INDEX IF NOT EXISTS log_at ON ${logSchema}.log USING brin (at);
  CREATE TABLE IF NOT EXISTS ${logSchema}.snapshot (
    seq bigint NOT NULL, attempt uuid NOT NULL, part integer NOT NULL, parts integer NOT NULL, bytes bytea NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (seq, attempt, part)
  );
  CREATE TABLE IF NOT EXISTS ${logSchema}.identity (id integer PRIMARY KEY CHECK (id = 1), bytes bytea NOT NULL);
  CREATE TABLE IF NOT EXISTS ${logSchema}.place (id integer PRIMARY KEY CHECK (id = 1), bytes bytea NOT NULL);
  CREATE TABLE IF NOT EXISTS ${logSchema}.member (
    address text PRIMARY KEY, version text NOT NULL, role text NOT NULL, seq bigint NOT NULL, place bytea,
    at timestamptz NOT NULL
  );
  CREATE TABLE IF NOT EXISTS ${logSchema}.history (
    first bigint PRIMARY KEY, last bigint NOT NULL, at double precision NOT NULL, epoch bigint NOT NULL, bytes bytea NOT NULL
  );
  CREATE TABLE IF NOT EXISTS ${logSchema}.history_draft (attempt uuid NOT NULL, LIKE ${logSchema}.history);
`;

/** Bytes of the history that are read at a time. */
const historyBytes = 2 ** 21;

/** A value of at most a gigabyte is possible; parts of this size keep the memory of both sides small. */
const partBytes = 2 ** 20;

const millis = (time: string): string => `(extract(epoch FROM ${time}) * 1000)::double precision`;

// Parts are missing while one is being stored, or if the member that stored it has ended.
const wholeSnapshots = `SELECT seq, attempt, parts, max(at) AS at, sum(octet_length(bytes)) AS bytes FROM ${logSchema}.snapshot GROUP BY seq, attempt, parts HAVING count(*) = parts`;

const isLeader = (at: number): string => `(SELECT 1 FROM ${logSchema}.leadership WHERE epoch = $${at} FOR SHARE)`;

const insertOnly = (table: "identity" | "place"): string =>
  `INSERT INTO ${logSchema}.${table} AS was (id, bytes) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET bytes = was.bytes RETURNING bytes`;
const partColumns = "(seq, attempt, part, parts, bytes)";
const historyColumns = "first, last, at, epoch, bytes";
const insertPart = `INSERT INTO ${logSchema}.snapshot ${partColumns} VALUES ($1, $2, $3, $4, $5)`;

/** The code of our own error; PostgreSQL has none of this class. */
const anotherLeadership = "MS001";

/** A value in a statement that takes no parameters. Texts are only identifiers of our own. */
const literal = (value: number | string | Uint8Array): string =>
  typeof value === "number"
    ? String(value)
    : typeof value === "string"
      ? `'${value}'`
      : `decode('${Buffer.from(value).toString("hex")}', 'hex')`;

/** The rows of a snapshot. It counts only when its last part is there; another member may store one with the same number meanwhile. */
function* partsOf({ seq, bytes }: Snapshot, attempt: string): Generator<(number | string | Buffer)[]> {
  const parts = Math.max(1, Math.ceil(bytes.length / partBytes));
  for (let part = 0; part < parts; part++)
    yield [seq, attempt, part, parts, Buffer.from(bytes.subarray(part * partBytes, (part + 1) * partBytes))];
}

interface LeadershipRow {
  readonly epoch: string;
  readonly member: string;
  readonly address: string;
  readonly renewal: string;
  readonly leaseMs: number;
}

interface SnapshotRow {
  readonly seq: string;
  readonly attempt: string;
  readonly parts: number;
}

interface LoggedRow {
  readonly seq: string;
  readonly epoch: string;
  readonly schema: number;
  readonly bytes: Buffer;
  readonly at: number;
}

/** The log in the database of a URL. Its tables are created if they are missing. Each request may take `limitMs`. */
export async function openPostgresLog(url: string, limitMs = answerMs): Promise<Log> {
  const log = new PostgresLog(url, limitMs);
  try {
    await log.create();
    return log;
  } catch (error) {
    await log.close();
    throw error;
  }
}

class PostgresLog implements Log {
  readonly #pool: pg.Pool;
  readonly #limitMs: number;

  constructor(url: string, limitMs: number) {
    this.#limitMs = limitMs;
    this.#pool = new pg.Pool({
      connectionString: url,
      max: 4,
      connectionTimeoutMillis: limitMs,
      query_timeout: limitMs,
      keepAlive: true,
      application_name: "machines-service",
    });
    // The pool replaces an idle connection that ends.
    this.#pool.on("error", () => {});
  }

  #query<Row extends pg.QueryResultRow>(sql: string, ...values: unknown[]): Promise<pg.QueryResult<Row>> {
    return this.#ask(sql, values);
  }

  async #ask<Row extends pg.QueryResultRow>(
    text: string,
    values: unknown[],
    ms = this.#limitMs,
  ): Promise<pg.QueryResult<Row>> {
    try {
      return await this.#pool.query<Row>({ text, values, query_timeout: ms } as pg.QueryConfig);
    } catch (error) {
      // What the database refuses because of the statement is an answer.
      if (error instanceof pg.DatabaseError && !isTemporary(error.code)) throw error;
      throw new LogUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
    }
  }

  async create(): Promise<void> {
    const { rows } = await this.#query<{ hasSchema: boolean; hasTables: boolean }>(
      `SELECT to_regnamespace('${logSchema}') IS NOT NULL AS "hasSchema", to_regclass('${logSchema}.history_draft') IS NOT NULL AS "hasTables"`,
    );
    if (rows[0]?.hasTables) return;
    // A user who may not create schemas can use one that was made for it.
    const schema = rows[0]?.hasSchema ? "" : `CREATE SCHEMA IF NOT EXISTS ${logSchema};`;
    // Two members that begin at the same time would both create them.
    await this.#query(`BEGIN; SELECT pg_advisory_xact_lock(hashtext('${logSchema}')); ${schema} ${tables} COMMIT`);
  }

  async leadership(): Promise<Leadership | undefined> {
    const { rows } = await this.#query<LeadershipRow>(
      `SELECT epoch, member, address, renewal, lease_ms AS "leaseMs" FROM ${logSchema}.leadership`,
    );
    const [row] = rows;
    if (row === undefined) return undefined;
    const { epoch, member: id, address, ...lease } = row;
    return { epoch: Number(epoch), leader: { id, address }, ...lease };
  }

  async takeOver(
    from: number,
    { id, address }: Member,
    leaseMs: number,
    renewal?: string,
  ): Promise<number | undefined> {
    const { rows } = await this.#query<{ epoch: string }>(
      `INSERT INTO ${logSchema}.leadership AS was (id, epoch, member, address, renewal, lease_ms)
       SELECT 1, $1::bigint + 1, $2, $3, gen_random_uuid(), $4
       WHERE $1::bigint = 0 OR EXISTS (SELECT 1 FROM ${logSchema}.leadership)
       ON CONFLICT (id) DO UPDATE
         SET epoch = excluded.epoch, member = excluded.member, address = excluded.address,
           renewal = excluded.renewal, lease_ms = excluded.lease_ms
         WHERE was.epoch = $1::bigint AND (was.lease_ms = 0 OR was.renewal = $5::uuid)
           OR was.epoch = $1::bigint + 1 AND was.member = $2
       RETURNING epoch`,
      ...[from, id, address, leaseMs, renewal ?? null],
    );
    return rows[0] && Number(rows[0].epoch);
  }

  async renew(epoch: number, leaseMs: number): Promise<boolean> {
    const sql = `UPDATE ${logSchema}.leadership SET renewal = gen_random_uuid(), lease_ms = $2 WHERE epoch = $1`;
    return (await this.#query(sql, epoch, leaseMs)).rowCount === 1;
  }

  async release(epoch: number): Promise<void> {
    await this.#query(`UPDATE ${logSchema}.leadership SET lease_ms = 0 WHERE epoch = $1`, epoch);
  }

  async append(entries: readonly Entry[]): Promise<boolean> {
    const [first] = entries;
    if (first === undefined) return true;
    // A takeover changes the row of the leadership: it waits for this statement, or this statement finds its epoch gone.
    const sql = `INSERT INTO ${logSchema}.log (seq, epoch, schema, bytes)
      SELECT one.seq, $1, one.schema, one.bytes
      FROM ${isLeader(1)} AS mine, unnest($2::bigint[], $3::integer[], $4::bytea[]) AS one (seq, schema, bytes)
      WHERE (SELECT coalesce(max(seq), 0) FROM ${logSchema}.log) = $5::bigint - 1`;
    const columns = [entries.map(({ seq }) => seq), entries.map(({ schema }) => schema)];
    const bytes = entries.map((entry) => Buffer.from(entry.bytes));
    const { rowCount } = await this.#query(sql, first.epoch, ...columns, bytes, first.seq).catch((error: unknown) => {
      // An earlier attempt whose answer was lost came first.
      if (error instanceof pg.DatabaseError && error.code === "23505")
        throw new LogUnavailable("an earlier attempt to append these entries succeeded", { cause: error });
      throw error;
    });
    if (rowCount === entries.length) return true;
    const { rows } = await this.#query(`SELECT 1 FROM ${logSchema}.leadership WHERE epoch = $1`, first.epoch);
    if (rows.length === 0) return false;
    const { seq } = await this.end();
    if (seq >= first.seq) throw new LogUnavailable("an earlier attempt to append these entries succeeded");
    throw new Error(`entry ${first.seq} cannot be appended: the next one is ${seq + 1}`);
  }

  async read(after: number, most: number, mostBytes: number): Promise<readonly Logged[]> {
    const { rows } = await this.#query<LoggedRow>(
      `SELECT seq, epoch, schema, bytes, at FROM (
         SELECT seq, epoch, schema, bytes, ${millis("at")} AS at,
           sum(length(bytes)) OVER (ORDER BY seq) - length(bytes) AS before
         FROM (SELECT * FROM ${logSchema}.log WHERE seq > $1 ORDER BY seq LIMIT $2) AS next
       ) AS counted WHERE before < $3 ORDER BY seq`,
      after,
      most,
      mostBytes,
    );
    return rows.map(({ seq, epoch, ...row }) => ({ ...row, seq: Number(seq), epoch: Number(epoch) }));
  }

  async replaceAll(epoch: number, { identity, place, last, snapshot, history }: Contents): Promise<boolean> {
    const attempt = randomUUID();
    const parts = [...partsOf({ seq: last.seq, bytes: snapshot }, attempt)];
    const end = parts.pop();
    // Without its last part it does not count yet.
    for (const values of parts) await this.#query(insertPart, ...values);
    const insertDraft = `INSERT INTO ${logSchema}.history_draft (attempt, ${historyColumns}) VALUES ($1, $2, $3, $4, $5, $6)`;
    for await (const part of history)
      await this.#query(insertDraft, attempt, part.first, part.last, part.at, part.epoch, Buffer.from(part.bytes));
    const values = [last.seq, last.epoch, last.schema, last.bytes].map(literal).join(", ");
    const steps = [
      // Members that begin or append wait.
      `LOCK TABLE ${logSchema}.leadership, ${logSchema}.identity, ${logSchema}.log IN EXCLUSIVE MODE`,
      `IF (SELECT coalesce(max(epoch), 0) FROM ${logSchema}.leadership) <> ${literal(epoch)}
         OR ${literal(epoch)} = 0 AND EXISTS (SELECT 1 FROM ${logSchema}.identity)
       THEN RAISE EXCEPTION 'another leadership' USING ERRCODE = '${anotherLeadership}'; END IF`,
      ...["identity", "place", "log", "history"].map((table) => `DELETE FROM ${logSchema}.${table}`),
      `DELETE FROM ${logSchema}.snapshot WHERE attempt <> ${literal(attempt)}`,
      `INSERT INTO ${logSchema}.identity (id, bytes) VALUES (1, ${literal(identity)})`,
      ...(place ? [`INSERT INTO ${logSchema}.place (id, bytes) VALUES (1, ${literal(place)})`] : []),
      `INSERT INTO ${logSchema}.log (seq, epoch, schema, bytes) VALUES (${values})`,
      `INSERT INTO ${logSchema}.snapshot ${partColumns} VALUES (${end?.map(literal).join(", ")})`,
      `INSERT INTO ${logSchema}.history (${historyColumns}) SELECT ${historyColumns} FROM ${logSchema}.history_draft
         WHERE attempt = ${literal(attempt)}`,
      `DELETE FROM ${logSchema}.history_draft`,
    ];
    try {
      await this.#ask(`DO $$ BEGIN ${steps.join("; ")}; END $$`, [], replaceMs);
      return true;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || error.code !== anotherLeadership) throw error;
      for (const table of ["snapshot", "history_draft"])
        await this.#query(`DELETE FROM ${logSchema}.${table} WHERE attempt = $1`, attempt);
      return false;
    }
  }

  async end(): Promise<End> {
    // After a crash a primary shows what its synchronous standby may miss. A change that commits proves that it has what came before.
    const { rows } = await this.#query<{ seq: string; epoch: string }>(
      `WITH proof AS (UPDATE ${logSchema}.leadership SET epoch = epoch)
       SELECT seq, epoch FROM ${logSchema}.log ORDER BY seq DESC LIMIT 1`,
    );
    return { seq: Number(rows[0]?.seq ?? 0), epoch: Number(rows[0]?.epoch ?? 0) };
  }

  async lastBefore(moment: number): Promise<number> {
    const sql = `SELECT coalesce(max(seq), 0) AS seq FROM ${logSchema}.log WHERE at <= to_timestamp($1::double precision / 1000)`;
    return Number((await this.#query<{ seq: string }>(sql, moment)).rows[0]?.seq);
  }

  async extent(): Promise<Extent> {
    const { rows: snapshots } = await this.#query<{ seq: string; bytes: string; at: number }>(
      `SELECT seq, min(bytes) AS bytes, ${millis("min(at)")} AS at FROM (${wholeSnapshots}) AS whole GROUP BY seq ORDER BY seq DESC`,
    );
    const { rows } = await this.#query<{ seq: string; size: string; since: string; now: number }>(
      `SELECT (SELECT coalesce(max(seq), 0) FROM ${logSchema}.log) AS seq, pg_total_relation_size('${logSchema}.log') AS size, ${millis("clock_timestamp()")} AS now,
         (SELECT coalesce(sum(octet_length(bytes)), 0) FROM ${logSchema}.log WHERE seq > $1) AS since`,
      snapshots[0]?.seq ?? 0,
    );
    const { seq, size, since, now } = rows[0] ?? { seq: 0, size: 0, since: 0, now: 0 };
    return {
      ...{ seq: Number(seq), size: Number(size), bytesSince: Number(since), now },
      snapshots: snapshots.map((one) => ({ seq: Number(one.seq), bytes: Number(one.bytes), at: one.at })),
    };
  }

  async addSnapshot(snapshot: Snapshot): Promise<string> {
    const attempt = randomUUID();
    for (const values of partsOf(snapshot, attempt)) await this.#query(insertPart, ...values);
    return attempt;
  }

  async snapshot(id: string): Promise<Snapshot | undefined> {
    const sql = `SELECT seq, attempt, parts FROM (${wholeSnapshots}) AS whole WHERE attempt = $1`;
    const [found] = (await this.#query<SnapshotRow>(sql, id)).rows;
    return found && this.#whole(found);
  }

  async latestSnapshot(seq?: number): Promise<Snapshot | undefined> {
    const { rows } = await this.#query<SnapshotRow>(
      `SELECT seq, attempt, parts FROM (${wholeSnapshots}) AS whole WHERE $1::bigint IS NULL OR seq <= $1::bigint
       ORDER BY seq DESC, attempt LIMIT 1`,
      seq ?? null,
    );
    const [found] = rows;
    // Another member may remove it while it is read, because there is a later one.
    return found && ((await this.#whole(found)) ?? this.latestSnapshot(seq));
  }

  /** The parts of a snapshot together; undefined if it is removed meanwhile. */
  async #whole({ seq, attempt, parts }: SnapshotRow): Promise<Snapshot | undefined> {
    const bytes: Buffer[] = [];
    for (let part = 0; part < parts; part++) {
      const sql = `SELECT bytes FROM ${logSchema}.snapshot WHERE seq = $1 AND attempt = $2 AND part = $3`;
      const [row] = (await this.#query<{ bytes: Buffer }>(sql, seq, attempt, part)).rows;
      if (row === undefined) return undefined;
      bytes.push(row.bytes);
    }
    return { seq: Number(seq), bytes: Buffer.concat(bytes) };
  }

  async removeSnapshot(id: string): Promise<void> {
    await this.#query(`DELETE FROM ${logSchema}.snapshot WHERE attempt = $1`, id);
  }

  async trim(seq: number): Promise<void> {
    await this.#query(
      `DELETE FROM ${logSchema}.log WHERE seq <= $1 AND seq < (SELECT max(seq) FROM ${logSchema}.log)`,
      seq,
    );
    await this.#query(`DELETE FROM ${logSchema}.snapshot WHERE seq < $1`, seq);
  }

  async historyEnd(): Promise<End> {
    const sql = `SELECT last, epoch FROM ${logSchema}.history ORDER BY first DESC LIMIT 1`;
    const { rows } = await this.#query<Record<"last" | "epoch", string>>(sql);
    return { seq: Number(rows[0]?.last ?? 0), epoch: Number(rows[0]?.epoch ?? 0) };
  }

  async addHistory({ first, last, at, epoch, bytes }: HistoryPart): Promise<boolean> {
    // As with an append: a takeover waits, or this finds its epoch gone.
    const sql = `INSERT INTO ${logSchema}.history (${historyColumns})
      SELECT $2::bigint, $3::bigint, $4::double precision, $1, $5::bytea FROM ${isLeader(1)} AS mine
      WHERE (SELECT coalesce(max(last), $2::bigint - 1) FROM ${logSchema}.history) = $2::bigint - 1`;
    if ((await this.#query(sql, epoch, first, last, at, Buffer.from(bytes))).rowCount === 1) return true;
    const { rows } = await this.#query(`SELECT 1 FROM ${logSchema}.leadership WHERE epoch = $1`, epoch);
    if (rows.length === 0) return false;
    const { seq } = await this.historyEnd();
    throw new Error(`entry ${first} of the history cannot follow ${seq}`);
  }

  async readHistory(after: number): Promise<readonly HistoryPart[]> {
    const { rows } = await this.#query<Record<"first" | "last" | "epoch", string> & { at: number; bytes: Buffer }>(
      `SELECT first, last, at, epoch, bytes FROM (
         SELECT *, sum(length(bytes)) OVER (ORDER BY first) - length(bytes) AS before
         FROM (SELECT * FROM ${logSchema}.history WHERE last > $1 ORDER BY first LIMIT 100) AS next
       ) AS counted WHERE before < ${historyBytes} ORDER BY first`,
      after,
    );
    return rows.map(({ first, last, epoch, ...row }) => ({
      ...row,
      first: Number(first),
      last: Number(last),
      epoch: Number(epoch),
    }));
  }

  async trimHistory(last: number, before: number): Promise<void> {
    await this.#query(
      `DELETE FROM ${logSchema}.history WHERE (last <= $1 OR at < $2) AND last < (SELECT max(last) FROM ${logSchema}.history)`,
      last,
      before,
    );
  }

  async #only(table: "identity" | "place"): Promise<Uint8Array | undefined> {
    return (await this.#query<{ bytes: Buffer }>(`SELECT bytes FROM ${logSchema}.${table}`)).rows[0]?.bytes;
  }

  async #addOnly(table: "identity" | "place", bytes: Uint8Array): Promise<Uint8Array> {
    const { rows } = await this.#query<{ bytes: Buffer }>(insertOnly(table), Buffer.from(bytes));
    return rows[0]?.bytes ?? bytes;
  }

  identity(): Promise<Uint8Array | undefined> {
    return this.#only("identity");
  }

  addIdentity(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#addOnly("identity", bytes);
  }

  place(): Promise<Uint8Array | undefined> {
    return this.#only("place");
  }

  addPlace(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#addOnly("place", bytes);
  }

  async setPlace(epoch: number, bytes: Uint8Array): Promise<boolean> {
    // As with an append: a takeover waits, or this finds its epoch gone.
    const sql = `INSERT INTO ${logSchema}.place (id, bytes) SELECT 1, $2::bytea FROM ${isLeader(1)} AS mine
      ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes`;
    return (await this.#query(sql, epoch, Buffer.from(bytes))).rowCount === 1;
  }

  async report({ address, version, role, seq, place }: Standing): Promise<void> {
    await this.#query(
      `INSERT INTO ${logSchema}.member (address, version, role, seq, place, at) VALUES ($1, $2, $3, $4, $5, clock_timestamp())
       ON CONFLICT (address) DO UPDATE
         SET version = excluded.version, role = excluded.role, seq = excluded.seq, place = excluded.place, at = excluded.at`,
      address,
      version,
      role,
      seq,
      place ? Buffer.from(place) : null,
    );
  }

  async members(): Promise<readonly Listed[]> {
    const { rows } = await this.#query<Omit<Listed, "seq" | "place"> & { readonly seq: string; place: Buffer | null }>(
      `SELECT address, version, role, seq, place, abs(extract(epoch FROM clock_timestamp() - at) * 1000)::double precision AS "agoMs"
       FROM ${logSchema}.member ORDER BY address COLLATE "C"`,
    );
    return rows.map(({ place, ...row }) => ({ ...row, seq: Number(row.seq), ...(place ? { place } : {}) }));
  }

  async removeMember(address: string): Promise<boolean> {
    const { rowCount } = await this.#query(`DELETE FROM ${logSchema}.member WHERE address = $1`, address);
    return rowCount === 1;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

/**
 * Whether a code is about the state of the server, and not about the statement: a later attempt, perhaps at another server, may succeed.
 * Classes: connections, a primary that became a standby, rollbacks, resources such as disk space, locks, the operator, and the system.
 */
const isTemporary = (code: string | undefined): boolean => /^(?:08|25|40|53|55|57|58)/.test(code ?? "");
