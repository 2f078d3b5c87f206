// Managed Postgres clusters (docs/interface.md#managed-postgres, docs/interface.md#cluster-states,
// docs/interface.md#errors).
import { expect, test } from "vitest";
import { SimulatedPostgres } from "../../../service/runtime/simulatedPostgres.ts";
import { onceInFile } from "../../support/leftovers.ts";
import { callerWith, withApp, withStillClock, type Answer } from "../client.ts";

const at = "/postgres";
const rfc3339 = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const wanted = { org_slug: "personal", region: "ams", plan: "basic" };

type App = Awaited<ReturnType<typeof withApp>>;

const create = ({ call }: Pick<App, "call">, more: object = {}) => call("POST", at, { ...wanted, ...more });
const list = async ({ call }: Pick<App, "call">, query = "") =>
  (await call("GET", `${at}?org_slug=personal${query}`)).body.data;

/** An App with a ready cluster. */
async function setup(more: object = {}) {
  const app = await withApp();
  const { id } = (await create(app, { name: "db", ...more })).body.data;
  return { ...app, id, one: `${at}/${id}` };
}

/** The same cluster for all tests that leave it as it was. A real one takes half a minute to create. */
const shared = onceInFile(() => setup());

/** Databases have their own error body: only one sentence. */
function expectRefused({ status, body }: Answer, expected: number, text: unknown = expect.any(String)): void {
  expect([status, body]).toEqual([expected, { error: text }]);
}

const [deleting, deleted] = ["This cluster is being deleted", "This cluster has been deleted"];

// --- lifecycle ---

test("a cluster is accepted with 201, and is creating, initializing, ready", async () => {
  const app = await withStillClock();
  const made = await create(app, { name: "db" });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    data: {
      id: expect.any(String),
      name: "db",
      region: "ams",
      plan: "basic",
      status: "creating",
      organization: { name: "Personal", slug: "personal" },
      cpu_kind: "shared",
      cpus: 2,
      memory_mb: 1024,
      disk_size_gb: 10,
      replicas: expect.any(Number),
      pg_major_version: expect.stringMatching(/^1[67]$/),
      postgis_enabled: false,
      endpoints: {},
      attached_apps: [],
      created_at: "2026-01-01T00:00:00Z",
      storage_provisioned_bytes: 10 * 2 ** 30,
      storage_used_bytes: null,
    },
  });
  const { id } = made.body.data;
  const seen: string[] = [];
  const look = async () => {
    const { status } = (await app.call("GET", `${at}/${id}`)).body.data;
    if (seen.at(-1) !== status) seen.push(status);
    app.clock.advance(100);
    return status;
  };
  await expect.poll(look, { interval: 1 }).toBe("ready");
  expect(seen).toEqual(["creating", "initializing", "ready"]);
  const endpoint = { host: expect.stringMatching(/^[a-z0-9.-]+$/), port: expect.any(Number) };
  const { endpoints } = (await app.call("GET", `${at}/${id}`)).body.data;
  expect(endpoints).toEqual({ primary: { direct: endpoint, pooler: endpoint } });
});

test("a simulated cluster has one host for direct connections and one for the pool", async () => {
  const { call, one } = await shared();
  const { direct, pooler } = (await call("GET", one)).body.data.endpoints.primary;
  expect([direct.port, pooler.port]).toEqual([5432, 5432]);
  expect(direct.host).not.toBe(pooler.host);
});

test("a cluster's storage is measured within an hour", async () => {
  const app = await withStillClock();
  const { id } = (await create(app)).body.data;
  const used = async () => (await app.call("GET", `${at}/${id}`)).body.data.storage_used_bytes;
  expect(await used()).toBe(null);
  app.clock.advance(10_000);
  await used();
  app.clock.advance(3600_000);
  await expect.poll(used).toBeGreaterThan(0);
});

test("a simulated cluster's storage is null before that", async () => {
  const app = await withStillClock();
  const { id } = (await create(app)).body.data;
  app.clock.advance(3500_000);
  expect((await app.call("GET", `${at}/${id}`)).body.data.storage_used_bytes).toBe(null);
});

