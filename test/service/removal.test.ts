// Objects with very many parts are deleted in pieces and hidden from the first piece on (F46).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { createService, type Service } from "../../service/index.ts";
import { partsOfApp, partsOfCluster, unitsAtOnce } from "../../service/lifecycle/removal.ts";
import { callerWith, withApp } from "./client.ts";
import { hang } from "../support/patience.mts";

const folder = mkdtempSync(join(tmpdir(), "machines-removal-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Copies the App's one Machine and volume many times, by SQL. */
function fill({ context: { store, timers } }: Pick<Service, "context">, count: number): Promise<void> {
  const names = (table: string) =>
    store.all<{ name: string }>("SELECT name FROM pragma_table_info(?)", table).map(({ name }) => name);
  const copy = (table: string, replaced: Record<string, string>): string =>
    `INSERT INTO ${table} SELECT ${names(table)
      .map((name) => replaced[name] ?? name)
      .join(", ")} FROM ${table} LIMIT 1`;
  const id = "printf('%014x', ?1)";
  const all = [
    copy("machines", { id, name: "printf('copy-%d', ?1)" }),
    copy("machine_versions", { machine: id }),
    copy("events", { machine: id }),
    copy("volumes", { id: "printf('vol_%d', ?1)", machine: "NULL" }),
  ];
  return store.write(() => {
    for (let i = 1; i <= count; i++) {
      for (const sql of all) store.run(sql, i);
      timers.after(9e14, "volume.backup", `vol_${i}`);
    }
  });
}

const counted = ["machines", "machine_versions", "events", "volumes", "secrets", "secret_sets", "tokens", "timers"];
const rows = ({ context }: Pick<Service, "context">): number[] =>
  counted.map((table) => context.store.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? -1);

async function filled(options: Parameters<typeof withApp>[0] = {}, count = 3000) {
  const app = await withApp(options);
  await app.call("POST", "/apps/web/secrets/ONE", { value: "1" });
  await app.call("POST", "/apps", { name: "other", org_slug: "personal" });
  const before = rows(app.service);
  before[counted.indexOf("secrets")] = 0;
  const deploy = (await app.call("POST", "/apps/web/deploy_token", {})).body.token as string;
  await app.machine();
  await app.volume();
  await fill(app.service, count);
  return { ...app, before, deploy };
}

const patient = { timeout: hang, interval: 10 };
/** Waits until no App is being deleted, and until that is committed. */
async function isGone({ context: { store } }: Pick<Service, "context">): Promise<void> {
  await vi.waitFor(() => expect(store.all("SELECT 1 FROM apps WHERE deleting > 0")).toEqual([]), patient);
  await store.unsettled;
}

/** Stops all work after a commit until it is resumed. */
function held({ context: { store, waits } }: Pick<Service, "context">): { goOn(): Promise<void> } {
  const { hooks } = store;
  store.hooks = { ...hooks, afterCommit: (touched) => waits.wake(touched) };
  return {
    goOn() {
      store.hooks = hooks;
      return store.write(() => {});
    },
  };
}

/** Records how many rows each commit removes. */
function watched({ context: { store } }: Pick<Service, "context">): { readonly removed: number[] } {
  const total = () =>
    counted.reduce((n, table) => n + (store.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? 0), 0);
  const removed: number[] = [];
  let last = total();
  const { hooks } = store;
  store.hooks = {
    ...hooks,
    afterCommit(touched) {
      const now = total();
      removed.push(last - now);
      last = now;
      hooks.afterCommit(touched);
    },
  };
  return { removed };
}

test("F46 an App with very many parts is hidden at once and removed in pieces", async () => {
  const { service, call, machines, url, deploy, before } = await filled();
  const [{ id }] = service.context.store.all<{ id: string }>("SELECT id FROM machines LIMIT 1") as [{ id: string }];
  const { removed } = watched(service);
  const still = held(service);
  expect((await call("DELETE", "/apps/web")).status).toBe(202);
  expect(rows(service)[0]).toBeGreaterThan(0);
  expect((await call("GET", "/apps/web")).status).toBe(404);
  expect((await call("GET", `${machines}/${id}`)).status).toBe(404);
  expect((await call("GET", "/apps?org_slug=personal")).body).toMatchObject({
    total_apps: 1,
    apps: [{ name: "other" }],
  });
  expect((await call("GET", "/orgs/personal/machines")).body.machines).toEqual([]);
  expect((await call("GET", "/orgs/personal/volumes")).body.volumes).toEqual([]);
  const late = callerWith({ url, service }, "late");
  expect((await late("GET", "/apps/web")).status).toBe(404);
  expect([401, 404]).toContain(
    (await fetch(`${url}/v1/apps/web`, { headers: { authorization: `Bearer ${deploy}` } })).status,
  );
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201); // its name can be reused
  await still.goOn();
  await isGone(service);
  const left = rows(service);
  left[counted.indexOf("tokens")] = before[counted.indexOf("tokens")] ?? 0;
  expect(left).toEqual(before);
  expect(removed.length).toBeGreaterThan(5);
  // A piece may exceed its size by the rows of its last Machine.
  expect(Math.max(...removed)).toBeLessThan(unitsAtOnce + 300);
  expect(service.context.store.all("SELECT machines FROM region_use WHERE machines <> 0")).toEqual([]);
});

test.each([
  ["apps", partsOfApp],
  ["clusters", partsOfCluster],
])("F46 every table that refers to %s is emptied in pieces", async (owner, parts) => {
  const { store } = (await withApp()).service.context;
  const referring = store.all<{ name: string }>(
    `SELECT DISTINCT t.name FROM pragma_table_list t JOIN pragma_foreign_key_list(t.name) f
     WHERE t.schema = 'main' AND f."table" = ? ORDER BY t.name`,
    owner,
  );
  expect(parts.map(({ table }) => table).sort()).toEqual(referring.map(({ name }) => name));
});

test("F46 an interrupted removal resumes after a restart", async () => {
  const data = join(folder, "data");
  const { service, call, close } = await filled({ data });
  held(service);
  await call("DELETE", "/apps/web");
  await close();
  const again = createService({ data, delays: "none" });
  try {
    expect(rows(again)[0]).toBeGreaterThan(0);
    again.context.clock.advance(2000);
    await isGone(again);
    expect(rows(again)[0]).toBe(0);
  } finally {
    await again.close();
  }
});

test("F46 the contents of a deleted cluster are removed in pieces and hidden at once", async () => {
  const { service, call } = await withApp();
  const { data } = (await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name: "db" }))
    .body;
  const { store } = service.context;
  await store.write(() => {
    for (let i = 0; i < 5000; i++) store.insert("databases", { cluster: data.id, name: `d${i}`, created_at: 0 });
  });
  const still = held(service);
  expect((await call("DELETE", `/postgres/${data.id}`)).status).toBeLessThan(300);
  const left = () => store.all("SELECT 1 FROM databases").length;
  expect(left()).toBeGreaterThan(2000);
  expect((await call("GET", `/postgres/${data.id}/databases`)).status).toBe(410);
  await still.goOn();
  await vi.waitFor(() => expect(left()).toBe(0), patient);
  await store.unsettled;
  expect(store.all("SELECT 1 FROM timers WHERE kind = 'cluster.clear'")).toEqual([]);
});
