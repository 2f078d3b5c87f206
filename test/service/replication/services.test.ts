// Whole services as members on a real PostgreSQL: each has a copy in a folder of its own, and one of them answers
// (F97, F98, F99).
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createService, type Service } from "../../../service/index.ts";
import { catchUp } from "../../../service/replication/catchUp.ts";
import { LeaderLog } from "../../../service/replication/leaderLog.ts";
import type { Log } from "../../../service/replication/log.ts";
import { Membership } from "../../../service/replication/membership.ts";
import { logSchema, openPostgresLog } from "../../../service/replication/postgresLog.ts";
import type { RuntimeFactory } from "../../../service/runtime/runtime.ts";
import { SimulatedRuntime } from "../../../service/runtime/simulated.ts";
import { open, storeFile } from "../../../service/store/database.ts";
import { keepLog } from "../../../service/replication/snapshots.ts";
import { MemberCopy, schemaOfCopies, snapshotOf } from "../../../service/store/memberCopy.ts";
import { addToken } from "../../../service/store/tokens.ts";
import { migrations } from "../../../service/store/schema.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { startProxy, wayTo } from "../ownProxies.ts";
import { get } from "../reachable.ts";
import { contentsOf } from "./copies.ts";
import { startPostgres, type TestPostgres } from "./postgres.ts";
import { hang } from "../../support/patience.mts";

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.remove());

let root: string;
beforeEach(async () => {
  await server.query(`DROP SCHEMA IF EXISTS ${logSchema} CASCADE`);
  root = mkdtempSync(join(tmpdir(), "machines-members-"));
  return () => rmSync(root, { recursive: true, force: true });
});

// A lease that ends only when the test ends it, however slow the computer is.
const timing = { leaseMs: 3600_000, renewMs: 100, lookMs: 20, retryMs: 20 };
const endLease = () => server.query(`UPDATE ${logSchema}.leadership SET lease_ms = 0`);

interface TestMember {
  readonly folder: string;
  readonly log: Log;
  readonly membership: Membership;
  readonly copy: MemberCopy;
  service: Service | undefined;
  ended: boolean | undefined;
  /** Does nothing more, like a process that was killed. */
  kill(): void;
}

/** A member with the data of a folder, which it may have had before. */
async function member(name: string, runtime?: RuntimeFactory): Promise<TestMember> {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  // Members have the same key.
  writeFileSync(join(folder, "key"), `${Buffer.alloc(32, 7).toString("base64")}\n`);
  const copy = new MemberCopy(storeFile(folder));
  const log = await openPostgresLog(server.url, hang);
  let isKilled = false;
  const after = (ms: number, run: () => void): void => {
    setTimeout(() => {
      if (!isKilled) run();
    }, ms).unref();
  };
  const membership = new Membership({
    ...{ log, copy, timing, after },
    me: { id: name, address: `http://${name}` },
    now: () => performance.now(),
    lead(epoch) {
      copy.close();
      const pause = () => new Promise<void>((resolve) => after(timing.retryMs, resolve));
      const lost = () => membership.lost();
      const unsure = () => membership.unsure;
      made.service = createService({
        data: folder,
        delays: "none",
        ...(runtime ? { runtime } : {}),
        leading: {
          log: (db) => new LeaderLog(db, schemaOfCopies(), { log, epoch, pause, lost, unsure }),
          lock: { release() {} },
          run: String(epoch),
        },
      });
    },
    async drain() {
      await made.service?.close();
    },
    end: (isLost) => (made.ended = isLost),
    failed: (error) => {
      throw error;
    },
  });
  const made: TestMember = {
    ...{ folder, log, membership, copy, service: undefined, ended: undefined },
    kill: () => (isKilled = true),
  };
  afterThisTest(async () => {
    isKilled = true;
    await made.service?.close();
    await log.close();
  });
  return made;
}

const leads = async (one: TestMember): Promise<Service> => {
  await expect.poll(() => one.service !== undefined).toBe(true);
  return one.service as Service;
};

const call = async (service: Service, method: "GET" | "POST" | "DELETE", url: string, payload?: object) => {
  const headers = { authorization: `Bearer ${service.token}` };
  const answer = await service.app.inject({ method, url: `/v1${url}`, headers, ...(payload ? { payload } : {}) });
  return { status: answer.statusCode, body: (answer.body === "" ? undefined : JSON.parse(answer.body)) as never };
};

