// Every operation on clusters through the script client, each with its effect.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { contract } from "../../api/index.ts";
import { createClient, isNotFound, type Client } from "../../provider/client/index.ts";
import { hang } from "../support/patience.mts";
import { checkedAnswers } from "../service/description.ts";
import { startService, type TestService } from "../support/startService.ts";

let service: TestService;
const answers = checkedAnswers();
let client: Client;
let of: { postgresClusterId: string };

const ready = (postgresClusterId: string) =>
  vi.waitFor(async () => expect((await client.postgres.get({ postgresClusterId })).data.status).toBe("ready"), hang);

beforeAll(async () => {
  service = await startService({ onAnswer: answers.onAnswer });
  client = createClient({ endpoint: service.url, token: service.token });
  await client.apps.create({ body: { name: "shop", orgSlug: "personal" } });
  const body = { orgSlug: "personal", region: "ams", plan: "basic", name: "db", postgisEnabled: true } as const;
  of = { postgresClusterId: (await client.postgres.create({ body })).data.id };
  await ready(of.postgresClusterId);
});
afterAll(async () => {
  await client.close();
  await service.close();
});

test("a cluster is attached to an App and detached", async () => {
  const attached = async () => (await client.postgres.get(of)).data.attachedApps;
  const { data } = await client.postgres.attach({ ...of, body: { appName: "shop" } });
  expect(data.appName).toBe("shop");
  expect(await attached()).toEqual([{ name: "shop" }]);
  await client.postgres.detach({ ...of, appName: "shop" });
  expect(await attached()).toEqual([]);
});

test("databases and extensions are created and removed", async () => {
  const database = { ...of, database: "orders" };
  const names = async () => (await client.postgres.listDatabases(of)).data.map(({ name }) => name);
  await client.postgres.createDatabase({ ...of, body: { name: "orders" } });
  expect(await names()).toContain("orders");
  const installed = async () =>
    (await client.postgres.listExtensions(database)).data.find(({ name }) => name === "hstore")?.installed;
  await client.postgres.installExtension({ ...database, body: { name: "hstore" } });
  expect(await installed()).toBeTruthy();
  await client.postgres.removeExtension({ ...database, extension: "hstore" });
  expect(await installed()).toBeFalsy();
  await client.postgres.deleteDatabase(database);
  expect(await names()).not.toContain("orders");
});

test("users are created, changed and removed; their passwords are shown and rotated", async () => {
  const user = { ...of, username: "ada" };
  const role = async () => (await client.postgres.listUsers(of)).data.find(({ username }) => username === "ada")?.role;
  await client.postgres.createUser({ ...of, body: { username: "ada", role: "reader" } });
  await client.postgres.updateUser({ ...user, body: { role: "writer" } });
  expect(await role()).toBe("writer");
  const { data: before } = await client.postgres.credentials(user);
  const { data: after } = await client.postgres.rotatePassword({ ...user, body: { killSessions: true } });
  expect(after.password).not.toBe(before.password);
  expect((await client.postgres.credentials(user)).data).toEqual(after);
  await client.postgres.deleteUser(user);
  expect(await role()).toBeUndefined();
});

test("queries are listed", async () => {
  expect(Array.isArray((await client.postgres.activeQueries(of)).data)).toBe(true);
  expect(Array.isArray((await client.postgres.slowQueries(of)).data)).toBe(true);
});

test("a backup is created and restored, a cluster forked, and both are deleted", async () => {
  await client.postgres.createBackup({ ...of, body: { type: "full" } });
  const backups = async () => (await client.postgres.listBackups(of)).data;
  await expect.poll(async () => (await backups())[0]?.finishedAt ?? undefined).toBeTypeOf("string");
  const [backup] = await backups();
  const restored = await client.postgres.restore({ ...of, body: { backupId: backup?.id ?? "", name: "again" } });
  const forked = await client.postgres.fork({ ...of, body: { name: "side" } });
  const ids = [restored.data.id, forked.data.id];
  await Promise.all(ids.map(ready));
  const names = async () => (await client.postgres.list({ orgSlug: "personal" })).data.map(({ name }) => name);
  expect((await names()).sort()).toEqual(["again", "db", "side"]);
  for (const postgresClusterId of ids) await client.postgres.delete({ postgresClusterId });
  await expect.poll(names).toEqual(["db"]);
  const gone = await client.postgres.get({ postgresClusterId: ids[0] ?? "" }).catch((error: unknown) => error);
  expect(isNotFound(gone)).toBe(true);
});

test("every operation on clusters succeeded, and was answered as described", () => {
  const all = Object.values(contract.postgres).map(({ id }): string => id);
  expect(all.filter((id) => !answers.succeeded.has(id))).toEqual([]);
  expect(answers.undescribed).toEqual([]);
});
