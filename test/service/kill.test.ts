// Repeated kill -9 under load (F28): confirmed changes are kept, and none is partial.
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startLocal } from "../../service/index.ts";
import { isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";
import { kill } from "../support/processes.ts";
import { caller, type Call } from "./client.ts";

const rounds = isThorough ? 300 : 8;
const writers = 6;
const data = join(mkdtempSync(join(tmpdir(), "machines-kill-")), "data");
let last: number | undefined;
afterAll(() => {
  if (last !== undefined) kill([last]);
  // A killed process may still be exiting.
  rmSync(join(data, ".."), { recursive: true, force: true, maxRetries: 10 });
});

interface Known {
  /** Machines whose creation was confirmed, with their last confirmed metadata value. */
  readonly machines: Map<string, string | undefined>;
  readonly volumes: Set<string>;
}

/** Writes until the connection is lost; records only confirmed writes. */
async function write(call: Call, known: Known, name: string): Promise<void> {
  for (let i = 0; ; i++) {
    try {
      const made = await call("POST", "/apps/web/machines", { name: `${name}-${i}`, config: { image: "nginx" } });
      if (made.status !== 200) throw new Error(`${made.status} ${made.text}`);
      known.machines.set(made.body.id, undefined);
      if ((await call("POST", `/apps/web/machines/${made.body.id}/metadata/n`, { value: String(i) })).status === 204)
        known.machines.set(made.body.id, String(i));
      const volume = await call("POST", "/apps/web/volumes", { name: "data" });
      if (volume.status === 200) known.volumes.add(volume.body.id);
    } catch (error) {
      if (error instanceof TypeError) return; // the error of `fetch` when the connection is lost
      throw error;
    }
  }
}

async function verify(call: Call, known: Known): Promise<void> {
  const machines: { id: string; name: string; config: { metadata?: { n?: string } }; events: unknown[] }[] = (
    await call("GET", "/apps/web/machines")
  ).body;
  const byId = new Map(machines.map((machine) => [machine.id, machine]));
  for (const [id, value] of known.machines) {
    expect(byId.has(id)).toBe(true);
    if (value !== undefined) expect(byId.get(id)?.config.metadata?.n).toBe(value);
  }
  expect(machines.every(({ events }) => events.length > 0)).toBe(true); // a Machine without its launch event would be a partial change
  const volumes: { id: string }[] = (await call("GET", "/apps/web/volumes")).body;
  const there = new Set(volumes.map(({ id }) => id));
  expect([...known.volumes].filter((id) => !there.has(id))).toEqual([]);
}

function checkFile(): void {
  const db = new DatabaseSync(join(data, "service.db"));
  expect(db.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  expect(db.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
  // Every Machine has the version it runs; every transient state has a step that leaves it.
  const orphan =
    "SELECT id FROM machines m WHERE NOT EXISTS (SELECT 1 FROM machine_versions v WHERE v.machine = m.id AND v.version = m.version)";
  const stuck =
    "SELECT id FROM machines m WHERE state IN ('created', 'starting') AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.subject = m.id AND t.kind = 'runtime.step')";
  for (const sql of [orphan, stuck]) expect(db.prepare(sql).all()).toEqual([]);
  db.close();
}

test(
  `F28 kill -9 under load, ${rounds} times: no confirmed change is lost`,
  { timeout: Math.max(wholeTest, rounds * 60_000) },
  async () => {
    const known: Known = { machines: new Map(), volumes: new Set() };
    for (let round = 0; round <= rounds; round++) {
      const { url, token, pid } = await startLocal({ data });
      last = pid;
      const call = caller(url, token);
      if (round === 0) await call("POST", "/apps", { name: "web", org_slug: "personal" });
      else await verify(call, known);
      if (round === rounds) break;
      const before = known.machines.size;
      const writing = Promise.all(Array.from({ length: writers }, (_, i) => write(call, known, `r${round}-w${i}`)));
      // Later in every round, so that each kill interrupts another step.
      await expect
        .poll(() => known.machines.size, { interval: 1 })
        .toBeGreaterThanOrEqual(before + 3 + (round % 20) * 2);
      process.kill(pid, "SIGKILL");
      await writing;
      checkFile();
    }
    expect(known.machines.size).toBeGreaterThan(rounds * 3);
  },
);
