// Queries that people ask in the console, on real servers: what they answer, what they may do, their bounds, and what is recorded.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addToken } from "../../../service/store/tokens.ts";
import { page, send } from "../console/browser.ts";
import { thoroughTest } from "../../support/thorough.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { callOf, leaderOf, serviceOn, standing } from "../replication/processes.ts";
import { startPostgres } from "../replication/postgres.ts";
import { requestsOfClusters, withServers, rowsOf } from "./servers.ts";

/** A cluster with a table of three items and one user of each role, and a page that may write. */
async function withItems() {
  const lines: string[] = [];
  const log = { write: (line: string) => void lines.push(line) };
  const app = await withServers({ service: { console: "write", log } });
  const ready = await app.cluster();
  const users = `/postgres/${ready.id}/users`;
  for (const role of ["writer", "reader"])
    expect((await app.call("POST", users, { username: role, role })).status).toBe(201);
  const owner = await app.connect(ready);
  await owner.query("CREATE TABLE items (id serial PRIMARY KEY, text text)");
  await owner.query("INSERT INTO items (text) VALUES ('one'), (NULL), ('')");
  const visit = await page(app);
  const at = `/console/api/clusters/${ready.id}`;
  const place = { database: "fly-db", user: "fly-user" };
  return {
    ...{ ...app, ready, owner, visit, at, lines },
    query: (sql: string, more: object = {}) => visit("POST", `${at}/query`, { ...place, sql, ...more }),
    tables: (more: object = {}) => visit("POST", `${at}/tables`, { ...place, ...more }),
    /** The queries in the audit, oldest first. */
    asked: () => app.service.audit.after(0).filter(({ operation }) => operation === "console.query"),
  };
}

test("a query answers its columns and rows, and the audit has who asked what, without the values", async () => {
  const { query, tables, asked, service, lines, data } = await withItems();
  const found = await query(
    "SELECT id, text, id * 1.5 AS price FROM items WHERE text IS DISTINCT FROM 'canary-1' ORDER BY id",
  );
  expect([found.status, found.body]).toEqual([
    200,
    {
      columns: [
        { name: "id", type: "integer" },
        { name: "text", type: "text" },
        { name: "price", type: "numeric" },
      ],
      rows: [
        ["1", "one", "1.5"],
        ["2", null, "3.0"],
        ["3", "", "4.5"],
      ],
      ...{ isMore: false, isCut: false, command: "SELECT", count: 3, ms: expect.any(Number) },
    },
  ]);
  expect((await query("EXPLAIN SELECT * FROM items")).body.columns).toEqual([{ name: "QUERY PLAN", type: "text" }]);
  expect((await query("SHOW server_version")).body.rows).toHaveLength(1);
  expect((await query("  -- nothing")).body).toMatchObject({ columns: [], rows: [], command: "" });
  expect((await query("SELECT 'canary-2' FROM nothing")).body).toEqual({
    error: 'relation "nothing" does not exist',
    ...{ code: "42P01", position: 24 },
  });
  expect((await query("SELECT 1/0 FROM items WHERE text <> 'canary-3'")).body).toMatchObject({
    error: "division by zero",
  });
  expect((await query("SELECT canary_4'")).status).toBe(422);
  expect(asked().map(({ path, status, about }) => [path.split("/").at(-1), status, about])).toEqual([
    [
      "query",
      200,
      "fly-user in fly-db, reads, 3 rows: SELECT id, text, id * $1 AS price FROM items WHERE text IS DISTINCT FROM $2 ORDER BY id",
    ],
    ["query", 200, "fly-user in fly-db, reads, 1 row: EXPLAIN SELECT * FROM items"],
    ["query", 200, "fly-user in fly-db, reads, 1 row: SHOW server_version"],
    ["query", 200, "fly-user in fly-db, reads, 0 rows: nothing"],
    ["query", 422, "fly-user in fly-db, reads"],
    ["query", 422, "fly-user in fly-db, reads, failed: SELECT $1/$2 FROM items WHERE text <> $3"],
    ["query", 422, "fly-user in fly-db, reads"],
  ]);
  expect((await tables()).body).toMatchObject({
    isMore: false,
    tables: [{ schema: "public", name: "items", key: ["id"] }],
  });
  // The service has written everything when it is closed. Its clusters keep their data.
  await service.close();
  expect(lines.join("")).not.toMatch(/canary/);
  for (const file of filesBelow(data).filter((path) => !path.startsWith(join(data, "postgres"))))
    expect([file, /canary/.test(readFileSync(file, "latin1"))]).toEqual([file, false]);
});

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );

