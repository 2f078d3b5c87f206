// A data folder of an older service, which kept configurations and encrypted secrets in the rows of Machines.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { seededRandom } from "../../service/index.ts";
import { migrations } from "../../service/store/schema.ts";
import { sealedName } from "../../service/store/secretValues.ts";
import { Vault } from "../../service/store/vault.ts";

/** The content of the old folder, as answers show it. */
export const held = {
  secrets: { ONE: "first", TWO: "second" },
  /** The secrets of its Machine, from before `TWO` was set. */
  ofMachine: { ONE: "older" },
  config: { image: "nginx:2", env: { A: "é\u2028\"'" }, guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 } },
  metadata: { role: "leader" },
  versions: ["01HQ73A7BFFDF1B6WMGHFZZ4E7", "01HQ73A7BFFDF1B6WMGHFZZ4E8"],
  machine: "00000000000001",
} as const;

/** Writes the old folder. */
export function writeOldFolder(data: string): void {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const random = seededRandom("old");
  const key = random(32);
  writeFileSync(join(data, "key"), `${Buffer.from(key).toString("base64")}\n`, { mode: 0o600 });
  const vault = new Vault(() => key, random);
  const db = new DatabaseSync(join(data, "service.db"));
  db.exec("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON");
  for (const step of migrations.slice(0, 2)) db.exec(step);
  db.exec("PRAGMA user_version = 2");
  const insert = (table: string, row: Record<string, SQLInputValue>): void => {
    const names = Object.keys(row);
    db.prepare(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`).run(
      ...Object.values(row),
    );
  };
  insert("orgs", { id: 1, slug: "personal", name: "Personal" });
  insert("apps", { id: "a", org: 1, name: "web", network: "default", secrets_version: 3, created_at: 0 });
  for (const [name, value] of Object.entries(held.secrets))
    insert("secrets", {
      ...{ app: "a", name, digest: "d", created_at: 0, updated_at: 0 },
      value: vault.seal(sealedName("a", name), value),
    });
  const { machine, versions, config, metadata } = held;
  const row = { app: "a", region: "ams", private_ip: "fdaa::1", image_ref: "{}", cordoned: 0, launch: 1, restarts: 0 };
  const times = { checked_at: 0, created_at: 0, updated_at: 1 };
  const now = JSON.stringify(config);
  insert("machines", {
    ...{ ...row, ...times, id: machine, name: "one", state: "started", version: versions[1], checks: "passing" },
    ...{ config: now, metadata: JSON.stringify(metadata) },
    secrets: vault.seal(`machine/${machine}`, JSON.stringify(held.ofMachine)),
  });
  insert("machines", {
    ...{
      ...row,
      ...times,
      id: "00000000000002",
      name: "two",
      state: "stopped",
      version: versions[0],
      checks: "warning",
    },
    ...{ config: '{"image":"nginx","standbys":["00000000000001"]}', metadata: null },
  });
  insert("machine_versions", {
    machine: "00000000000002",
    version: versions[0],
    config:
      '{"image":"nginx","size":"performance-2x","services":[{"protocol":"tcp","internal_port":80,"checks":[{"type":"tcp"}]}]}',
  });
  insert("machine_versions", {
    machine,
    version: versions[0],
    config: '{"image":"nginx:1","metadata":{"role":"old"}}',
  });
  insert("machine_versions", {
    machine,
    version: versions[1],
    config: `${now.slice(0, -1)},"metadata":{"role":"new"}}`,
  });
  for (const id of [machine, "00000000000002"])
    insert("events", {
      ...{ machine: id, id: "01HQ73A7BFFDF1B6WMGHFZZ4E9", type: "start", status: "started", source: "flyd" },
      ...{ timestamp: 0, version: versions[1], moved: 1 },
    });
  insert("volumes", {
    ...{ id: "vol_1", app: "a", name: "data", state: "created", region: "ams", zone: "z", size_gb: 1, encrypted: 1 },
    ...{
      fstype: "ext4",
      mounted: 0,
      snapshot_retention: 5,
      auto_backup: 0,
      machine: null,
      created_at: 0,
      updated_at: 1,
    },
  });
  insert("leases", {
    ...{ machine, nonce: "n", owner: "o", description: "mine", version: versions[1], expires_at: 4e12 },
  });
  insert("hostnames", {
    ...{ app: "a", hostname: "www.example.com", owner_code: "c", acme_requested: 0, dns_seen: 0, ownership_seen: 0 },
    ...{ attempts: "[]", problems: "[]", created_at: 0, updated_at: 0 },
    ...{ custom_key: vault.seal("certificate/a/www.example.com", "k"), custom_chain: "chain" },
  });
  db.close();
}
