// The changes of a service, applied to a copy: random requests and time, after which both have the same rows.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ManualClock, seededRandom } from "../../../service/index.ts";
import { apply, decode, encode, lead, positionOf, Recorder, triggersOf } from "../../../service/replication/changes.ts";
import { LeaderLog } from "../../../service/replication/leaderLog.ts";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { createService } from "../../../service/service.ts";
import { Store } from "../../../service/store/database.ts";
import { isThorough } from "../../support/extent.mts";
import { makeCertificate } from "../../support/certificates.ts";
import { schemaOfCopies } from "../../../service/store/memberCopy.ts";
import { contentsOf, emptyCopy, followLog } from "./copies.ts";

const seed = Number(process.env["FC_SEED"] ?? 20_260_101);
const runs = isThorough ? 500 : 40;

type Request = readonly [method: "POST" | "PUT" | "DELETE" | "PATCH", path: string, body?: object];
const certificate = makeCertificate({ hosts: ["own.example.com"] });

/** Requests of every kind; `{machine}` and the like stand for one of the objects there are. */
const requests: readonly Request[] = [
  ["POST", "/apps", { name: "web", org_slug: "personal" }],
  ["POST", "/apps", { name: "other", org_slug: "personal", network: "apart" }],
  ["DELETE", "/apps/web?force=true"],
  ["DELETE", "/apps/other"],
  ["POST", "/apps/web/machines", { config: { image: "nginx" }, skip_launch: true }],
  ["POST", "/apps/web/machines", { name: "named", region: "fra", config: { image: "nginx", auto_destroy: true } }],
  ["POST", "/apps/web/machines", { config: { image: "nginx", env: { MACHINES_SIMULATE: "exit:1" } } }],
  ["POST", "/apps/web/machines/{machine}", { config: { image: "nginx:2", guest: { cpu_kind: "performance" } } }],
  ["POST", "/apps/web/machines/{machine}", { config: { image: "nginx", metadata: { role: "leader" } } }],
  ["POST", "/apps/web/machines/{machine}/stop"],
  ["POST", "/apps/web/machines/{machine}/start"],
  ["POST", "/apps/web/machines/{machine}/lease", { ttl: 60 }],
  ["POST", "/apps/web/machines/{machine}/cordon"],
  ["POST", "/apps/web/machines/{machine}/metadata/key", { value: "value" }],
  ["DELETE", "/apps/web/machines/{machine}?force=true"],
  ["POST", "/apps/web/volumes", { name: "data", region: "ams" }],
  ["POST", "/apps/web/volumes", { name: "copy", region: "ams", source_volume_id: "{volume}" }],
  ["PUT", "/apps/web/volumes/{volume}/extend", { size_gb: 20 }],
  ["POST", "/apps/web/volumes/{volume}/snapshots"],
  ["DELETE", "/apps/web/volumes/{volume}"],
  ["POST", "/apps/web/secrets", { values: { ONE: "1", TWO: "2" } }],
  ["DELETE", "/apps/web/secrets/TWO"],
  ["POST", "/apps/web/secretkeys/key/generate", { type: "nacl_auth" }],
  ["POST", "/apps/web/certificates/acme", { hostname: "www.example.com" }],
  ["POST", "/apps/other/certificates/acme", { hostname: "www.example.com" }],
  ["POST", "/apps/web/certificates/custom", { hostname: "own.example.com", ...certificate }],
  ["DELETE", "/apps/web/certificates/www.example.com"],
  ["POST", "/apps/web/ip_assignments", { type: "v6" }],
  ["POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name: "db" }],
  ["POST", "/postgres/{cluster}/users", { username: "reader", role: "reader" }],
  ["POST", "/postgres/{cluster}/databases", { name: "orders" }],
  ["POST", "/postgres/{cluster}/attachments", { app_name: "web" }],
  ["POST", "/postgres/{cluster}/backups", { type: "full" }],
  ["DELETE", "/postgres/{cluster}/users/reader"],
  ["DELETE", "/postgres/{cluster}"],
];

const tablesOfIds = { machine: "machines", volume: "volumes", cluster: "clusters" } as const;

/** What happens: a request for the nth object there is, or that time passes. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ request: fc.constantFrom(...requests), nth: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ passes: fc.constantFrom(10, 500, 5000, 3600_000, 40 * 24 * 3600_000) }) },
);

/** A service that leads on a log. */
async function leader() {
  const clock = new ManualClock();
  const log = new MemoryLog(() => clock.now());
  await log.takeOver(0, { id: "one", address: "" }, 3600_000);
  const fatal = (): never => {
    throw new Error("the only leader was replaced");
  };
  const service = createService({
    ...{ clock, random: seededRandom("copies") },
    leading: {
      log: (db) =>
        new LeaderLog(db, schemaOfCopies(), {
          ...{ log, epoch: 1, pause: () => Promise.resolve(), lost: fatal, unsure: () => undefined },
        }),
      lock: { release() {} },
      run: "1",
    },
  });
  const { store } = service.context;
  const named = (text: string, nth: number): string =>
    text.replaceAll(/\{(machine|volume|cluster)\}/g, (_, kind: keyof typeof tablesOfIds) => {
      const found = store.all<{ id: string }>(`SELECT id FROM ${tablesOfIds[kind]} ORDER BY id`);
      return found[nth % Math.max(1, found.length)]?.id ?? "none";
    });
  const headers = { authorization: `Bearer ${service.token}` };
  const send = ([method, path, body]: Request, nth: number) =>
    service.app.inject({
      ...{ method, headers, url: `/v1${named(path, nth)}` },
      ...(body ? { payload: JSON.parse(named(JSON.stringify(body), nth)) as object } : {}),
    });
  return { clock, log, service, store, send };
}

test("a copy that applies every entry has the rows of the service", async () => {
  const statuses = new Map<string, Set<number>>();
  const property = fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 90 }), async (steps) => {
    const { clock, log, service, store, send } = await leader();
    const copy = emptyCopy();
    let last = 0;
    for (const [i, one] of steps.entries()) {
      if ("passes" in one) clock.advance(one.passes);
      else {
        const { statusCode } = await send(one.request, one.nth);
        const [method, path] = one.request;
        const name = `${method} ${path}`;
        statuses.set(name, (statuses.get(name) ?? new Set()).add(statusCode));
      }
      if (i % 10 === 0) last = await followLog(copy, log, last);
    }
    store.flush();
    await store.unsettled;
    await followLog(copy, log, last);
    expect(contentsOf(copy)).toEqual(contentsOf(store.db));
    await service.close();
  });
  await fc.assert(property, { seed, numRuns: runs });
  // A request that is always refused changes nothing.
  const useless = requests
    .map(([method, path]) => `${method} ${path}`)
    .filter((name) => ![...(statuses.get(name) ?? [])].some((status) => status < 300));
  expect(useless).toEqual([]);
});