/** Creates an App with a Machine, and returns the Machine's path. */
async function fill(service: Service, name: string): Promise<string> {
  expect((await call(service, "POST", "/apps", { name, org_slug: "personal" })).status).toBe(201);
  await call(service, "POST", `/apps/${name}/secrets`, { values: { KEY: "value" } });
  const made = await call(service, "POST", `/apps/${name}/machines`, { config: { image: "nginx" } });
  return `/apps/${name}/machines/${(made.body as { id: string }).id}`;
}

/** Waits until a follower has everything that the log has. */
const follows = async (one: TestMember): Promise<void> => {
  const { seq } = await one.log.end();
  await expect.poll(() => one.copy.position.seq).toBeGreaterThanOrEqual(seq);
};

test("a leader begins that has to write the volumes of an earlier runtime", async () => {
  const one = await member("one");
  const first = await leads(one);
  await fill(first, "web");
  await call(first, "POST", "/apps/web/volumes", { name: "data", region: "ams", size_gb: 1 });
  const keeping: RuntimeFactory = (host) => Object.assign(new SimulatedRuntime(host), { volumeChanged: () => {} });
  const two = await member("two", keeping);
  await follows(two);
  one.kill();
  await endLease();
  const { context } = await leads(two);
  expect(context.store.all("SELECT written FROM volumes")).toEqual([{ written: 0 }]);
});

test("a member that takes over has everything that was acknowledged, and continues", async () => {
  const one = await member("one");
  const first = await leads(one);
  const two = await member("two");
  const at = await fill(first, "web");
  await follows(two);
  expect([two.service, two.membership.state.leader?.id]).toEqual([undefined, "one"]);
  one.kill();
  await endLease();
  const second = await leads(two);
  expect((await call(second, "GET", at)).status).toBe(200);
  expect(contentsOf(second.context.store.db)).toMatchObject({ apps: [expect.stringContaining("web")] });
  const more = await fill(second, "more");
  expect((await call(second, "GET", more)).status).toBe(200);
  // What the first one accepts now is never acknowledged.
  const late = call(first, "POST", "/apps", { name: "late", org_slug: "personal" });
  await expect.poll(() => one.ended).toBe(true);
  expect(await Promise.race([late, Promise.resolve("no answer")])).toBe("no answer");
  // Its process is started again: its copy has a change that was not acknowledged.
  const again = await member("one");
  second.context.store.flush();
  await second.context.store.unsettled;
  await follows(again);
  again.membership.stop();
  await expect.poll(() => again.ended).toBe(false);
  again.copy.close();
  const rest = open(storeFile(again.folder));
  const { tokens: _ours, ...found } = contentsOf(rest);
  const { tokens: _theirs, ...wanted } = contentsOf(second.context.store.db);
  expect(found).toEqual(wanted);
  rest.close();
});

