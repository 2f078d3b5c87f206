// Hostnames of a store from before each belonged to one App.
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { migrations } from "../../../service/store/schema.ts";

const step = migrations.findIndex((one) => one.includes("hostnames ADD COLUMN owned_at"));

test("F70: of a hostname that several Apps had, one keeps it: with a certificate, or the first that asked", () => {
  const db = new DatabaseSync(":memory:");
  for (const before of migrations.slice(0, step)) db.exec(before);
  db.exec("INSERT INTO orgs (id, slug, name) VALUES (1, 'red', 'Red'), (2, 'blue', 'Blue')");
  const addApp = db.prepare(
    "INSERT INTO apps (id, org, name, network, deleting, created_at) VALUES (?, ?, ?, 'default', ?, 0)",
  );
  for (const [id, org, deleting] of [
    ["a", 1, 0],
    ["b", 2, 0],
    ["gone", 1, 2],
  ] as const)
    addApp.run(id, org, `app-${id}`, deleting);
  const add = db.prepare(`INSERT INTO hostnames (app, hostname, owner_code, acme_requested, acme_status, custom_status,
    dns_seen, ownership_seen, attempts, problems, created_at, updated_at, issued_chain)
    VALUES (?, ?, 'c', 1, ?, ?, ?, 0, '[]', '[]', ?, 0, 'chain')`);
  for (const row of [
    ["a", "active.example.com", "pending_validation", null, 1, 1],
    ["b", "active.example.com", "active", null, 1, 2],
    ["a", "first.example.com", "active", null, 1, 2],
    ["b", "first.example.com", null, "active", 1, 1],
    ["a", "none.example.com", "pending_validation", null, 0, 1],
    ["b", "none.example.com", "pending_validation", null, 0, 2],
    ["gone", "left.example.com", "active", null, 1, 1],
    ["b", "left.example.com", "active", null, 1, 2],
    ["a", "shop.localhost", null, "active", 1, 1],
  ] as const)
    add.run(...row);
  db.exec(migrations[step] ?? "");
  const rows = db
    .prepare(
      `SELECT hostname, app, owned_at IS NOT NULL AS owns, ifnull(acme_status, custom_status) AS status,
        issued_chain IS NOT NULL AS served FROM hostnames ORDER BY hostname, app`,
    )
    .all()
    .map((row) => Object.values(row).join(" "));
  expect(rows).toEqual([
    "active.example.com a 0 pending_ownership 0",
    "active.example.com b 1 active 1",
    "first.example.com a 0 pending_ownership 0",
    "first.example.com b 1 active 1",
    "left.example.com b 1 active 1",
    "left.example.com gone 0 pending_ownership 0",
    "none.example.com a 0 pending_validation 1",
    "none.example.com b 0 pending_validation 1",
    "shop.localhost a 0 pending_ownership 0",
  ]);
  db.close();
});
