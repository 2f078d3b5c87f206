// The poolers of real Postgres clusters: PgBouncer processes, which follow the users, databases and restarts of their servers.
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { embeddedPostgres, type EmbeddedPostgresOptions } from "../../../service/runtime/postgres/index.ts";
import { findPooler, since } from "../../../service/runtime/postgres/pooler.ts";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { allOr } from "../../support/extent.mts";
import { afterThisTest } from "../../support/leftovers.ts";
import { thoroughTest } from "../../support/thorough.ts";
import { withApp } from "../client.ts";
import { hasLoopback } from "../reachable.ts";

const installed = findPooler();
if (!installed) leaveOut("the poolers of Postgres clusters", "PgBouncer is not installed");
else if (installed.minor < since.killClient)
  leaveOut("poolers that know prepared statements and end single sessions", "PgBouncer is older than 1.24");

interface Address {
  readonly host: string;
  readonly port: number;
}

/** A ready cluster. */
interface Ready {
  readonly id: string;
  readonly endpoints: { readonly primary: Readonly<Record<"direct" | "pooler", Address>> };
}

/** A folder that is removed after the test. */
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "machines pooler-"));
  afterThisTest(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A service with real servers, whose data is in a folder. */
async function setup(data: string, options: Partial<EmbeddedPostgresOptions> = {}) {
  const lines: string[] = [];
  const log = { write: (line: string) => void lines.push(line) };
  const app = await withApp({ data, log, postgres: await embeddedPostgres({ data, ...options }) });
  const { call } = app;
  const get = async (path: string) => (await call("GET", path)).body.data;
  const credentials = (id: string, user = "fly-user"): Promise<{ username: string; password: string }> =>
    get(`/postgres/${id}/users/${user}/credentials`);
  const enter = async ({ endpoints }: Ready, user: string, password: string, database = "fly-db") => {
    const client = new pg.Client({ ...endpoints.primary.pooler, user, password, database });
    client.on("error", () => {});
    afterThisTest(() => client.end().catch(() => {}));
    await client.connect();
    return client;
  };
  return {
    ...app,
    lines,
    get,
    credentials,
    /** Creates a cluster, and waits until it is ready. */
    async cluster(poolMode?: string): Promise<Ready> {
      const more = poolMode === undefined ? {} : { pool_mode: poolMode };
      const wanted = { org_slug: "personal", region: "ams", plan: "basic", ...more };
      const { id } = (await call("POST", "/postgres", wanted)).body.data;
      await expect.poll(async () => (await get(`/postgres/${id}`)).status).toMatch(/ready|failed/);
      const ready = await get(`/postgres/${id}`);
      expect(ready.status, lines.filter((line) => line.includes("reason")).join("")).toBe("ready");
      return ready;
    },
    /** Connects through the pooler, with a password. */
    enter,
    /** Connects through the pooler, with the current password. */
    async connect(ready: Ready, user = "fly-user", database = "fly-db") {
      return enter(ready, user, (await credentials(ready.id, user)).password, database);
    },
  };
}

/** The number of the server process that answers a client. */
const serverOf = async (client: pg.Client): Promise<number> =>
  (await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;

/** The command lines of the processes that belong to a folder. */
const processesOf = (folder: string): string[] =>
  execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(folder) && !line.includes("defunct"));

const poolersOf = (folder: string): string[] => processesOf(folder).filter((line) => line.includes("pgbouncer.ini"));

/** The number of the pooler's process. */
const poolerOf = (data: string, { id }: Ready): number =>
  Number(readFileSync(join(data, "postgres", id, "pooler", "pgbouncer.pid"), "utf8"));

describe.runIf(installed)("a cluster with a pooler", () => {
  test("in the mode transaction, many clients share few connections", async () => {
    const { cluster, connect } = await setup(newFolder());
    const ready = await cluster("transaction");
    const clients = await Promise.all(Array.from({ length: 60 }, () => connect(ready)));
    const servers = new Set((await Promise.all(clients.map((client) => serverOf(client)))).values());
    expect(servers.size).toBeLessThanOrEqual(20);
    // A transaction keeps its connection; the others do not wait for it.
    const [one, other] = clients as [pg.Client, pg.Client];
    await one.query("BEGIN");
    const held = await serverOf(one);
    for (let i = 0; i < 20; i++) expect(await serverOf(other)).not.toBe(held);
    expect(await serverOf(one)).toBe(held);
    await one.query("COMMIT");
  });

  test.runIf(installed && installed.minor >= since.prepare)(
    "in the mode transaction, clients can prepare statements",
    async () => {
      const { cluster, connect } = await setup(newFolder());
      const ready = await cluster("transaction");
      const clients = await Promise.all(Array.from({ length: 5 }, () => connect(ready)));
      const statement = { name: "sum", text: "SELECT $1::int + 1 AS sum, pg_backend_pid() AS pid, pg_sleep(0.01)" };
      const pids = new Set<number>();
      for (let i = 0; i < 5; i++)
        for (const { rows } of await Promise.all(
          clients.map((client) => client.query({ ...statement, values: [i] })),
        )) {
          expect(rows[0].sum).toBe(i + 1);
          pids.add(rows[0].pid);
        }
      expect(pids.size).toBeGreaterThan(1);
    },
  );

  test("in the mode session, which is the default, a client keeps its connection", async () => {
    const { cluster, connect } = await setup(newFolder(), hasLoopback ? { machinesReach: "127.0.0.2" } : {});
    const ready = await cluster();
    if (hasLoopback) expect(ready.endpoints.primary.pooler.host).toBe("127.0.0.2");
    expect(ready.endpoints.primary.pooler.port).not.toBe(ready.endpoints.primary.direct.port);
    const [one, other] = [await connect(ready), await connect(ready)];
    await one.query("SET application_name TO 'kept'");
    const [first, second] = [await serverOf(one), await serverOf(other)];
    expect(first).not.toBe(second);
    expect(await serverOf(one)).toBe(first);
    expect((await one.query("SHOW application_name")).rows).toEqual([{ application_name: "kept" }]);
  });

  test.each(allOr(["session", "transaction"], ["session"]))(
    "in the mode %s, a rotated password is the only one that works",
    async (mode) => {
      const data = newFolder();
      const { call, cluster, connect, credentials, enter } = await setup(data);
      const ready = await cluster(mode);
      const users = `/postgres/${ready.id}/users`;
      const rotate = async (body: object) =>
        expect((await call("POST", `${users}/fly-user/rotate_password`, body)).status).toBe(200);
      const first = await credentials(ready.id);
      expect((await call("POST", users, { username: "other", role: "reader" })).status).toBe(201);
      const other = await connect(ready, "other");
      const open = await connect(ready);
      const [before, idle] = [await serverOf(open), await connect(ready)];
      await rotate({});
      await expect(enter(ready, "fly-user", first.password)).rejects.toThrow(/authentication failed/);
      const second = await credentials(ready.id);
      const between = await enter(ready, "fly-user", second.password);
      await serverOf(between);
      // Open sessions stay unless they are to end.
      if (mode === "session") expect(await serverOf(open)).toBe(before);
      else await serverOf(open);
      await rotate({ kill_sessions: true });
      if (installed && installed.minor >= since.killClient) await serverOf(other);
      for (const client of [open, idle, between]) await expect(client.query("SELECT 1")).rejects.toThrow();
      await expect(enter(ready, "fly-user", second.password)).rejects.toThrow(/authentication failed/);
      await serverOf(await connect(ready));
      const { password } = await credentials(ready.id);
      const folder = join(data, "postgres", ready.id, "pooler");
      const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
      expect(files.join("")).toContain("SCRAM-SHA-256$");
      for (const secret of [first.password, second.password, password]) expect(files.join("")).not.toContain(secret);
    },
  );

  test("users and databases can be used once they are created, and not after their deletion", async () => {
    const { call, cluster, connect, enter, credentials } = await setup(newFolder());
    const ready = await cluster("transaction");
    const path = `/postgres/${ready.id}`;
    await expect(connect(ready, "fly-user", "Orders-2")).rejects.toThrow();
    expect((await call("POST", `${path}/databases`, { name: "Orders-2" })).status).toBe(201);
    expect((await call("POST", `${path}/users`, { username: "reporting", role: "writer" })).status).toBe(201);
    const owner = await connect(ready, "fly-user", "Orders-2");
    await owner.query("CREATE TABLE items (id int)");
    const client = await connect(ready, "reporting", "Orders-2");
    await client.query("INSERT INTO items VALUES (1)");
    // With another role it keeps its session in the pooler.
    expect((await call("PATCH", `${path}/users/reporting`, { role: "reader" })).status).toBe(204);
    await expect(client.query("INSERT INTO items VALUES (2)")).rejects.toThrow(/permission denied/);
    expect((await client.query("SELECT id FROM items")).rows).toEqual([{ id: 1 }]);
    const { password } = await credentials(ready.id, "reporting");
    expect((await call("DELETE", `${path}/users/reporting`)).status).toBe(204);
    await expect(client.query("SELECT 1")).rejects.toThrow();
    await expect(enter(ready, "reporting", password, "Orders-2")).rejects.toThrow();
    expect((await call("DELETE", `${path}/databases/Orders-2`)).status).toBe(200);
    await expect(owner.query("SELECT 1")).rejects.toThrow();
    await expect(connect(ready, "fly-user", "Orders-2")).rejects.toThrow();
    expect((await call("POST", `${path}/databases`, { name: "Orders-2" })).status).toBe(201);
    await serverOf(await connect(ready, "fly-user", "Orders-2"));
  });

  test("it is used again at the same address after its process, or that of the server, was killed", async () => {
    const data = newFolder();
    const { cluster, connect, get } = await setup(data);
    const ready = await cluster();
    const works = () =>
      expect
        .poll(() =>
          connect(ready)
            .then(serverOf)
            .catch(() => 0),
        )
        .toBeGreaterThan(0);
    const client = await connect(ready);
    await client.query("CREATE TABLE items (id int)");
    const killed = poolerOf(data, ready);
    process.kill(killed, "SIGKILL");
    await expect(client.query("SELECT 1")).rejects.toThrow();
    await works();
    expect(poolerOf(data, ready)).not.toBe(killed);
    const postmaster = readFileSync(join(data, "postgres", ready.id, "data", "postmaster.pid"), "utf8");
    process.kill(Number(postmaster.split("\n")[0]), "SIGKILL");
    await works();
    expect((await (await connect(ready)).query("SELECT id FROM items")).rows).toEqual([]);
    expect((await get(`/postgres/${ready.id}`)).endpoints).toEqual(ready.endpoints);
    expect(poolersOf(data)).toHaveLength(1);
  });

  // embedded.test.ts restarts the service of a server, and the next test that of a pooler.
  thoroughTest(
    "it ends with the service, and has the same address after the next start; deletion leaves no process",
    async () => {
      const data = newFolder();
      const first = await setup(data);
      const ready = await first.cluster();
      expect(poolersOf(data)).toHaveLength(1);
      await first.service.close();
      expect(processesOf(data)).toEqual([]);
      const second = await setup(data);
      await expect
        .poll(() =>
          second
            .connect(ready)
            .then(serverOf)
            .catch(() => 0),
        )
        .toBeGreaterThan(0);
      expect((await second.get(`/postgres/${ready.id}`)).endpoints).toEqual(ready.endpoints);
      expect((await second.call("DELETE", `/postgres/${ready.id}`)).status).toBe(202);
      const found = async () => (await second.get("/postgres?org_slug=personal")).length;
      await expect.poll(found).toBe(0);
      await expect.poll(() => processesOf(data)).toEqual([]);
    },
  );

  test("one that outlives the service keeps its clients, and follows the next start", async () => {
    const data = newFolder();
    const first = await setup(data, { outlive: true });
    const ready = await first.cluster("transaction");
    const client = await first.connect(ready);
    await serverOf(client);
    const pooler = poolerOf(data, ready);
    await first.service.close();
    await serverOf(client);
    const second = await setup(data);
    const path = `/postgres/${ready.id}/users/fly-user/rotate_password`;
    await expect.poll(async () => (await second.call("POST", path, { kill_sessions: true })).status).toBe(200);
    await expect(client.query("SELECT 1")).rejects.toThrow();
    await serverOf(await second.connect(ready));
    expect(poolerOf(data, ready)).toBe(pooler);
  });
});

test("without PgBouncer the pooler's address is the server's, and the log says so once", async () => {
  const data = newFolder();
  const { cluster, connect, lines } = await setup(data, { pgbouncer: "none" });
  const ready = await cluster("transaction");
  await cluster();
  expect(ready.endpoints.primary.pooler).toEqual(ready.endpoints.primary.direct);
  await serverOf(await connect(ready));
  expect(poolersOf(data)).toEqual([]);
  expect(lines.filter((line) => line.includes("without PgBouncer"))).toHaveLength(1);
});

/** A program that prints a version. */
function printing(version: string): string {
  const file = join(newFolder(), "pgbouncer");
  writeFileSync(file, `#!/bin/sh\necho '${version}'\n`);
  chmodSync(file, 0o755);
  return file;
}

test.each(["PgBouncer 1.14.0", "PgBouncer 1.24.1\nlibevent 2.1.12"])(
  "a named program is used if it is %s",
  (version) => {
    const program = printing(version);
    expect(findPooler(program)).toEqual({ program, minor: Number(version.slice(12, 14)) });
  },
);

test.each(["PgBouncer version 1.9.0", "psql 17"])("a named program is refused if it is %s", (version) => {
  const program = printing(version);
  expect(() => findPooler(program)).toThrow(
    `--pgbouncer: ${program} is not PgBouncer 1.14 or newer; install it, or use --pgbouncer none`,
  );
});