test("a query that reads changes nothing, whichever way it tries", async () => {
  const { query, owner, connect, ready } = await withItems();
  await owner.query("CREATE TABLE effects (id serial, text text)");
  await owner.query(`CREATE FUNCTION write_it() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO effects (text) VALUES ('written'); RETURN 1; END $$`);
  await owner.query(`CREATE FUNCTION write_as_owner() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); INSERT INTO effects (text) VALUES ('written'); RETURN 1; END $$`);
  await owner.query(`CREATE PROCEDURE commit_it() LANGUAGE plpgsql AS
    $$ BEGIN COMMIT; INSERT INTO effects (text) VALUES ('written'); COMMIT; END $$`);
  const other = await connect(ready, "writer");
  const { rows } = await other.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const pid = rows[0]?.pid;
  const refused: readonly (readonly [sql: string, why: RegExp])[] = [
    ["INSERT INTO effects (text) VALUES ('written')", /read-only transaction/],
    ["UPDATE items SET text = 'written'", /read-only transaction/],
    ["DELETE FROM items RETURNING *", /read-only transaction/],
    ["WITH gone AS (DELETE FROM items RETURNING *) SELECT * FROM gone", /read-only transaction/],
    ["EXPLAIN ANALYZE DELETE FROM items", /read-only transaction/],
    ["TRUNCATE items", /read-only transaction/],
    ["DROP TABLE items", /read-only transaction/],
    ["CREATE TABLE effects_2 AS SELECT 1", /read-only transaction/],
    ["SELECT * FROM items FOR UPDATE", /read-only transaction/],
    ["CREATE TEMPORARY TABLE own (n int)", /read-only transaction/],
    ["SELECT nextval('effects_id_seq')", /read-only transaction/],
    ["SELECT setval('effects_id_seq', 99)", /read-only transaction/],
    ["ALTER ROLE \"fly-user\" PASSWORD 'mine'", /read-only transaction/],
    ["ALTER SYSTEM SET work_mem = '1GB'", /./],
    ["VACUUM items", /./],
    ["COMMIT; DELETE FROM items", /multiple commands/],
    ["SELECT 1; SELECT 2", /multiple commands/],
    ["ROLLBACK; BEGIN; DELETE FROM items; COMMIT", /multiple commands/],
    ["/* ; */ COMMIT; -- \n DELETE FROM items", /multiple commands/],
    ["DO $$ BEGIN COMMIT; DELETE FROM items; COMMIT; END $$", /invalid transaction termination/],
    ["DO $$ BEGIN ROLLBACK; DELETE FROM items; COMMIT; END $$", /invalid transaction termination/],
    ["DO $$ BEGIN DELETE FROM items; END $$", /read-only transaction/],
    ["DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM items; END $$", /before any query/],
    ["DO $$ BEGIN EXECUTE 'SET transaction_read_only = off'; DELETE FROM items; END $$", /before any query/],
    ["CALL commit_it()", /invalid transaction termination/],
    ["SELECT write_it()", /read-only transaction/],
    ["SELECT write_as_owner()", /before any query|read-only transaction/],
    ["SET TRANSACTION READ WRITE", /before any query/],
    ["SELECT set_config('transaction_read_only', 'off', false)", /before any query/],
    ["SELECT lo_import('/etc/passwd')", /permission denied|read-only transaction/],
    ["SELECT lo_create(0)", /read-only transaction/],
    ["SELECT lo_export(1, '/tmp/canary')", /permission denied/],
    ["SELECT pg_read_file('/etc/passwd')", /permission denied/],
    ["SELECT pg_ls_dir('/')", /permission denied/],
    ["SELECT pg_reload_conf()", /permission denied/],
    ["COPY items TO PROGRAM 'cat > /tmp/canary'", /permission denied/],
    ["COPY items TO '/tmp/canary'", /permission denied/],
    ["COPY items FROM PROGRAM 'id'", /permission denied|read-only/],
    ["COPY items FROM STDIN", /read-only transaction/],
    ["COPY items TO STDOUT", /COPY sends data to a client/],
    ["SELECT * FROM dblink('dbname=fly-db', 'DELETE FROM items') AS t (n int)", /does not exist/],
    ["CREATE EXTENSION dblink", /./],
    ["SET ROLE postgres", /permission denied/],
    ["SET SESSION AUTHORIZATION postgres", /permission denied/],
    [`SELECT pg_terminate_backend(${pid})`, /choose to write/],
    [`SELECT "pg_catalog"."pg_cancel_backend"(${pid})`, /choose to write/],
  ];
  for (const [sql, why] of refused) {
    const { status, body } = await query(sql);
    expect([sql, status, body.error]).toEqual([sql, 422, expect.stringMatching(why)]);
  }
  // These are accepted, and change nothing: what they do ends with their transaction.
  for (const sql of [
    "COMMIT",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "SET statement_timeout = 0",
    "SELECT pg_notify('channel', 'text')",
    "DO $$ BEGIN PERFORM set_config('default_transaction_read_only', 'off', false); END $$",
  ])
    expect([sql, (await query(sql)).status]).toEqual([sql, 200]);
  // Each has a connection of its own, so nothing that one has set is there for the next one.
  expect((await query("DELETE FROM items")).body.error).toMatch(/read-only transaction/);
  // A reader does not end sessions of others, however it is written.
  const hidden = `SELECT * FROM (SELECT query_to_xml('SELECT pg_' || 'terminate_backend(${pid})', true, true, '')) AS t`;
  expect((await query(hidden, { user: "reader" })).body.error).toMatch(/permission denied/);
  expect((await other.query("SELECT 1")).rowCount).toBe(1);
  expect(await rowsOf(owner)).toBe(3);
  const after = "SELECT (SELECT count(*) FROM effects)::int AS rows, is_called FROM effects_id_seq";
  expect((await owner.query(after)).rows).toEqual([{ rows: 0, is_called: false }]);
});

