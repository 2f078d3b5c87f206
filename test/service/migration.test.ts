// An old data folder is upgraded without losing anything, even if the upgrade is interrupted (F28, F46). KILL_STRIDE=1
// tests every statement; by default the test uses a few of them.
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { createService } from "../../service/index.ts";
import { killAtEach, killTimeout } from "./killAtEach.ts";
import { held, writeOldFolder } from "./oldFolder.ts";

const folder = mkdtempSync(join(tmpdir(), "machines-migration-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = `/apps/web/machines/${held.machine}`;

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
    expect(store.all("SELECT version, machine FROM secret_sets")).toEqual([{ version: 3, machine: null }]);
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

test("F46 a data folder with large values in its rows opens with everything in it, and a copy of the original is kept", async () => {
  const data = join(folder, "kept");
  writeOldFolder(data);
  await verify(data);
  const backup = new DatabaseSync(join(data, "service.db.backup-2"), { readOnly: true });
  expect(backup.prepare("SELECT count(*) AS n FROM machines WHERE secrets IS NOT NULL").get()).toEqual({ n: 1 });
  backup.close();
});

test(
  "F28 F46 killed at a statement of the upgrade, the folder opens with everything in it and no leftovers",
  {
    timeout: killTimeout,
  },
  async () => {
    const old = join(folder, "old");
    writeOldFolder(old);
    const statements = await killAtEach(folder, {
      program: "migratedRun.ts",
      kills: 4,
      prepare: (data) => cpSync(old, data, { recursive: true }),
      async verify(data) {
        await verify(data);
        expect(readdirSync(data).filter((name) => /\d/.test(name))).toEqual(["service.db.backup-2"]);
      },
    });
    expect(statements).toBeGreaterThan(50);
  },
);
