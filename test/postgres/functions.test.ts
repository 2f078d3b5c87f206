import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, makeBackup, makeCluster, send } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(callings)("functions about Postgres, $name binding", ({ start }) => {
  let service: TestService;
  let calling: Calling;
  let cluster: string;
  let backup: string;
  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    cluster = await makeCluster(service, "main");
    const path = `/v1/postgres/${cluster}`;
    await send(service, "POST", `${path}/databases`, { name: "shop" });
    await send(service, "POST", `${path}/users`, { username: "anna", role: "reader" });
    await send(service, "POST", `${path}/databases/shop/extensions`, { name: "citext" });
    await send(service, "POST", `${path}/attachments`, { app_name: await makeApp(service, "web") });
    backup = await makeBackup(service, cluster);
    await send(service, "DELETE", `/v1/postgres/${await makeCluster(service, "gone")}`);
  });
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  test("getPostgresCluster returns a cluster, and reports one that does not exist", async () => {
    const { answer, isSecret } = await calling.call("getPostgresCluster", { cluster });
    expect(answer).toMatchObject({
      clusterId: cluster,
      name: "main",
      organization: "personal",
      status: "ready",
      region: "fra",
      plan: "basic",
      memoryMb: 1024,
      diskSizeGb: 10,
      poolerPort: 5432,
      directHost: `direct.${cluster}.postgres.machines.test`,
      attachedApps: ["web"],
    });
    expect(answer).not.toHaveProperty("storageUsedBytes");
    expect(isSecret).toBe(false);
    await expect(calling.call("getPostgresCluster", { cluster: "none" })).rejects.toThrow(/postgres.get answered 404/);
  });

  test("getPostgresClusters lists existing clusters, and deleted ones on request", async () => {
    const names = async (args: Record<string, unknown>) =>
      ((await calling.call("getPostgresClusters", args)).answer["clusters"] as { name: string }[]).map(
        ({ name }) => name,
      );
    expect(await names({})).toEqual(["main"]);
    expect(await names({ organization: "personal", includeDeleted: true })).toEqual(["main", "gone"]);
    await expect(names({ organization: "nobody" })).rejects.toThrow(/postgres.list answered 40[34]/);
  });

  test("lists of a cluster's contents use the names of program inputs", async () => {
    const ask = async (name: string, args = {}) => (await calling.call(name, { cluster, ...args })).answer;
    expect(await ask("getPostgresDatabases")).toEqual({ databases: [{ name: "fly-db" }, { name: "shop" }] });
    expect(await ask("getPostgresUsers")).toEqual({
      users: [
        { username: "fly-user", role: "schema_admin" },
        { username: "anna", role: "reader" },
      ],
    });
    const { backups } = (await ask("getPostgresBackups")) as { backups: unknown[] };
    expect(backups).toMatchObject([{ id: backup, type: "full", status: "completed", sizeBytes: 2 ** 25 }]);
    const database = `${cluster}/database/shop`;
    const { extensions } = (await ask("getPostgresExtensions", { database })) as { extensions: { name: string }[] };
    expect(extensions.find(({ name }) => name === "citext")).toMatchObject({
      defaultVersion: "1.6",
      system: false,
      installed: { schema: "public", version: "1.6" },
    });
  });

  test("getPostgresCredentials returns secrets", async () => {
    const { answer, isSecret } = await calling.call("getPostgresCredentials", {
      cluster,
      user: `${cluster}/user/anna`,
      database: `${cluster}/database/shop`,
    });
    const { data } = await send<{ data: object }>(service, "GET", `/v1/postgres/${cluster}/users/anna/credentials`);
    expect(answer).toMatchObject(data);
    expect(new URL(String(answer["directUri"]))).toMatchObject({ username: "anna", pathname: "/shop" });
    expect(String(answer["poolerUri"])).toContain(`@pgbouncer.${cluster}.`);
    expect(isSecret).toBe(true);
    expect((await calling.call("getPostgresCredentials", { cluster })).answer).toMatchObject({ username: "fly-user" });
  });

  test("running and slow queries are listed", async () => {
    const query = { pid: 7, database: "shop", query: "SELECT 1", started_at: "2026-01-01T00:00:00Z" };
    service.fail({
      operation: "postgres.activeQueries",
      when: "before",
      status: 200,
      body: { data: [query] },
      times: 1,
    });
    const active = await calling.call("getPostgresActiveQueries", { cluster, database: `${cluster}/database/shop` });
    const { started_at, ...rest } = query;
    expect(active.answer).toEqual({ queries: [{ ...rest, startedAt: started_at }] });
    await expect(calling.call("getPostgresActiveQueries", { cluster, database: "none" })).rejects.toThrow(
      /answered 404: Database not found/,
    );
    const slow = { query: "SELECT $1", calls: 3, total_ms: 4.5, mean_ms: 1.5 };
    service.fail({ operation: "postgres.slowQueries", when: "before", status: 200, body: { data: [slow] }, times: 1 });
    const { answer } = await calling.call("getPostgresSlowQueries", { cluster, range: "1h" });
    expect(answer).toEqual({ queries: [{ query: "SELECT $1", calls: 3, totalMs: 4.5, meanMs: 1.5 }] });
    expect((await calling.call("getPostgresSlowQueries", { cluster })).answer).toEqual({ queries: [] });
    await expect(calling.call("getPostgresSlowQueries", { cluster, range: "soon" })).rejects.toThrow(
      /range: got "soon"/,
    );
  });
});
