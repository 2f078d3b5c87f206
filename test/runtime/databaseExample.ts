// The example of a database with the real CLI, on real servers and a Machine that uses one.
import pg from "pg";
import { expect } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts } from "../support/stack.ts";
import type { TestService } from "../support/startService.ts";
import { image } from "./image.ts";

interface Cluster {
  readonly data: {
    readonly endpoints: { readonly primary: { readonly direct: { readonly host: string; readonly port: number } } };
  };
}

interface Credentials {
  readonly data: { readonly password: string };
}

const notes = "SELECT text FROM notes ORDER BY text";

/**
 * Migrates a database and uses it from the Machine and from here, changes its password, restores and forks it, and destroys all.
 * `addressOf` is where a host of a cluster is reached from here. `deployed` is called with the id of the cluster before the end.
 */
export async function tryDatabase(
  service: TestService,
  addressOf: (host: string) => Promise<string>,
  deployed: (cluster: string) => void = () => {},
): Promise<void> {
  const migrate = 'sql "CREATE TABLE IF NOT EXISTS notes (text text)"';
  const stack = await exampleStack("database", service, { image, migrate });
  expect(counts(await stack.up())).toEqual({ created: 10 });

  const outputs = async () =>
    JSON.parse(await stack.ok("stack", "output", "--json")) as Readonly<Record<string, string>>;
  const { appName: app = "", webMachine = "", clusterId = "" } = await outputs();
  const inMachine = async (text: string): Promise<string> => {
    const path = `/v1/apps/${app}/machines/${webMachine.split("/").at(-1)}/exec`;
    return (await send<{ stdout: string }>(service, "POST", path, { command: ["sql", text], stdin: "" })).stdout;
  };
  /** What a program outside of Machines reads with the connection URI of the App. */
  async function outside(uri: string, text: string): Promise<unknown[]> {
    const url = new URL(uri);
    url.hostname = await addressOf(url.hostname);
    const client = new pg.Client({ connectionString: url.href });
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
    return outside(`postgresql://shop:${encodeURIComponent(password)}@${host}:${port}/shop`, notes);
  }

  await inMachine("INSERT INTO notes VALUES ('from the machine')");
  expect(await outside(await uriOf(), notes)).toEqual(["from the machine"]);
  await expectUnchanged(stack);

  // A new password reaches the Machine, and the old one no longer works.
  const before = await uriOf();
  await stack.set({ passwordOf: "2026-02" });
  await stack.up();
  expect(await uriOf()).not.toBe(before);
  expect(await inMachine(notes)).toBe("from the machine\n");
  await expect(outside(before, notes)).rejects.toThrow(/authentication failed/);

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

  deployed(clusterId);
  await stack.set({ restore: "false", staging: "false" });
  await stack.up();
  await stack.destroy();
}