test("proxies of their own answer while the leader changes, and the next one starts Machines for them", async () => {
  const program = createServer((_, response) => response.end("answered")).listen(0, "127.0.0.1");
  await once(program, "listening");
  afterThisTest(() => void program.close());
  const endpoint = `127.0.0.1:${(program.address() as AddressInfo).port}`;
  const reached: RuntimeFactory = (host) =>
    Object.assign(new SimulatedRuntime(host), {
      reach: { endpoint: () => endpoint, listens: () => Promise.resolve(true), hasOtherWays: true },
    });
  const listen = ({ app }: Service): Promise<string> => app.listen({ host: "127.0.0.1", port: 0 });
  const one = await member("one", reached);
  const first = await leads(one);
  const way = await wayTo(await listen(first));
  const two = await member("two", reached);
  const { store, clock } = first.context;
  await store.write(() =>
    addToken(store, "of-a-proxy", { slug: "personal", role: "proxy", expiresAt: null }, clock.now()),
  );
  expect((await call(first, "POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  const ports = [{ port: 80, handlers: ["http"] }];
  const services = [{ protocol: "tcp", internal_port: 8080, ports, autostart: true, autostop: "stop" }];
  const made = await call(first, "POST", "/apps/web/machines", { config: { image: "nginx", services } });
  const path = `/apps/web/machines/${(made.body as { id: string }).id}`;
  const { http } = await startProxy(way.url, "of-a-proxy").running;
  const ask = () => get(`http://127.0.0.1:${http}/`, "web.localhost");
  expect(await ask()).toMatchObject({ status: 200 });
  await follows(two);

  one.kill();
  way.close();
  // Nobody leads.
  expect(await ask()).toMatchObject({ status: 200 });
  await endLease();
  const second = await leads(two);
  await way.leadTo(await listen(second));
  expect(await ask()).toMatchObject({ status: 200 });
  await call(second, "POST", `${path}/stop`);
  const state = async () => ((await call(second, "GET", path)).body as { state: string }).state;
  await expect.poll(state).toBe("stopped");
  // The proxy may not have heard of the new leader yet, nor that the Machine has stopped.
  await expect.poll(async () => [(await ask()).status, await state()]).toEqual([200, "started"]);
});

test("a leader that stops hands over without waiting for the end of its lease", async () => {
  const one = await member("one");
  const first = await leads(one);
  const two = await member("two");
  const at = await fill(first, "web");
  one.membership.stop();
  const second = await leads(two);
  expect([one.ended, (await call(second, "GET", at)).status]).toEqual([false, 200]);
});

test("a new member starts from a snapshot where the log was trimmed", async () => {
  const one = await member("one");
  const first = await leads(one);
  const two = await member("two");
  const at = await fill(first, "web");
  await follows(two);
  const keep = { everyBytes: 1, keepMs: 0 };
  const keepNow = () => keepLog(one.log, () => snapshotOf(storeFile(two.folder)), keep);
  const made = await keepNow();
  expect(made).toBe(two.copy.position.seq);
  expect(await keepNow()).toBeUndefined();
  // The next one is due when the entries have half of its size. The one before the latest stays.
  for (let i = 0; (await keepNow()) === undefined; i++) {
    await fill(first, `other-${i}`);
    await follows(two);
  }
  expect((await one.log.read(0, 1, 1))[0]?.seq).toBe((made ?? 0) + 1);
  await fill(first, "more");
  const three = await member("three");
  await follows(three);
  one.kill();
  two.kill();
  await endLease();
  expect((await call(await leads(three), "GET", at)).status).toBe(200);
});

test("copies get a later schema where the leader's copy got it, and older members end there", async () => {
  const one = await member("one");
  const first = await leads(one);
  const two = await member("two");
  await fill(first, "web");
  await follows(two);
  one.kill();
  // The next version has another column, and a trigger that it needs.
  const steps = migrations as string[];
  const known = steps.length;
  steps.push(`ALTER TABLE apps ADD COLUMN note TEXT NOT NULL DEFAULT 'none'; UPDATE apps SET note = 'migrated'`);
  afterThisTest(() => void (steps.length = known));
  const three = await member("three");
  await follows(three);
  two.kill();
  await endLease();
  const next = await leads(three);
  await fill(next, "more");
  const notes = (db: DatabaseSync) => db.prepare("SELECT name, note FROM apps ORDER BY name").all();
  const wanted = [
    { name: "more", note: "none" },
    { name: "web", note: "migrated" },
  ];
  expect(notes(next.context.store.db)).toEqual(wanted);
  const four = await member("four");
  await follows(four);
  four.membership.stop();
  await expect.poll(() => four.ended).toBe(false);
  expect(notes(open(storeFile(four.folder)))).toEqual(wanted);
  // The version before stops at the first entry that it does not know.
  steps.length = known;
  const old = new MemberCopy(storeFile(two.folder));
  const { seq } = old.position;
  await expect(catchUp(old, three.log)).rejects.toThrow("was written by a newer machines-service");
  expect(old.position.seq).toBe(seq);
});

test("while the database cannot be reached nothing is acknowledged, and afterwards everything is", async () => {
  const one = await member("one");
  const first = await leads(one);
  await fill(first, "web");
  await server.stop();
  let isAnswered = false;
  const created = call(first, "POST", "/apps", { name: "held", org_slug: "personal" }).finally(
    () => (isAnswered = true),
  );
  await new Promise(setImmediate);
  expect(isAnswered).toBe(false);
  await server.start();
  expect((await created).status).toBe(201);
  expect((await call(first, "GET", "/apps/held")).status).toBe(200);
});