thoroughTest("a query that writes is kept as a whole, or not at all", async () => {
  const { query, owner } = await withItems();
  const write = (sql: string, more: object = {}) => query(sql, { write: true, ...more });
  expect((await write("INSERT INTO items (text) VALUES ('four'), ('five') RETURNING id")).body).toMatchObject({
    ...{ command: "INSERT", count: 2, rows: [["4"], ["5"]] },
  });
  expect((await write("DELETE FROM items WHERE id > 3")).body).toMatchObject({
    columns: [],
    command: "DELETE",
    count: 2,
  });
  // The page shows a thousand rows, and all of them are written.
  await owner.query(
    `CREATE FUNCTION add(n int) RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO items (text) VALUES (n) RETURNING id'`,
  );
  const { body } = await write("SELECT add(n) FROM generate_series(1, 2500) AS n");
  expect([body.rows.length, body.isMore]).toEqual([1000, true]);
  expect(await rowsOf(owner)).toBe(2503);
  expect((await write("SELECT add(n), 1 / (2400 - n) FROM generate_series(1, 2500) AS n")).body.error).toBe(
    "division by zero",
  );
  expect(await rowsOf(owner)).toBe(2503);
  await owner.query("CREATE TABLE parts (item int REFERENCES items DEFERRABLE INITIALLY DEFERRED)");
  expect((await write("INSERT INTO parts VALUES (-1)")).body).toMatchObject({ code: "23503" });
  expect((await write("COPY items FROM STDIN")).body.error).toMatch(/COPY gets no data from here/);
  // The rights are those of its user.
  expect((await write("DELETE FROM items", { user: "reader" })).body).toMatchObject({ code: "42501" });
  expect((await write("UPDATE items SET text = 'seen' WHERE id = 1", { user: "writer" })).body.count).toBe(1);
  expect((await write("CREATE TABLE more (n int)", { user: "writer" })).body.error).toMatch(/permission denied/);
  // What an administrator creates belongs to all of them, as over a connection of their own.
  expect((await write("CREATE TABLE more (n int)")).body.command).toBe("CREATE TABLE");
  expect((await query("SELECT tableowner FROM pg_tables WHERE tablename = 'more'")).body.rows).toEqual([
    ["_schema_admin"],
  ]);
});

thoroughTest("the answer of a query has bounds, whatever the server could send", async () => {
  const { query, asked, ready, get } = await withItems();
  const million = await query("SELECT n, repeat('x', 1000) FROM generate_series(1, 1000000) AS n");
  expect([million.body.rows.length, million.body.isMore]).toEqual([1000, true]);
  const wide = (await query("SELECT repeat('x', 700000) FROM generate_series(1, 5)")).body;
  expect([wide.rows.length, wide.isCut, wide.isMore]).toEqual([5, true, false]);
  expect(wide.rows[0][0]).toHaveLength(50_000);
  const many = (await query("SELECT repeat('x', 40000) FROM generate_series(1, 900)")).body;
  expect([many.rows.length, many.isMore]).toEqual([50, true]);
  for (const sql of ["SELECT repeat('x', 50000000)", "SELECT repeat('x', 1000000) FROM generate_series(1, 100)"])
    expect((await query(sql)).body.error).toMatch(/its rows are too large: a few of them have more than 4 MiB/);
  // The service's own statements are no slow queries, and neither is housekeeping.
  const slow = await get(`/postgres/${ready.id}/queries/slow`);
  const texts = slow.map((one: { query: string }) => one.query).join("\n");
  expect(texts).toContain("generate_series");
  expect(texts).not.toMatch(/machines-service|^(BEGIN|ROLLBACK|COMMIT|DISCARD)/m);
  expect(asked().length).toBe(5);
});