test("a cluster that cannot be created is failed, and can be deleted", async () => {
  const app = await withStillClock();
  const { id } = (await create(app, { name: "db-simulate-fail" })).body.data;
  app.clock.advance(60_000);
  expect((await app.call("GET", `${at}/${id}`)).body.data).toMatchObject({ status: "failed", endpoints: {} });
  expect((await app.call("DELETE", `${at}/${id}`)).status).toBe(202);
  app.clock.advance(60_000);
  expectRefused(await app.call("GET", `${at}/${id}`), 410, deleted);
});

test("a cluster that is never ready stays initializing, and can be deleted", async () => {
  const app = await withStillClock();
  const { id } = (await create(app, { name: "db-simulate-stuck" })).body.data;
  app.clock.advance(3600_000);
  expect((await app.call("GET", `${at}/${id}`)).body.data.status).toBe("initializing");
  await app.call("DELETE", `${at}/${id}`);
  app.clock.advance(60_000);
  expectRefused(await app.call("GET", `${at}/${id}`), 410, deleted);
});

test("a creation that fails immediately is 400", async () => {
  const app = await withApp();
  expectRefused(await create(app, { name: "db-simulate-refuse" }), 400);
  expect(await list(app)).toEqual([]);
});

test("deleting is 202 without a body and finishes later; other requests about the cluster are then 410", async () => {
  const app = await withStillClock();
  const { id } = (await create(app, { name: "db" })).body.data;
  app.clock.advance(10_000);
  const answer = await app.call("DELETE", `${at}/${id}`);
  expect([answer.status, answer.text]).toEqual([202, ""]);
  const everything = [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/attachments", { app_name: "web" }],
    ["DELETE", "/attachments/web"],
    ["GET", "/databases"],
    ["POST", "/databases", { name: "a" }],
    ["DELETE", "/databases/fly-db"],
    ["GET", "/databases/fly-db/extensions"],
    ["POST", "/databases/fly-db/extensions", { name: "hstore" }],
    ["DELETE", "/databases/fly-db/extensions/hstore"],
    ["GET", "/users"],
    ["POST", "/users", { username: "a", role: "reader" }],
    ["PATCH", "/users/a", { role: "reader" }],
    ["DELETE", "/users/a"],
    ["GET", "/users/fly-user/credentials"],
    ["GET", "/queries/active"],
    ["GET", "/queries/slow"],
    ["POST", "/users/fly-user/rotate_password"],
    ["GET", "/backups"],
    ["POST", "/backups", { type: "full" }],
    ["POST", "/restore", { backup_id: "x" }],
    ["POST", "/fork"],
  ] as const;
  for (const text of [deleting, deleted]) {
    for (const [method, path, body] of everything) {
      const refused = await app.call(method, `${at}/${id}${path}`, body);
      expect([path, refused.status, refused.body]).toEqual([path, 410, { error: text }]);
    }
    app.clock.advance(10_000);
  }
});

test("a deleted cluster is listed only on request, with the time of its deletion", async () => {
  const app = await withStillClock();
  const { id } = (await create(app, { name: "db" })).body.data;
  app.clock.advance(10_000);
  await app.call("DELETE", `${at}/${id}`);
  expect(await list(app)).toMatchObject([{ id, status: "deleting" }]);
  app.clock.advance(10_000);
  expect(await list(app)).toEqual([]);
  expect(await list(app, "&include_deleted=false")).toEqual([]);
  expect(await list(app, "&include_deleted=true")).toEqual([
    {
      id,
      name: "db",
      region: "ams",
      plan: "basic",
      status: "deleted",
      created_at: rfc3339,
      deleted_at: rfc3339,
      attached_apps: [],
    },
  ]);
});

// --- list and create ---

test("the list is a summary: no endpoints, no sizes", async () => {
  const app = await setup();
  await create(app, { name: "second" });
  const found = await list(app);
  expect(found.map(({ name }: { name: string }) => name)).toEqual(["db", "second"]);
  expect(Object.keys(found[0]).sort()).toEqual([
    "attached_apps",
    "created_at",
    "id",
    "name",
    "plan",
    "region",
    "status",
  ]);
});

