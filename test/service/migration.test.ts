// An old data folder is opened and upgraded without losing anything, even if the upgrade is interrupted (F28, F46).
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { createService } from "../../service/index.ts";
import { Store, storeFile } from "../../service/store/database.ts";
import { lockData } from "../../service/store/lock.ts";
import { openForCommand } from "../../service/store/openForCommand.ts";
import { firstSchema, stepsFrom } from "../../service/store/schema.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { killAtEach, killTimeout } from "./killAtEach.ts";
import { contents, held, planted, plantMigration, replaceMigrations, writeOldFolder } from "./oldFolder.ts";

const folder = mkdtempSync(join(tmpdir(), "machines-migration-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = `/apps/web/machines/${held.machine}`;

const backup = `service.db.backup-${firstSchema}`;

/** The tables, indexes and triggers of a store, without differences of how they were written down. */
const shapes = (db: DatabaseSync): unknown[] =>
  db
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    .all()
    .map(({ type, name, sql }) => [type, name, String(sql).replaceAll(/["\s]/g, "")]);

/** Checks through a service that everything of the old folder exists. */
async function verify(data: string): Promise<void> {
  const service = createService({ data, delays: "none", strict: true });
  try {
    const call = async (method: "GET" | "POST", path: string, payload?: object, nonce = "n") => {
      const headers = { authorization: `Bearer ${service.token}`, "svc-machine-lease-nonce": nonce };
      const answer = await service.app.inject({ method, url: `/v1${path}`, headers, ...(payload ? { payload } : {}) });
      return { status: answer.statusCode, body: answer.body === "" ? undefined : answer.json() };
    };
    const env = async () => (await call("POST", `${at}/exec`, { command: ["env"] })).body.stdout.split("\n");
    const machine = (await call("GET", `${at}?include_leases=true`)).body;
    expect(machine).toMatchObject({ state: "started", version: held.versions[1], lease: { description: "mine" } });
    expect(machine.config).toEqual({ ...held.config, metadata: held.metadata });
    expect((await call("GET", `${at}/versions`)).body).toEqual([
      { version: held.versions[1], user_config: { ...held.config, metadata: { role: "new" } } },
      { version: held.versions[0], user_config: { image: "nginx:1", metadata: { role: "old" } } },
    ]);
    expect((await call("GET", "/orgs/personal/machines")).body.machines).toMatchObject([
      { id: held.machine, config: { image: "nginx:2", guest: held.config.guest, metadata: held.metadata } },
      { id: "00000000000002", config: { image: "nginx" } },
    ]);
    expect((await call("GET", "/orgs/personal/volumes")).body.volumes).toMatchObject([{ id: "vol_1" }]);
    expect((await call("GET", "/apps/web/secrets?show_secrets=true")).body.secrets).toMatchObject(
      Object.entries(held.secrets).map(([name, value]) => ({ name, value })),
    );
    expect((await call("GET", "/apps/web/certificates")).body.certificates).toMatchObject([
      { hostname: "www.example.com" },
    ]);
    // Encrypted for only this Machine, and without `TWO`.
    expect(await env()).toContain("ONE=older");
    expect((await env()).filter((line: string) => line.startsWith("TWO="))).toEqual([]);
    expect((await call("POST", at, { config: held.config })).status).toBe(200);
    expect(await env()).toEqual(expect.arrayContaining(["ONE=first", "TWO=second"]));
    const { store } = service.context;
    expect(store.all("SELECT version, machine FROM secret_sets")).toEqual([{ version: 4, machine: null }]);
    expect(store.all("SELECT cpu_kind, machines FROM region_use")).toEqual([{ cpu_kind: "shared", machines: 2 }]);
    expect(store.all("SELECT id FROM machines WHERE standby = 1")).toEqual([{ id: "00000000000002" }]);
    expect(store.all("SELECT size, has_checks FROM machines ORDER BY id")).toEqual([
      { size: null, has_checks: 0 },
      { size: "performance-2x", has_checks: 1 },
    ]);
    expect(store.all("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(store.all("PRAGMA foreign_key_check")).toEqual([]);
    expect(store.get("PRAGMA foreign_keys")).toEqual({ foreign_keys: 1 });
  } finally {
    await service.close();
  }
}

test("F46 a data folder of the first schema opens with everything in it, and its tables are those of a new one", () => {
  const data = join(folder, "same");
  writeOldFolder(data);
  afterThisTest(replaceMigrations([]));
  const before = contents(data);
  expect(Object.entries(before).filter(([, rows]) => rows.length === 0)).toEqual([]);
  new Store(storeFile(data)).close();
  expect(contents(data)).toEqual(before);
  expect(readdirSync(data).filter((name) => name.includes("backup"))).toEqual([]);

  const made = new DatabaseSync(":memory:");
  for (const step of stepsFrom(0).slice(0, 1)) made.exec(step);
  const recorded = new DatabaseSync(storeFile(data));
  expect(shapes(made)).toEqual(shapes(recorded));
  made.close();
  recorded.close();
});

test("F46 a service that opens a data folder of the first schema serves everything in it", async () => {
  const data = join(folder, "served");
  writeOldFolder(data);
  await verify(data);
});

test("F46 an upgraded data folder has everything in it, and a copy of the original is kept", () => {
  const data = join(folder, "kept");
  writeOldFolder(data);
  const before = contents(data);
  afterThisTest(replaceMigrations([planted]));
  new Store(storeFile(data)).close();
  expect(contents(data)).toEqual({
    ...before,
    apps: before["apps"]?.map((row) => ({ ...row, planted: "web-planted" })),
  });
  expect(contents(data, backup)).toEqual(before);
  const { mtimeMs } = statSync(join(data, backup));
  new Store(storeFile(data)).close(); // nothing to upgrade any more
  expect(statSync(join(data, backup)).mtimeMs).toBe(mtimeMs);
  expect(statSync(join(data, backup)).mode & 0o777).toBe(0o600);
  expect(readdirSync(data).filter((name) => name.includes("backup"))).toEqual([backup]);
});

test("a store of an earlier schema is refused with what to do, and unchanged", () => {
  const data = join(folder, "earlier");
  writeOldFolder(data);
  const db = new DatabaseSync(storeFile(data));
  db.exec(`PRAGMA user_version = ${firstSchema - 1}`);
  db.close();
  const before = contents(data);
  expect(() => createService({ data })).toThrow(
    `service.db was written by a machines-service from before the first release (schema 12): open it once with one that knows schema 13, which upgrades it, or use another data folder.`,
  );
  expect(contents(data)).toEqual(before);
});

test("concurrent upgrades of a store leave one backup, of the original", async () => {
  const data = join(folder, "concurrent");
  writeOldFolder(data);
  const before = contents(data);
  const open = join(__dirname, "migratedRun.ts");
  await Promise.all(
    Array.from({ length: 4 }, () =>
      promisify(execFile)(process.execPath, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", open, data]),
    ),
  );
  expect(contents(data, backup)).toEqual(before);
  expect(readdirSync(data).filter((name) => name.includes("backup"))).toEqual([backup]);
});

test("a command does not change the tables while an older service uses them", () => {
  const data = join(folder, "used");
  writeOldFolder(data);
  afterThisTest(plantMigration());
  const older = lockData(data);
  expect(() => openForCommand(data)).toThrow(`the running service of ${data} has an older version; stop it first`);
  older.release();
  expect(readdirSync(data).filter((name) => name.includes("backup"))).toEqual([]);
  openForCommand(data).close();
  expect(readdirSync(data).filter((name) => name.includes("backup"))).toEqual([backup]);
});

test(
  "F28 F46 killed at a statement of the upgrade, the folder opens with everything in it and no leftovers",
  { timeout: killTimeout },
  async () => {
    const old = join(folder, "old");
    writeOldFolder(old);
    afterThisTest(plantMigration());
    const statements = await killAtEach(folder, {
      program: "migratedRun.ts",
      kills: 4,
      prepare: (data) => cpSync(old, data, { recursive: true }),
      async verify(data) {
        await verify(data);
        expect(readdirSync(data).filter((name) => /\d/.test(name))).toEqual([backup]);
      },
    });
    expect(statements).toBeGreaterThan(20);
  },
);