test("every table has a primary key without nulls, by which a session sees it, or belongs to one copy", () => {
  const { db } = new Store(":memory:");
  const invisible = db
    .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .filter(({ name, sql }) => {
      const keys = db.prepare(`SELECT * FROM pragma_table_info('${String(name)}') WHERE pk > 0`).all();
      const isRowId = keys.length === 1 && keys[0]?.["type"] === "INTEGER";
      const isStrict = isRowId || String(sql).includes("WITHOUT ROWID") || keys.every((key) => key["notnull"] === 1);
      return keys.length === 0 || !isStrict;
    })
    .map(({ name }) => name);
  expect(invisible).toEqual(["written"]);
});

describe("an entry", () => {
  const pair = () => {
    const [first, second] = [emptyCopy(), emptyCopy()];
    for (const db of [first, second]) db.exec("INSERT INTO orgs (slug, name) VALUES ('acme', 'Acme')");
    const record = (sql: string, seq: number) => {
      const recorder = new Recorder(first);
      first.exec("BEGIN");
      recorder.begin();
      first.exec(sql);
      const recorded = recorder.end({ epoch: 1, seq });
      first.exec("COMMIT");
      if (!recorded) throw new Error("nothing was recorded");
      return recorded;
    };
    return { first, second, record };
  };

  test("an entry is applied once and in order, and one that does not fit changes nothing", () => {
    const { second, record } = pair();
    const one = record("UPDATE orgs SET name = 'One'", 1);
    const two = record("UPDATE orgs SET name = 'Two'", 2);
    expect(() => apply(second, [{ position: { epoch: 1, seq: 2 }, recorded: two }])).toThrow(
      "entry 2 does not follow entry 0",
    );
    apply(second, [{ position: { epoch: 1, seq: 1 }, recorded: one }]);
    expect(() => apply(second, [{ position: { epoch: 1, seq: 1 }, recorded: one }])).toThrow(
      "entry 1 does not follow entry 1",
    );
    second.exec("UPDATE orgs SET name = 'Damaged'");
    expect(() => apply(second, [{ position: { epoch: 1, seq: 2 }, recorded: two }])).toThrow(
      "entry 2 does not fit this copy",
    );
    expect([second.prepare("SELECT name FROM orgs").get()?.["name"], positionOf(second)]).toEqual([
      "Damaged",
      { epoch: 1, seq: 1 },
    ]);
  });

  test("its bytes have its changes, and counters of rows that exist no more", async () => {
    const { first, second, record } = pair();
    const insert =
      "INSERT INTO clusters VALUES ('c', 1, 1, 'db', 'ams', 'basic', 'ready', 10, '18', 'x', 0, '', 0, 0, NULL, NULL)";
    const recorded = record(
      `${insert}; INSERT INTO cluster_changes (cluster, change) VALUES ('c', ''); DELETE FROM cluster_changes`,
      1,
    );
    apply(second, [{ position: { epoch: 1, seq: 1 }, recorded: await decode(await encode(recorded)) }]);
    expect(contentsOf(second)).toEqual(contentsOf(first));
    expect(second.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'cluster_changes'").get()).toEqual({ seq: 1 });
  });

  test("unique names change their rows in any order", () => {
    const { first, second, record } = pair();
    first.exec("INSERT INTO orgs (slug, name) VALUES ('b', 'B'), ('c', 'C')");
    second.exec("INSERT INTO orgs (slug, name) VALUES ('b', 'B'), ('c', 'C')");
    const recorded = record(
      "DELETE FROM orgs WHERE slug = 'b'; UPDATE orgs SET slug = 'b' WHERE slug = 'c'; INSERT INTO orgs (slug, name) VALUES ('c', 'new')",
      1,
    );
    apply(second, [{ position: { epoch: 1, seq: 1 }, recorded }]);
    expect(contentsOf(second)).toEqual(contentsOf(first));
  });
});

test("a copy that leads has the triggers and foreign keys of its schema, also after it followed", () => {
  const schema = new Store(":memory:").db;
  const copy = emptyCopy();
  expect(triggersOf(copy)).toEqual([]);
  lead(copy, triggersOf(schema));
  expect(triggersOf(copy)).toEqual(triggersOf(schema));
  lead(copy, triggersOf(schema));
  expect(copy.prepare("PRAGMA foreign_keys").get()).toEqual({ foreign_keys: 1 });
});