test("a fork of a cluster with the longest name gets a valid name", async () => {
  const app = await withApp();
  const made = await app.call("POST", at, { org_slug: "personal", region: "ams", plan: "basic", name: "n".repeat(63) });
  const fork = await app.call("POST", `${at}/${made.body.data.id}/fork`);
  expect([fork.status, fork.body.data.name]).toEqual([201, `${"n".repeat(58)}-fork`]);
});

test("listing: org_slug is required, the organization must exist, include_deleted is true or false", async () => {
  const { call } = await withApp();
  expectRefused(await call("GET", at), 400);
  expectRefused(await call("GET", `${at}?org_slug=nobody`), 404, "organization not found");
  for (const value of ["perhaps", "2", "TRUE", "1", "0", ""])
    expectRefused(await call("GET", `${at}?org_slug=personal&include_deleted=${value}`), 422);
  for (const value of ["true", "false"])
    expect((await call("GET", `${at}?org_slug=personal&include_deleted=${value}`)).status).toBe(200);
});

test.each([
  ["no organization", { org_slug: undefined }, 400],
  ["an unknown organization", { org_slug: "nobody" }, 404],
  ["no region", { region: undefined }, 422],
  ["an unknown region", { region: "zzz" }, 422],
  ["a region without Postgres", { region: "jnb" }, 422],
  ["no plan", { plan: undefined }, 422],
  ["an unknown plan", { plan: "huge" }, 422],
  ["too small a disk", { disk_size_gb: 9 }, 422],
  ["too large a disk", { disk_size_gb: 1001 }, 422],
  ["a disk size as text", { disk_size_gb: "ten" }, 422],
  ["an unknown version", { pg_major_version: "15" }, 422],
  ["an unknown pool mode", { pool_mode: "statement" }, 422],
  ["PostGIS as text", { postgis_enabled: "yes" }, 422],
  ["an invalid name", { name: "No Good" }, 422],
  ["a name of another type", { name: 5 }, 422],
])("a cluster with %s is refused", async (_, more, status) => {
  const app = await withApp();
  expectRefused(await create(app, more), status);
  expect(await list(app)).toEqual([]);
});

test("a body that is not an object is 4xx, and creates no cluster", async () => {
  const app = await withApp();
  for (const body of ["{", "[]", undefined]) expect((await app.call("POST", at, body)).status).toBeLessThan(500);
  expect(await list(app)).toEqual([]);
});

test.each([
  ["basic", "basic", { cpu_kind: "shared", cpus: 2, memory_mb: 1024 }],
  ["STARTER", "starter", { cpu_kind: "shared", cpus: 2, memory_mb: 2048 }],
  ["Launch", "launch", { cpu_kind: "performance", cpus: 2, memory_mb: 8192 }],
  ["scale", "scale", { cpu_kind: "performance", cpus: 4, memory_mb: 32_768 }],
  ["performance", "Performance", { cpu_kind: "performance", cpus: 8, memory_mb: 65_536 }],
])("the plan %s, matched case-insensitively", async (plan, shown, sizes) => {
  const app = await withApp();
  expect((await create(app, { plan })).body.data).toMatchObject({ plan: shown, ...sizes });
});

test("all given values are kept; nulls count as omitted", async () => {
  const app = await withApp();
  const given = { disk_size_gb: 100, pg_major_version: "17", pool_mode: "transaction" };
  const { pool_mode: _, ...shown } = given;
  expect((await create(app, { name: "db", ...given })).body.data).toMatchObject({ name: "db", ...shown });
  expect((await create(app, { name: null, disk_size_gb: null })).body.data).toMatchObject({ disk_size_gb: 10 });
});

test("a name is generated if omitted, is unique in the organization, and can be reused after the deletion", async () => {
  const app = await withApp();
  const one = (await create(app)).body.data;
  expect(one.name).toMatch(/^[a-z]+-[a-z]+-\d{4}$/);
  expectRefused(await create(app, { name: one.name }), 422);
  const stranger = callerWith(app, "stranger", { slug: "strangers" });
  expect((await stranger("POST", at, { ...wanted, name: one.name })).status).toBe(201);
  await app.call("DELETE", `${at}/${one.id}`);
  expect((await create(app, { name: one.name })).status).toBe(201);
});

