// Attacks of clients on the servers of their clusters.
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { pathsOf } from "../../service/runtime/postgres/paths.ts";
import { connect } from "../../service/runtime/postgres/server.ts";
import { sessions } from "../../service/runtime/postgres/sessions.ts";
import { isThorough } from "../support/extent.mts";
import { rowsOf, withServers, type Ready } from "../service/postgres/servers.ts";
import { thoroughTest } from "../support/thorough.ts";

type Servers = Awaited<ReturnType<typeof withServers>>;

/** A schema in front of all others, in which what the service may ask for leads to a function of a client. */
const traps = `
  CREATE SCHEMA evil;
  GRANT USAGE ON SCHEMA evil TO PUBLIC;
  CREATE TABLE evil.victims (name text);
  GRANT INSERT ON evil.victims TO PUBLIC;
  CREATE FUNCTION evil.spring() RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO evil.victims VALUES (session_user);
      BEGIN
        ALTER ROLE "fly-user" SUPERUSER;
      EXCEPTION WHEN insufficient_privilege THEN NULL;
      END;
      RETURN true;
    END $$;
  CREATE VIEW evil.pg_extension AS SELECT * FROM pg_catalog.pg_extension WHERE evil.spring();
  CREATE VIEW evil.pg_namespace AS SELECT * FROM pg_catalog.pg_namespace WHERE evil.spring();
  CREATE VIEW evil.pg_roles AS SELECT * FROM pg_catalog.pg_roles WHERE evil.spring();
  CREATE VIEW evil.pg_shdepend AS SELECT * FROM pg_catalog.pg_shdepend WHERE evil.spring();
  CREATE FUNCTION evil.equal(oid, oid) RETURNS boolean LANGUAGE sql AS
    'SELECT evil.spring() AND $1 OPERATOR(pg_catalog.=) $2';
  CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.equal);
  CREATE FUNCTION evil.differs(name, name) RETURNS boolean LANGUAGE sql AS
    'SELECT evil.spring() AND $1 OPERATOR(pg_catalog.<>) $2';
  CREATE OPERATOR evil.<> (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.differs);
  ALTER DATABASE "fly-db" SET search_path = evil, pg_catalog, public;
  ALTER ROLE ALL IN DATABASE "fly-db" SET search_path = evil, pg_catalog, public`;

/** Nothing of the client's ran for the service, and the client is no superuser. */
async function expectNothingGained(client: pg.Client): Promise<void> {
  await client.query("SET search_path = pg_catalog");
  const victims = await client.query("SELECT DISTINCT name FROM evil.victims WHERE name <> 'fly-user'");
  expect(victims.rows).toEqual([]);
  const { rows } = await client.query("SELECT rolname FROM pg_catalog.pg_roles WHERE rolsuper");
  expect(rows).toEqual([{ rolname: "postgres" }]);
  await expect(client.query("COPY evil.victims FROM PROGRAM 'id'")).rejects.toThrow(/permission denied/);
}

const createUser = async ({ call }: Servers, cluster: string, username: string, role: string): Promise<void> => {
  expect((await call("POST", `/postgres/${cluster}/users`, { username, role })).status).toBe(201);
};

thoroughTest(
  "F62: what a client defines in its database does not run when the service copies or changes it",
  async () => {
    const app = await withServers();
    const { backUp, call, cluster, connect, settled } = app;
    const ready = await cluster();
    const base = `/postgres/${ready.id}`;
    await createUser(app, ready.id, "shop", "writer");
    const client = await connect(ready);
    await client.query(`GRANT CREATE ON SCHEMA public TO shop; CREATE TABLE items (id int)`);
    await (await connect(ready, "shop")).query("CREATE TABLE public.orders (id int)");
    const extensions = `${base}/databases/fly-db/extensions`;
    expect((await call("POST", extensions, { name: "hstore" })).status).toBe(204);
    await client.query(traps);
    // If a removal is interrupted, the database already refuses connections.
    expect((await call("POST", `${base}/databases`, { name: "broken" })).status).toBe(201);
    await asSuperuser(app, ready, "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'broken'");
    const requests = isThorough ? { fork: {}, restore: { backup_id: await backUp(ready.id) } } : { fork: {} };
    for (const [path, body] of Object.entries(requests)) {
      const created = await call("POST", `${base}/${path}`, body);
      expect(created.status).toBe(201);
      const copy = await settled(created.body.data.id);
      expect(copy.status).toBe("ready");
      await expectNothingGained(await connect(copy));
    }
    await client.query('ALTER DATABASE "fly-db" SET role = shop');
    expect((await call("POST", extensions, { name: "citext", schema: "evil", create_schema: true })).status).toBe(204);
    expect((await call("DELETE", `${extensions}/citext?force=true`)).status).toBe(204);
    expect((await call("DELETE", `${base}/users/shop`)).status).toBe(204);
    await expectNothingGained(client);
    const counted = await client.query(
      "SELECT query FROM public.pg_stat_statements WHERE query ~ '^(CREATE|DROP) EXTENSION|^REASSIGN'",
    );
    expect(counted.rows).toEqual([]);
    const owners = await client.query("SELECT tableowner AS name FROM pg_catalog.pg_tables WHERE tablename = 'orders'");
    expect(owners.rows).toEqual([{ name: "_schema_admin" }]);
  },
);