thoroughTest("a query ends with its request or after ten seconds, and only a few run at a time", async () => {
  const { query, at, url, token, asked, call, ready } = await withItems();
  const running = async () => (await call("GET", `/postgres/${ready.id}/queries/active`)).body.data.length;
  const body = { database: "fly-db", user: "fly-user", sql: "SELECT pg_sleep(100), 'canary'", write: true };
  const send = (signal: AbortSignal) =>
    fetch(`${url}${at}/query`, {
      ...{ method: "POST", signal, body: JSON.stringify(body), headers: { authorization: `Bearer ${token}` } },
    }).then(
      ({ status }) => status,
      () => "gone",
    );
  const cancelled = new AbortController();
  const kept = new AbortController();
  const sent = [send(cancelled.signal), send(cancelled.signal), send(kept.signal)];
  await expect.poll(running).toBe(3);
  expect(await query("SELECT 1")).toMatchObject({ status: 429 });
  cancelled.abort();
  expect(await Promise.all(sent.slice(0, 2))).toEqual(["gone", "gone"]);
  await expect.poll(running).toBe(1);
  await expect.poll(async () => (await query("SELECT 1")).status).toBe(200);
  expect(await sent[2]).toBe(422);
  expect(asked().flatMap(({ about, status }) => (about?.includes("pg_sleep") ? [[status, about]] : []))).toEqual([
    [null, "fly-user in fly-db, writes, failed: SELECT pg_sleep($1), $2"],
    [null, "fly-user in fly-db, writes, failed: SELECT pg_sleep($1), $2"],
    [422, "fly-user in fly-db, writes, failed: SELECT pg_sleep($1), $2"],
  ]);
});

thoroughTest("only those query who may see the password of the user", async () => {
  const app = await withItems();
  const { store } = app.service.context;
  addToken(store, "read-only", { slug: "personal", role: "read", expiresAt: null }, 0);
  addToken(store, "stranger", { slug: "strangers", expiresAt: null }, 0);
  for (const token of ["read-only", "stranger"])
    for (const path of ["query", "tables"]) {
      const visit = await page(app, token);
      const body = { database: "fly-db", user: "fly-user", ...(path === "query" ? { sql: "SELECT 1" } : {}) };
      for (const answer of [
        await visit("POST", `${app.at}/${path}`, body),
        await send(app.url, "POST", `${app.at}/${path}`, { body, headers: { authorization: `Bearer ${token}` } }),
      ])
        expect([token, path, answer.status >= 403 && answer.status <= 404]).toEqual([token, path, true]);
    }
  for (const [more, status] of [
    [{ user: "postgres" }, 404],
    [{ user: "_visitor" }, 404],
    [{ user: "_schema_admin" }, 404],
    [{ database: "postgres" }, 404],
    [{ database: "template1" }, 404],
    [{ database: "fly-db options=-crole=postgres" }, 404],
    [{ sql: "SELECT 1\0" }, 400],
    [{ sql: "x".repeat(100_001) }, 400],
    [{ more: 1 }, 400],
  ] as const)
    expect([more, (await app.query("SELECT 1", more)).status]).toEqual([more, status]);
});

thoroughTest(
  "a query at a member that does not lead is answered by the leader, and ends with its request",
  async () => {
    const store = await startPostgres();
    afterThisTest(() => store.remove());
    const service = serviceOn(store.url, "--postgres", "embedded", "--console", "write");
    const members = [await service.start()];
    members.push(await service.start());
    const leader = await leaderOf(members);
    const standby = members.find((one) => one !== leader) ?? leader;
    await expect.poll(async () => (await standing(standby))?.role).toBe("standby");
    const { call, cluster } = { call: callOf(standby), ...requestsOfClusters(callOf(standby)) };
    const { id } = await cluster();
    const ask = (sql: string, signal?: AbortSignal) =>
      fetch(`${standby.url}/console/api/clusters/${id}/query`, {
        ...{ method: "POST", headers: { authorization: `Bearer ${standby.token}` } },
        body: JSON.stringify({ database: "fly-db", user: "fly-user", sql }),
        ...(signal ? { signal } : {}),
      });
    expect(await (await ask("SELECT 1 AS one")).json()).toMatchObject({ rows: [["1"]] });
    const running = async () => (await call("GET", `/postgres/${id}/queries/active`)).body.data.length;
    const cancelled = new AbortController();
    const sent = ask("SELECT pg_sleep(100)", cancelled.signal).catch(() => "gone");
    await expect.poll(running).toBe(1);
    cancelled.abort();
    expect(await sent).toBe("gone");
    await expect.poll(running).toBe(0);
  },
);