test("a cluster that never existed is 404", async () => {
  const { call } = await withApp();
  for (const [method, path, body] of [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/attachments", { app_name: "web" }],
    ["DELETE", "/attachments/web"],
    ["GET", "/databases"],
    ["DELETE", "/databases/postgres"],
    ["GET", "/users"],
    ["POST", "/users", { username: "postgres", role: "reader" }],
    ["GET", "/backups"],
    ["POST", "/restore", { backup_id: "x" }],
    ["POST", "/fork"],
  ] as const)
    expectRefused(await call(method, `${at}/none${path}`, body), 404, "Cluster not found");
});

test("a cluster of another organization is not found, and its organization is 403", async () => {
  const app = await setup();
  const stranger = callerWith(app, "stranger", { slug: "strangers" });
  await stranger("POST", "/apps", { name: "theirs", org_slug: "personal" });
  expectRefused(await stranger("GET", app.one), 404, "Cluster not found");
  expectRefused(await stranger("DELETE", app.one), 404, "Cluster not found");
  expectRefused(await stranger("POST", `${app.one}/attachments`, { app_name: "theirs" }), 404, "Cluster not found");
  expectRefused(await app.call("POST", `${app.one}/attachments`, { app_name: "theirs" }), 404, "App not found");
  expect((await app.call("GET", `${at}?org_slug=strangers`)).status).toBe(403);
  expect((await create(app, { org_slug: "strangers" })).status).toBe(403);
});

// --- attachments ---

test("attaching is 201, then 200 with the same answer; it is listed, and sets nothing on the App", async () => {
  const app = await setup();
  const attach = () => app.call("POST", `${app.one}/attachments`, { app_name: "web" });
  const first = await attach();
  expect([first.status, first.body]).toEqual([
    201,
    { data: { app_name: "web", postgres_cluster_id: app.id, attached_at: rfc3339 } },
  ]);
  const again = await attach();
  expect([again.status, again.body]).toEqual([200, first.body]);
  expect((await app.call("GET", app.one)).body.data.attached_apps).toEqual([{ name: "web" }]);
  expect((await list(app))[0].attached_apps).toEqual([{ name: "web" }]);
  expect((await app.call("GET", "/apps/web/secrets")).body.secrets).toEqual([]);
});

test("attaching to a missing App is 404, without an App 422", async () => {
  const { call, one } = await shared();
  expectRefused(await call("POST", `${one}/attachments`, { app_name: "none" }), 404, "App not found");
  expectRefused(await call("POST", `${one}/attachments`, {}), 422);
});

test("a cluster can be attached before it is ready", async () => {
  const app = await withStillClock();
  const { id } = (await create(app)).body.data;
  expect((await app.call("POST", `${at}/${id}/attachments`, { app_name: "web" })).status).toBe(201);
});

test("detaching is 204, and 404 without an attachment or an App", async () => {
  const { call, one } = await shared();
  await call("POST", `${one}/attachments`, { app_name: "web" });
  const gone = await call("DELETE", `${one}/attachments/web`);
  expect([gone.status, gone.text]).toEqual([204, ""]);
  expect((await call("GET", one)).body.data.attached_apps).toEqual([]);
  expectRefused(await call("DELETE", `${one}/attachments/web`), 404, "Attachment not found");
  expectRefused(await call("DELETE", `${one}/attachments/none`), 404, "App not found");
});

test("a deleted App has no attachments", async () => {
  const { call, one } = await setup();
  await call("POST", `${one}/attachments`, { app_name: "web" });
  await call("DELETE", "/apps/web");
  expect((await call("GET", one)).body.data.attached_apps).toEqual([]);
});

// --- databases ---

test("databases are created, listed and deleted", async () => {
  const { call, one } = await shared();
  const names = async () => (await call("GET", `${one}/databases`)).body.data.map(({ name }: { name: string }) => name);
  const usual = await names();
  const made = await call("POST", `${one}/databases`, { name: "shop-2_A" });
  expect([made.status, made.body]).toEqual([201, { data: { name: "shop-2_A" } }]);
  expect(await names()).toEqual([...usual, "shop-2_A"]);
  expectRefused(await call("POST", `${one}/databases`, { name: "shop-2_A" }), 409);
  const gone = await call("DELETE", `${one}/databases/shop-2_A`);
  expect([gone.status, gone.body]).toEqual([200, { data: { name: "shop-2_A" } }]);
  expect(await names()).toEqual(usual);
  expectRefused(await call("DELETE", `${one}/databases/shop-2_A`), 404);
});

