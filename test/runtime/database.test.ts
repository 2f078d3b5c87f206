// The example of a database with the real CLI, on a real Postgres server and a Machine in a container that uses it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { counts } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image } from "./image.ts";
import { startReal } from "./real.ts";
import { hasEngine } from "./runtimes.ts";

interface Cluster {
  readonly data: {
    readonly endpoints: { readonly primary: { readonly direct: { readonly host: string; readonly port: number } } };
  };
}

interface Credentials {
  readonly data: { readonly password: string };
}

describe.runIf(hasEngine)("a database on a real server", () => {
  test("it is migrated and used from a container and from the host, rotated, restored, forked, and leaves nothing", async () => {
    const real = await startReal({ postgres: true });
    afterThisTest(() => real.end());
    const { service } = real;
    const migrate = 'sql "CREATE TABLE IF NOT EXISTS notes (text text)"';
    const stack = await exampleStack("database", service, { image, migrate });
    expect(counts(await stack.up())).toEqual({ created: 10 });

    const outputs = async () =>
      JSON.parse(await stack.ok("stack", "output", "--json")) as Readonly<Record<string, string>>;
    const { appName: app = "", webMachine = "", clusterId = "" } = await outputs();
    const inMachine = (text: string) => real.exec(app, webMachine.split("/").at(-1) ?? "", ["sql", text]);
    /** What a program on the host reads with the connection URI of the App. */
    async function onHost(uri: string, text: string): Promise<unknown[]> {
      const client = new pg.Client({ connectionString: uri });
      client.on("error", () => {});
      try {
        await client.connect();
        return (await client.query({ text, rowMode: "array" })).rows.flat();
      } finally {
        await client.end().catch(() => {});
      }
    }
    const uriOf = async () =>
      (await send<{ value: string }>(service, "GET", `/v1/apps/${app}/secrets/DATABASE_URL?show_secrets=true`)).value;
    /** The rows of another cluster. */
    async function notesOf(cluster: string): Promise<unknown[]> {
      const path = `/v1/postgres/${cluster}`;
      const { host, port } = (await send<Cluster>(service, "GET", path)).data.endpoints.primary.direct;
      const { password } = (await send<Credentials>(service, "GET", `${path}/users/shop/credentials`)).data;
      return onHost(`postgresql://shop:${encodeURIComponent(password)}@${host}:${port}/shop`, notes);
    }
    const notes = "SELECT text FROM notes ORDER BY text";

    await inMachine("INSERT INTO notes VALUES ('from the machine')");
    expect(await onHost(await uriOf(), notes)).toEqual(["from the machine"]);
    await expectUnchanged(stack);

    // A new password reaches the Machine, and the old one no longer works.
    const before = await uriOf();
    await stack.set({ passwordOf: "2026-02" });
    await stack.up();
    expect(await uriOf()).not.toBe(before);
    expect(await inMachine(notes)).toBe("from the machine\n");
    await expect(onHost(before, notes)).rejects.toThrow(/authentication failed/);

    // A new backup, then a loss; the restored cluster has the rows, and a fork has what is there now.
    await stack.set({ release: "2" });
    await stack.up();
    await inMachine("DELETE FROM notes");
    await inMachine("INSERT INTO notes VALUES ('after the loss')");
    await stack.set({ restore: "true", staging: "true" });
    expect(counts(await stack.up())).toMatchObject({ created: 2 });
    const copies = await outputs();
    expect(await notesOf(copies["restoredId"] ?? "")).toEqual(["from the machine"]);
    expect(await notesOf(copies["stagingId"] ?? "")).toEqual(["after the loss"]);
    expect(await inMachine(notes)).toBe("after the loss\n");
    await expectUnchanged(stack);

    const servers = join(real.data, "postgres");
    expect(readdirSync(servers)).toContain(clusterId);
    await stack.set({ restore: "false", staging: "false" });
    await stack.up();
    await stack.destroy();
    await expectNothingRuns(real.dataId);
    // A deleted cluster is kept for a day, and runs no server.
    const { store, clock } = service.service.context;
    const statuses = () => store.all<{ status: string }>("SELECT DISTINCT status FROM clusters");
    await expect.poll(statuses).toEqual([{ status: "deleted" }]);
    expect(readdirSync(servers)).toEqual(["deleted"]);
    clock.advance(25 * 3600_000);
    await expect.poll(() => readdirSync(join(servers, "deleted"))).toEqual([]);
  });
});