test("F63: no superuser enters a database of clients, not even to install an extension", async () => {
  const { call, cluster, connect } = await withServers();
  const ready = await cluster();
  const extensions = `/postgres/${ready.id}/databases/fly-db/extensions`;
  expect((await call("POST", extensions, { name: "cube" })).status).toBe(204);
  for (const name of ["dblink", "earthdistance", "file_fdw", "pageinspect"])
    expect(await call("POST", extensions, { name })).toMatchObject({
      status: 422,
      body: { error: expect.stringContaining(`the extension "${name}" is not trusted by PostgreSQL`) },
    });
  const { data } = (await call("GET", extensions)).body;
  const names = data.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(["cube", "hstore", "pg_stat_statements", "plpgsql"]));
  expect(names).not.toContain("dblink");
  // The server refuses it before it asks for the password.
  const superuser = new pg.Client({
    ...ready.endpoints.primary.direct,
    user: "postgres",
    password: "",
    database: "fly-db",
  });
  await expect(superuser.connect()).rejects.toThrow(/pg_hba\.conf rejects connection/);
  await expect(connect(ready, "fly-user", "postgres")).rejects.toThrow(/pg_hba\.conf rejects connection/);
  const client = await connect(ready);
  const rights = await client.query(
    "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS any FROM pg_roles WHERE rolname = '_visitor'",
  );
  expect(rights.rows).toEqual([{ any: false }]);
});

/** The rights of an earlier version in a database, and in a server. */
const forgetRights = ["_reader", "_writer"]
  .flatMap((role) => [
    ...["SCHEMAS", "TABLES", "SEQUENCES"].map((kind) => `ALTER DEFAULT PRIVILEGES REVOKE ALL ON ${kind} FROM ${role}`),
    ...["TABLES", "SEQUENCES"].map((kind) => `REVOKE ALL ON ALL ${kind} IN SCHEMA public, shop FROM ${role}`),
    `REVOKE ALL ON SCHEMA public, shop FROM ${role}`,
  ])
  .join("; ");
const asBefore = `
  CREATE ROLE earlier PASSWORD 'SCRAM-SHA-256';
  GRANT pg_read_all_data TO _reader, _writer, _schema_admin;
  GRANT pg_write_all_data TO _writer, _schema_admin;
  REVOKE reader, writer FROM _schema_admin;
  DROP OWNED BY _visitor; DROP ROLE _visitor`;

/** Does something as the role of the service. */
async function asSuperuser({ data }: Servers, { id, endpoints }: Ready, sql: string): Promise<void> {
  const paths = pathsOf(join(data, "postgres", id));
  const admin = await connect(paths, endpoints.primary.direct.port, "postgres", sessions.superuser);
  await admin.query(sql);
  await admin.end();
}

const verifiers = ["SELECT rolpassword FROM pg_authid", "SELECT passwd FROM pg_shadow"];