test.each([
  [{}, 422],
  [{ name: null }, 422],
  [{ name: "" }, 400],
  [{ name: "-a" }, 400],
  [{ name: "a-" }, 400],
  [{ name: "a b" }, 400],
  [{ name: "a".repeat(64) }, 400],
  [{ name: "postgres" }, 400],
  [{ name: "template0" }, 400],
])("a database %j is %i", async (body, status) => {
  const { call, one } = await shared();
  expectRefused(await call("POST", `${one}/databases`, body), status);
});

test("a reserved database is not deleted", async () => {
  const { call, one } = await shared();
  expectRefused(await call("DELETE", `${one}/databases/postgres`), 400);
});

test("the contents of a cluster are 503 until it is ready", async () => {
  const app = await withStillClock();
  const { id } = (await create(app)).body.data;
  for (const [method, path, body] of [
    ["GET", "/databases"],
    ["POST", "/databases", { name: "a" }],
    ["DELETE", "/databases/fly-db"],
    ["GET", "/databases/fly-db/extensions"],
    ["GET", "/users"],
    ["POST", "/users", { username: "a", role: "reader" }],
    ["GET", "/users/fly-user/credentials"],
    ["GET", "/queries/active"],
    ["GET", "/queries/slow"],
    ["POST", "/users/fly-user/rotate_password"],
    ["POST", "/backups", { type: "full" }],
  ] as const)
    expectRefused(await app.call(method, `${at}/${id}${path}`, body), 503);
  expectRefused(await app.call("POST", `${at}/${id}/fork`), 409);
});

// --- extensions ---

test("extensions are installed in a database and removed from it; the platform's own always exist", async () => {
  const { call, one } = await setup();
  await call("POST", `${one}/databases`, { name: "shop" });
  const extensions = `${one}/databases/shop/extensions`;
  const found = async (name: string) =>
    (await call("GET", extensions)).body.data.find((extension: { name: string }) => extension.name === name);
  expect(await found("hstore")).toEqual({
    name: "hstore",
    default_version: expect.any(String),
    description: expect.any(String),
    system: false,
    installed: null,
  });
  const made = await call("POST", extensions, { name: "hstore" });
  expect([made.status, made.text]).toEqual([204, ""]);
  const { default_version, installed } = await found("hstore");
  expect(installed).toEqual({ schema: "public", version: default_version });
  expect(await call("GET", `${one}/databases/fly-db/extensions`)).toMatchObject({
    body: { data: expect.arrayContaining([expect.objectContaining({ name: "hstore", installed: null })]) },
  });
  expectRefused(await call("POST", extensions, { name: "hstore" }), 409);
  const gone = await call("DELETE", `${extensions}/hstore?force=true`);
  expect([gone.status, gone.text]).toEqual([204, ""]);
  expectRefused(await call("DELETE", `${extensions}/hstore`), 404);
  expect(await found("plpgsql")).toMatchObject({ system: true, installed: { schema: "pg_catalog" } });
  expectRefused(await call("POST", extensions, { name: "plpgsql" }), 409);
  expectRefused(await call("DELETE", `${extensions}/plpgsql`), 400);
});

test("an extension may use a separate schema, which the request creates", async () => {
  const { call, one } = await setup();
  const extensions = `${one}/databases/fly-db/extensions`;
  expectRefused(await call("POST", extensions, { name: "hstore", schema: "extra" }), 422);
  expect((await call("POST", extensions, { name: "hstore", schema: "extra", create_schema: true })).status).toBe(204);
  const { data } = (await call("GET", extensions)).body;
  expect(data.find(({ name }: { name: string }) => name === "hstore").installed.schema).toBe("extra");
});

test("PostGIS is 409 unless the cluster was created for it; an unknown extension is 422, an unknown database 404", async () => {
  const { call, one } = await shared();
  const extensions = `${one}/databases/fly-db/extensions`;
  expectRefused(await call("POST", extensions, { name: "postgis" }), 409);
  expectRefused(await call("POST", extensions, { name: "frobnicate" }), 422);
  expectRefused(await call("POST", extensions, {}), 422);
  expectRefused(await call("GET", `${one}/databases/none/extensions`), 404);
  expectRefused(await call("POST", `${one}/databases/none/extensions`, { name: "hstore" }), 404);
});

