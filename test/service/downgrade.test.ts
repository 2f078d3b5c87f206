// An older version of the service is started with the data of a newer one: it serves them if it knows their tables, or says what to do.
import { readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { firstSchema, migrations } from "../../service/store/schema.ts";
import { version } from "../../service/version.ts";
import { caller } from "./client.ts";
import { command, folder, foreground } from "./command.ts";
import { plantedIn, type Change } from "./histories/bugs.ts";

const newer = "99.0.0";
const withVersion: Change = { find: `const version = "${version}";`, replace: `const version = "${newer}";` };
const withTables: Change = {
  find: "const currentSchema = () => ",
  replace: 'migrations.push("ALTER TABLE apps ADD COLUMN note TEXT");\nconst currentSchema = () => ',
};
const schema = firstSchema + migrations.length;

/** Serves a data folder, sends requests, and stops. */
async function serving(data: string, env: NodeJS.ProcessEnv, use: (call: ReturnType<typeof caller>) => Promise<void>) {
  const { url, token, pid, end } = await foreground(data, [], env);
  await use(caller(url, token));
  process.kill(pid, "SIGTERM");
  expect(await end).toMatchObject({ code: 0 });
}

/** Creates an App. */
const creates = (name: string) => async (call: ReturnType<typeof caller>) => {
  expect((await call("POST", "/apps", { name, org_slug: "personal" })).status).toBe(201);
};

/** Expects the Apps with these names. */
const has =
  (...names: string[]) =>
  async (call: ReturnType<typeof caller>) => {
    const { body } = await call("GET", "/apps?org_slug=personal");
    expect(body.apps.map(({ name }: { name: string }) => name).sort()).toEqual(names.sort());
  };

test("an older version serves the data of a newer one with the same tables", async () => {
  const data = folder();
  await serving(data, {}, creates("first"));
  await serving(data, plantedIn([withVersion]), creates("second"));
  await serving(data, {}, has("first", "second"));
  expect(readdirSync(data).filter((name) => name.includes("backup-"))).toEqual([]);
});

test("F29 an older version refuses newer tables, names the version that has them, and serves the copy from before", async () => {
  const data = folder();
  await serving(data, {}, creates("first"));
  await serving(data, plantedIn([withVersion, withTables]), creates("second"));
  const { code, err } = await command(["start", "--data", data]);
  const store = join(data, "service.db");
  expect([code, err]).toEqual([
    1,
    expect.stringContaining(
      `${store} was written by machines-service ${newer} (schema ${schema + 1}), and this is ${version}, which reads schema ${firstSchema} to ${schema}. Start that version again (npm install --global machines-service@${newer}). To return to ${version} instead, move away service.db and all files whose name begins with service.db-, and rename service.db.backup-${schema} to service.db: all changes since the upgrade are lost`,
    ),
  ]);
  // Refusing has changed nothing.
  await serving(data, plantedIn([withVersion, withTables]), has("first", "second"));
  for (const name of readdirSync(data).filter((one) => one === "service.db" || one.startsWith("service.db-")))
    rmSync(join(data, name));
  renameSync(`${store}.backup-${schema}`, store);
  await serving(data, {}, has("first"));
});