thoroughTest(
  "F64: no user of a database sees the verifiers of passwords, also of a cluster of an earlier version",
  async () => {
    const first = await withServers();
    const ready = await first.cluster();
    for (const role of ["reader", "writer"]) await createUser(first, ready.id, role, role);
    const owner = await first.connect(ready);
    await owner.query("CREATE SCHEMA shop; CREATE TABLE items (id serial); CREATE TABLE shop.orders (id int)");
    expect((await first.call("POST", `/postgres/${ready.id}/databases`, { name: "closed" })).status).toBe(201);
    const inClosed = await first.connect(ready, "fly-user", "closed");
    await inClosed.query("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int)");
    const expectWalls = async ({ connect }: Pick<Servers, "connect">): Promise<void> => {
      const owner = await connect(ready);
      const users = [await connect(ready, "reader"), await connect(ready, "writer"), await connect(ready)];
      for (const user of users) {
        for (const sql of verifiers) await expect(user.query(sql)).rejects.toThrow(/permission denied/);
        const seen = await user.query(
          "SELECT query FROM pg_stat_activity WHERE query ~ 'SCRAM-SHA' UNION ALL SELECT query FROM pg_stat_statements WHERE query ~ 'SCRAM-SHA'",
        );
        // The question itself has the word.
        expect(seen.rows.filter(({ query }) => /PASSWORD/i.test(query))).toEqual([]);
        await user.query("SELECT * FROM shop.orders");
      }
      const [reader, writer] = users;
      await expect(reader?.query("INSERT INTO items DEFAULT VALUES")).rejects.toThrow(/permission denied/);
      const before = await rowsOf(owner);
      await writer?.query("INSERT INTO items DEFAULT VALUES");
      expect(await rowsOf(reader ?? owner)).toBe(before + 1);
    };
    await expectWalls(first);
    await owner.query(forgetRights);
    await inClosed.query(forgetRights);
    await inClosed.end();
    await owner.query("ALTER DATABASE closed ALLOW_CONNECTIONS false");
    await asSuperuser(first, ready, asBefore);
    const restarted = async ({ service, data }: Servers): Promise<Servers> => {
      await service.close();
      const next = await withServers({ data });
      // The service answers for the server once it has prepared it.
      const answers = async () => (await next.call("GET", `/postgres/${ready.id}/queries/active`)).status;
      await expect.poll(answers).toBe(200);
      return next;
    };
    const second = await restarted(first);
    await expectWalls(second);
    const again = await second.connect(ready);
    await again.query("CREATE TABLE later (id int)");
    expect((await (await second.connect(ready, "reader")).query("SELECT * FROM later")).rows).toEqual([]);
    // A database that was closed gets the rights when it is open, and what is taken away elsewhere stays away.
    await again.query("ALTER DATABASE closed ALLOW_CONNECTIONS true; REVOKE SELECT ON later FROM _reader");
    const ordersInClosed = async ({ connect }: Servers) =>
      (await connect(ready, "reader", "closed")).query("SELECT * FROM shop.orders");
    await expect(ordersInClosed(second)).rejects.toThrow(/permission denied/);
    const third = await restarted(second);
    expect((await ordersInClosed(third)).rows).toEqual([]);
    await expect((await third.connect(ready, "reader")).query("SELECT * FROM later")).rejects.toThrow(
      /permission denied/,
    );
  },
);

thoroughTest("F65: a deleted user is gone, also when a database is read-only or refuses connections", async () => {
  const app = await withServers();
  const { call, cluster, connect, get } = app;
  const ready = await cluster();
  const base = `/postgres/${ready.id}`;
  expect((await call("POST", `${base}/databases`, { name: "closed" })).status).toBe(201);
  const [client, inClosed] = [await connect(ready), await connect(ready, "fly-user", "closed")];
  for (const user of ["one", "two", "three"]) await createUser(app, ready.id, user, "writer");
  await client.query(
    "GRANT CREATE ON SCHEMA public TO one; CREATE TABLE items (id int); GRANT REFERENCES ON items TO one",
  );
  await (await connect(ready, "one")).query("CREATE TABLE own (id int)");
  await inClosed.query("CREATE TABLE items (id int); GRANT REFERENCES ON items TO two");
  await inClosed.end();
  const roles = async (): Promise<string[]> => {
    const { rows } = await client.query("SELECT rolname FROM pg_roles WHERE rolname ~ '^(one|two|three|_removed_.*)$'");
    return rows.map(({ rolname }) => rolname).sort();
  };
  const remove = async (user: string): Promise<void> => {
    expect((await call("DELETE", `${base}/users/${user}`)).status).toBe(204);
    const users = await get(`${base}/users`);
    expect(users.map(({ username }: { username: string }) => username)).not.toContain(user);
  };
  await client.query('ALTER DATABASE "fly-db" SET default_transaction_read_only = on');
  await remove("one");
  expect(await roles()).toEqual(["three", "two"]);
  const owners = await client.query("SELECT tableowner AS name FROM pg_tables WHERE tablename = 'own'");
  expect(owners.rows).toEqual([{ name: "_schema_admin" }]);
  await client.query("ALTER DATABASE closed CONNECTION LIMIT 0");
  const extensions = `${base}/databases/closed/extensions`;
  expect(await call("POST", extensions, { name: "citext" })).toMatchObject({
    status: 422,
    body: { error: 'too many connections for database "closed"' },
  });
  await client.query("ALTER DATABASE closed ALLOW_CONNECTIONS false CONNECTION LIMIT -1");
  await remove("two");
  // What is left of it cannot log in, and goes with the next one.
  expect(await roles()).toEqual([expect.stringMatching(/^_removed_\d+$/), "three"]);
  await client.query("ALTER DATABASE closed ALLOW_CONNECTIONS true");
  await remove("three");
  expect(await roles()).toEqual([]);
});