test("PostGIS can be installed in a cluster that was created for it", async () => {
  const { call, one } = await setup({ postgis_enabled: true });
  expect((await call("GET", one)).body.data.postgis_enabled).toBe(true);
  expect((await call("POST", `${one}/databases/fly-db/extensions`, { name: "postgis" })).status).toBe(204);
});

// --- users ---

test("a cluster begins with the user fly-user, a schema_admin, which cannot be changed", async () => {
  const { call, one } = await shared();
  expect((await call("GET", `${one}/users`)).body).toEqual({ data: [{ username: "fly-user", role: "schema_admin" }] });
  expectRefused(await call("DELETE", `${one}/users/fly-user`), 400);
  expectRefused(await call("PATCH", `${one}/users/fly-user`, { role: "reader" }), 400);
});

test("users are created with a role, change it, and are deleted", async () => {
  const { call, one } = await setup();
  for (const role of ["schema_admin", "writer", "reader"]) {
    const username = role.replace("_", "-");
    const made = await call("POST", `${one}/users`, { username, role });
    expect([made.status, made.body]).toEqual([201, { data: { username, role } }]);
  }
  expectRefused(await call("POST", `${one}/users`, { username: "reader", role: "reader" }), 409);
  const changed = await call("PATCH", `${one}/users/reader`, { role: "writer" });
  expect([changed.status, changed.text]).toEqual([204, ""]);
  const gone = await call("DELETE", `${one}/users/schema-admin`);
  expect([gone.status, gone.text]).toEqual([204, ""]);
  expect((await call("GET", `${one}/users`)).body.data).toEqual(
    expect.arrayContaining([
      { username: "writer", role: "writer" },
      { username: "reader", role: "writer" },
    ]),
  );
  for (const [method, path, body] of [
    ["PATCH", "", { role: "reader" }],
    ["DELETE", ""],
    ["GET", "/credentials"],
    ["POST", "/rotate_password"],
  ] as const)
    expectRefused(await call(method, `${one}/users/schema-admin${path}`, body), 404);
});

test.each([
  [{}, 422],
  [{ username: "a" }, 422],
  [{ role: "reader" }, 422],
  [{ username: "a", role: "owner" }, 422],
  [{ username: "UPPER", role: "reader" }, 400],
  [{ username: "-a", role: "reader" }, 400],
  [{ username: "a".repeat(64), role: "reader" }, 400],
  [{ username: "postgres", role: "reader" }, 400],
])("a user %j is %i", async (body, status) => {
  const { call, one } = await shared();
  expectRefused(await call("POST", `${one}/users`, body), status);
});

test("an unknown role is 422", async () => {
  const { call, one } = await setup();
  await call("POST", `${one}/users`, { username: "a", role: "reader" });
  for (const body of [{}, { role: "owner" }, { role: 5 }])
    expectRefused(await call("PATCH", `${one}/users/a`, body), 422);
});

test("queries are listed: running ones, in one database or in all, and slow ones", async () => {
  const asked: unknown[] = [];
  class Busy extends SimulatedPostgres {
    override activeQueries(_: unknown, database?: string) {
      asked.push(database);
      const query = { pid: 7, database: "fly-db", username: "fly-user", state: "active", query: "SELECT 1" };
      return Promise.resolve([{ ...query, started_at: "2026-01-01T00:00:00Z" }]);
    }
    override slowQueries(_: unknown, withinMs?: number) {
      asked.push(withinMs);
      return Promise.resolve([{ query: "SELECT $1", calls: 2, total_ms: 3000, mean_ms: 1500 }]);
    }
  }
  const app = await withApp({ postgres: (host) => new Busy(host) });
  const one = `${at}/${(await create(app, { name: "db" })).body.data.id}/queries`;
  expect((await app.call("GET", `${one}/active`)).body.data).toMatchObject([{ pid: 7, query: "SELECT 1" }]);
  expect((await app.call("GET", `${one}/active?database=fly-db`)).status).toBe(200);
  expect((await app.call("GET", `${one}/slow?range=1h`)).body.data).toMatchObject([{ calls: 2, mean_ms: 1500 }]);
  expect(asked).toEqual([undefined, "fly-db", 3600_000]);
});

