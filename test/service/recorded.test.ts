// A data folder that an earlier version has recorded (test/upgrade/) is upgraded, and answers as before (F28, F46).
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { createService, ManualClock } from "../../service/index.ts";
import { releaseOf, releases } from "../../service/releases.ts";
import { schemaOf, Store, storeFile } from "../../service/store/database.ts";
import { currentSchema } from "../../service/store/schema.ts";
import { writerOf } from "../../service/store/writer.ts";
import { version } from "../../service/version.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { recordedFolders, restoreServiceRecord, serviceRecordOf } from "../upgrade/serviceRecord.ts";
import { killAtEach, killTimeout } from "./killAtEach.ts";
import { contents, plantMigration } from "./oldFolder.ts";

const folder = mkdtempSync(join(tmpdir(), "machines-recorded-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a recorded folder, and returns its path and its schema. */
function restored(name: string, as: string): { data: string; schema: number } {
  const data = join(folder, `${name}-${as}`);
  restoreServiceRecord(name, data);
  const db = new DatabaseSync(storeFile(data), { readOnly: true });
  const schema = schemaOf(db);
  db.close();
  return { data, schema };
}

/** Checks that a service of the folder gives all answers of the record, at the moment of the record. */
async function expectAnswers(name: string, data: string): Promise<void> {
  const { at, answers } = serviceRecordOf(name);
  // Before the service begins one.
  const hasHistory = existsSync(join(data, "history.db"));
  const service = createService({ data, clock: new ManualClock(at), delays: "none", strict: true });
  try {
    for (const { method, path, body, status, answer } of answers) {
      const headers = { authorization: `Bearer ${service.token}` };
      const got = await service.app.inject({ method, url: path, headers, ...(body ? { payload: body } : {}) });
      const about = `${method} ${path}`;
      const given: unknown = got.body === "" ? undefined : got.json();
      expect([about, got.statusCode, given]).toMatchObject([about, status, answer]);
    }
    if (hasHistory)
      expect(await service.context.history.entries({ org: "personal", limit: 1000 })).toContainEqual(
        expect.objectContaining({ operation: "apps.create", status: 201 }),
      );
    const { store } = service.context;
    expect([schemaOf(store.db), writerOf(store.db)]).toEqual([currentSchema(), version]);
    expect(store.all("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(store.all("PRAGMA foreign_key_check")).toEqual([]);
  } finally {
    await service.close();
  }
}

const copies = (data: string): string[] => readdirSync(data).filter((name) => name.includes(".backup-"));

test("this release and the two before it are recorded", () => {
  const own = releases.indexOf(releaseOf(version));
  expect(own).toBe(releases.length - 1);
  const recorded = new Set(recordedFolders().map(releaseOf));
  expect(releases.slice(Math.max(0, own - 2)).filter((one) => !recorded.has(one))).toEqual([]);
});

describe.each(recordedFolders())("the data folder that %s recorded", (name) => {
  test("has a row in every table", () => {
    const { data } = restored(name, "rows");
    const empty = Object.entries(contents(data)).filter(([, rows]) => rows.length === 0);
    expect(empty).toEqual([]);
  });

  test("F46 answers as before, and the copy from before the upgrade has everything", async () => {
    const { data, schema } = restored(name, "served");
    const before = contents(data);
    await expectAnswers(name, data);
    expect(copies(data)).toEqual(schema < currentSchema() ? [`service.db.backup-${schema}`] : []);
    for (const copy of copies(data)) expect(contents(data, copy)).toEqual(before);
  });

  test(
    "F28 F46 killed at a statement of the upgrade, it opens and answers as before",
    { timeout: killTimeout },
    async ({ skip }) => {
      const { data: old, schema } = restored(name, "killed");
      skip(schema === currentSchema(), "it has the tables of this version");
      afterThisTest(plantMigration());
      await killAtEach(folder, {
        program: "migratedRun.ts",
        kills: 2,
        prepare: (data) => cpSync(old, data, { recursive: true }),
        async verify(data) {
          await expectAnswers(name, data);
          expect(copies(data)).toEqual([`service.db.backup-${schema}`]);
          rmSync(data, { recursive: true, force: true });
        },
      });
    },
  );
});

test("an upgraded store records the version that wrote it, also before a service has begun", () => {
  const { data } = restored("schema-13", "writer");
  const store = new Store(storeFile(data));
  expect(writerOf(store.db)).toBe(version);
  store.close();
});
