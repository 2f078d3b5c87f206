// A process killed at a single write: confirmed changes are kept, none is partial, and pending work continues (F28). `npm
// run test:all` tests every write, `npm test` a few of them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { createService } from "../../service/index.ts";
import { steps } from "../../service/states/machineStates.ts";
import { killAtEach, killTimeout } from "./killAtEach.ts";

const folder = mkdtempSync(join(tmpdir(), "machines-kill-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Answered {
  readonly method: string;
  readonly path: string;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests access answers freely
}

const linesOf = (text: string): Answered[] =>
  text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line));

/** Opens the folder of a killed process, and checks that it has every confirmed change. */
async function verify(data: string, answered: readonly Answered[]): Promise<void> {
  const service = createService({ data, delays: "none" });
  try {
    const call = async (path: string) => {
      const headers = { authorization: `Bearer ${service.token}` };
      const answer = await service.app.inject({ method: "GET", url: `/v1${path}`, headers });
      return { status: answer.statusCode, body: answer.body === "" ? undefined : answer.json() };
    };
    const done = (method: string, part: RegExp) =>
      answered.findLast((one) => one.method === method && part.test(one.path));
    if (done("POST", /^\/apps$/)) expect((await call("/apps/web")).status).toBe(200);
    const secrets = done("POST", /secrets$/);
    if (secrets) {
      const names = (await call("/apps/web/secrets?show_secrets=true")).body.secrets.map(
        (one: { name: string }) => one.name,
      );
      expect(names).toContain("ONE");
      if (done("DELETE", /secrets/)) expect(names).toEqual(["ONE"]);
    }
    const volume = done("POST", /volumes$/);
    if (volume) {
      const now = (await call(`/apps/web/volumes/${volume.body.id}`)).body;
      expect(now.size_gb).toBeGreaterThanOrEqual(done("PUT", /extend$/) ? 2 : 1);
    }
    const made = done("POST", /machines$/);
    if (made) {
      const machine = (await call(`/apps/web/machines/${made.body.id}`)).body;
      const updated = done("POST", /machines\/[^/]+$/);
      if (updated) expect(machine.version >= updated.body.version).toBe(true);
      // The update, which may be applied without an answer, replaces the whole metadata.
      if (done("POST", /metadata/) && machine.version === made.body.version)
        expect(machine.config.metadata).toEqual({ role: "leader" });
      if (done("DELETE", /machines/)) expect(machine.state).toBe("destroyed");
      else if (done("POST", /stop$/)) expect(machine.state).toMatch(/^(stopped|destroyed)$/);
      else expect(Object.keys(steps)).not.toContain(machine.state); // its timers have continued
    }
    if (done("POST", /acme$/))
      expect((await call("/apps/web/certificates/www.example.com")).body.status).toBe("active");
    const cluster = done("POST", /^\/postgres$/);
    if (cluster) expect((await call(`/postgres/${cluster.body.data.id}`)).body.data.status).toBe("ready");
  } finally {
    await service.close();
  }
}

function checkFile(data: string): void {
  const db = new DatabaseSync(join(data, "service.db"));
  try {
    expect(db.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    expect(db.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
    const halves = [
      "SELECT id FROM machines m WHERE NOT EXISTS (SELECT 1 FROM machine_versions v WHERE v.machine = m.id AND v.version = m.version)",
      "SELECT id FROM machines m WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.machine = m.id)",
      "SELECT id FROM volumes v WHERE machine IS NOT NULL AND NOT EXISTS (SELECT 1 FROM machines m WHERE m.id = v.machine)",
      "SELECT id FROM clusters c WHERE status <> 'deleted' AND NOT EXISTS (SELECT 1 FROM database_users u WHERE u.cluster = c.id)",
    ];
    for (const sql of halves) expect([sql, db.prepare(sql).all()]).toEqual([sql, []]);
  } finally {
    db.close();
  }
}

test(
  "F28 killed at a write, every confirmed change is kept and none is partial",
  {
    timeout: killTimeout,
  },
  async () => {
    const writes = await killAtEach(folder, {
      program: "scriptedRun.ts",
      kills: 6,
      async verify(data, printed) {
        await verify(data, linesOf(printed));
        checkFile(data);
      },
    });
    expect(writes).toBeGreaterThan(100);
  },
);