test("a cluster that no client uses has no queries; those of an unknown database are 404, an invalid range is 422", async () => {
  const { call, one } = await shared();
  for (const kind of ["active", "active?database=fly-db", "slow", "slow?range=1h"])
    expect((await call("GET", `${one}/queries/${kind}`)).body).toEqual({ data: [] });
  expectRefused(await call("GET", `${one}/queries/active?database=none`), 404, "Database not found");
  expectRefused(await call("GET", `${one}/queries/slow?range=long`), 422);
});

test("credentials show the password; every user has its own, and rotation creates a new one", async () => {
  const { call, one } = await setup();
  await call("POST", `${one}/users`, { username: "a", role: "reader" });
  const password = async (username: string) => {
    const { status, body } = await call("GET", `${one}/users/${username}/credentials`);
    expect([status, body]).toEqual([200, { data: { username, password: expect.stringMatching(/^\S{16,}$/) } }]);
    return body.data.password;
  };
  const before = [await password("fly-user"), await password("a")];
  expect(before[0]).not.toBe(before[1]);
  expect(await password("a")).toBe(before[1]);
  for (const body of [undefined, {}, { kill_sessions: true }]) {
    const rotated = await call("POST", `${one}/users/a/rotate_password`, body);
    expect(rotated.status).toBe(200);
    expect(rotated.body.data).toEqual({ username: "a", password: await password("a") });
    expect(before).not.toContain(rotated.body.data.password);
    before.push(rotated.body.data.password);
  }
  expect(await password("fly-user")).toBe(before[0]);
  expectRefused(await call("POST", `${one}/users/a/rotate_password`, { kill_sessions: "yes" }), 422);
});

// --- backups, restore, fork ---

test("a backup is accepted with 202 and runs; a second one is 409 meanwhile; the newest comes first", async () => {
  const app = await withStillClock();
  const { id } = (await create(app)).body.data;
  app.clock.advance(10_000);
  const backups = `${at}/${id}/backups`;
  expect((await app.call("GET", backups)).body).toEqual({ data: [] });
  const made = await app.call("POST", backups, { type: "full" });
  expect(made.status).toBe(202);
  expect(made.body.data).toEqual({
    id: expect.any(String),
    type: "full",
    status: "running",
    size_bytes: null,
    started_at: rfc3339,
    finished_at: null,
  });
  expectRefused(await app.call("POST", backups, { type: "incr" }), 409);
  app.clock.advance(1000);
  expect((await app.call("GET", backups)).body.data).toMatchObject([
    { id: made.body.data.id, status: "completed", size_bytes: expect.any(Number), finished_at: rfc3339 },
  ]);
  for (const type of ["incr", "diff"]) {
    expect((await app.call("POST", backups, { type })).status).toBe(202);
    app.clock.advance(1000);
  }
  expect((await app.call("GET", backups)).body.data.map(({ type }: { type: string }) => type)).toEqual([
    "diff",
    "incr",
    "full",
  ]);
  for (const body of [{}, { type: "half" }]) expectRefused(await app.call("POST", backups, body), 422);
});

/** A cluster with contents, and a backup of them. */
async function backedUp() {
  const app = await withStillClock();
  const { id } = (await create(app, { name: "db", disk_size_gb: 20, plan: "launch" })).body.data;
  const one = `${at}/${id}`;
  app.clock.advance(10_000);
  await app.call("POST", `${one}/databases`, { name: "shop" });
  await app.call("POST", `${one}/databases/shop/extensions`, { name: "hstore" });
  await app.call("POST", `${one}/users`, { username: "app", role: "writer" });
  const backup = (await app.call("POST", `${one}/backups`, { type: "full" })).body.data.id;
  app.clock.advance(10_000);
  await app.call("POST", `${one}/databases`, { name: "later" });
  const contents = async (cluster: string) => {
    const names = async (path: string) => (await app.call("GET", `${at}/${cluster}${path}`)).body.data;
    return {
      databases: await names("/databases"),
      users: await names("/users"),
      installed: (await names("/databases/shop/extensions")).filter(
        ({ installed, system }: { installed: unknown; system: boolean }) => installed && !system,
      ),
      password: (await names("/users/app/credentials")).password,
    };
  };
  return { ...app, id, one, backup, contents };
}

