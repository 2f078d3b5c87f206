// A Postgres cluster as in examples/database and docs/postgres.md, with the real CLI.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(bindings)("a database, %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  let app = "";

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "database", binding);
    stack.example("database");
    stack.switchTo(binding);
    stack.program(stack.read());
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, protect: "true" });
  });
  afterAll(() => service.close());

  const set = (key: string, value: string) => stack.ok("config", "set", key, value);
  const clusters = async () =>
    (
      await send<{ data: { id: string; name: string; status: string }[] }>(
        service,
        "GET",
        "/v1/postgres?org_slug=personal",
      )
    ).data.filter(({ status }) => status === "ready");
  const databaseUrl = async () => {
    const path = `/v1/apps/${app}/secrets/DATABASE_URL?show_secrets=true`;
    return (await send<{ value: string }>(service, "GET", path)).value;
  };

  test("a database is created, restored from its backup and copied, and the App can connect", async () => {
    await set("restore", "true");
    await set("staging", "true");
    expect(counts(await stack.ok("up", "--yes"))).toEqual({ created: 12 });
    app = (await stack.ok("stack", "output", "appName")).trim();
    expect((await clusters()).map(({ name }) => name.replace(/-[0-9a-f]{7}$/, "")).sort()).toEqual([
      "restored",
      "shop",
      "staging",
    ]);
    expect(await databaseUrl()).toMatch(/^postgresql:\/\/shop:[^@]+@pgbouncer\..*\/shop$/);
    expect(counts(await stack.refresh())).toEqual({ unchanged: 12 });
    expect(await stack.preview()).toEqual({});
  });

  test("the state has no password in plain text", async () => {
    const { password } = new URL(await databaseUrl());
    expect((await stack.run(["stack", "export"])).stdout).not.toContain(password);
  });

  test("a rotated password is written to the secret by the same up", async () => {
    const before = await databaseUrl();
    await set("passwordOf", "2026-02");
    // The user, the attachment with the secret, and the Machine that uses it.
    expect(counts(await stack.up())).toEqual({ updated: 3, unchanged: 9 });
    const after = await databaseUrl();
    expect(after).not.toBe(before);
    const [cluster] = (await clusters()).filter(({ name }) => name.startsWith("shop"));
    const { data } = await send<{ data: { password: string } }>(
      service,
      "GET",
      `/v1/postgres/${cluster?.id}/users/shop/credentials`,
    );
    expect(new URL(after).password).toBe(data.password);
  });

  test("with protection, a changed size is refused at preview, and destroy deletes nothing in the cluster", async () => {
    await set("diskSizeGb", "20");
    const { code, output } = await stack.run(["preview"]);
    expect(code).not.toBe(0);
    expect(output).toMatch(/diskSizeGb: changing it replaces the PostgresCluster.*set deletionProtection: false/);
    const before = await contents();
    const destroyed = await stack.run(["destroy", "--yes"]);
    expect(destroyed.code).not.toBe(0);
    expect(destroyed.output).toMatch(/ is in the protected cluster .* set deletionProtection: false/);
    expect(await contents()).toEqual(before);
  });

  test("without protection, everything can be deleted", async () => {
    await set("diskSizeGb", "10");
    await set("protect", "false");
    // Besides the cluster: what is in it no longer has the mark that destroy needs to see.
    expect(counts(await stack.up())).toMatchObject({ updated: 6 });
    await stack.destroy();
    expect(await clusters()).toEqual([]);
    expect(stack.state()).toEqual({});
  });

  /** Databases, users and backups of the protected cluster. */
  const contents = async (): Promise<unknown[]> => {
    const [cluster] = (await clusters()).filter(({ name }) => name.startsWith("shop"));
    return Promise.all(
      ["databases", "users", "backups"].map((kind) => send(service, "GET", `/v1/postgres/${cluster?.id}/${kind}`)),
    );
  };
});