test("restoring creates a new cluster with the old settings and the contents of the backup", async () => {
  const { call, clock, one, id, backup, contents } = await backedUp();
  const made = await call("POST", `${one}/restore`, { backup_id: backup, name: "again" });
  expect(made.status).toBe(201);
  expect(made.body.data).toMatchObject({
    name: "again",
    status: "creating",
    plan: "launch",
    disk_size_gb: 20,
    region: "ams",
  });
  expect(made.body.data.id).not.toBe(id);
  clock.advance(10_000);
  const [then, now] = [await contents(made.body.data.id), await contents(id)];
  expect(then.databases).toEqual(now.databases.filter(({ name }: { name: string }) => name !== "later"));
  expect([then.users, then.installed, then.password]).toEqual([now.users, now.installed, now.password]);
});

test("restoring to a time uses the latest backup before it", async () => {
  const { call, clock, one, contents } = await backedUp();
  const restore = (body: object) => call("POST", `${one}/restore`, body);
  const made = await restore({ pitr_time: new Date(clock.now()).toISOString() });
  expect(made.status).toBe(201);
  expect(made.body.data.name).toMatch(/^[a-z]+-[a-z]+-\d{4}$/);
  clock.advance(10_000);
  expect((await contents(made.body.data.id)).databases).not.toContainEqual({ name: "later" });
  expectRefused(await restore({ pitr_time: "2020-01-01T00:00:00Z" }), 422);
  expectRefused(await restore({ pitr_time: "2030-01-01T00:00:00+02:00" }), 422);
});

test("the reported end of a backup, which has whole seconds, is a time that can be restored", async () => {
  const app = await withStillClock();
  const one = `${at}/${(await create(app, { name: "db", plan: "launch" })).body.data.id}`;
  app.clock.advance(10_300);
  expect((await app.call("POST", `${one}/backups`, { type: "full" })).status).toBe(202);
  app.clock.advance(10_000);
  const restore = (time: string) => app.call("POST", `${one}/restore`, { pitr_time: time });
  const [{ finished_at }] = (await app.call("GET", `${one}/backups`)).body.data;
  expectRefused(await restore(finished_at.replace("Z", ".100Z")), 422);
  expect((await restore(finished_at)).status).toBe(201);
});

test("restoring needs exactly one of an existing backup and a time with an offset", async () => {
  const { call, one, backup } = await backedUp();
  const restore = (body: object) => call("POST", `${one}/restore`, body);
  expectRefused(await restore({ backup_id: "bk_none" }), 404);
  for (const body of [
    {},
    { backup_id: backup, pitr_time: "2026-01-01T00:00:20Z" },
    { pitr_time: "yesterday" },
    { pitr_time: "2026-01-01T00:00:20" },
    { backup_id: backup, name: "Not Good" },
    { backup_id: backup, name: "db" },
  ])
    expectRefused(await restore(body), 422);
});

test("a backup of another cluster is not found", async () => {
  const { call, clock, backup } = await backedUp();
  const { id } = (await call("POST", at, wanted)).body.data;
  clock.advance(10_000);
  expectRefused(await call("POST", `${at}/${id}/restore`, { backup_id: backup }), 404);
});

test("a fork is a copy of a cluster in its current state, named after it by default", async () => {
  const { call, clock, one, id, contents } = await backedUp();
  const made = await call("POST", `${one}/fork`);
  expect(made.status).toBe(201);
  expect(made.body.data).toMatchObject({ name: "db-fork", status: "creating", plan: "launch", disk_size_gb: 20 });
  clock.advance(10_000);
  expect(await contents(made.body.data.id)).toEqual(await contents(id));
  expectRefused(await call("POST", `${one}/fork`, {}), 422);
  expect((await call("POST", `${one}/fork`, { name: "other" })).body.data.name).toBe("other");
  await call("DELETE", `${at}/${made.body.data.id}/databases/later`);
  expect((await contents(id)).databases).toContainEqual({ name: "later" });
});
