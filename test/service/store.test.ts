// Restarts, unusable data folders, and full disks (F28–F30).
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { readMark } from "../../service/store/markFile.ts";
import { machineText } from "../../service/rules/machineAnswer.ts";
import {
  createService,
  findLocal,
  ManualClock,
  seededRandom,
  type Service,
  type ServiceOptions,
} from "../../service/index.ts";

const folders: string[] = [];
const services: Service[] = [];
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "machines-store-"));
  folders.push(made);
  return join(made, "data");
}

function open(options: ServiceOptions) {
  const service = createService({ delays: "believable", strict: true, ...options });
  services.push(service);
  const call = async (
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ) => {
    const answer = await service.app.inject({
      method,
      url: `/v1${path}`,
      headers: { authorization: `Bearer ${service.token}`, ...headers },
      ...(body ? { payload: body } : {}),
    });
    return {
      status: answer.statusCode,
      text: answer.body,
      headers: answer.headers,
      body: answer.body === "" ? undefined : JSON.parse(answer.body),
    };
  };
  return { service, call };
}

const machines = "/apps/web/machines";

test("F28 a restart continues with the same states, timers, leases, snapshots and token", async () => {
  const data = folder();
  const before = new ManualClock();
  const first = open({ data, clock: before });
  await first.call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = (await first.call("POST", machines, { config: { image: "nginx" }, lease_ttl: 100 })).body;
  const volume = (await first.call("POST", "/apps/web/volumes", { name: "data" })).body.id;
  await first.call("DELETE", `/apps/web/volumes/${volume}`);
  const token = first.service.token;
  await first.service.close();

  const after = new ManualClock(before.now() + 200);
  const second = open({ data, clock: after });
  expect(second.service.token).toBe(token);
  expect((await second.call("GET", `${machines}/${id}`)).body.state).toBe("created");
  after.advance(1000);
  expect((await second.call("GET", `${machines}/${id}`)).body.state).toBe("started");
  expect((await second.call("POST", `${machines}/${id}/stop`)).status).toBe(409);
  await second.service.close();

  const third = open({ data, clock: new ManualClock(after.now() + 25 * 3600_000) });
  await third.service.app.ready();
  await new Promise(setImmediate);
  third.service.context.clock.advance(0);
  expect((await third.call("GET", `/apps/web/volumes/${volume}`)).status).toBe(404);
  expect((await third.call("POST", `${machines}/${id}/stop`)).status).toBe(200);
});

test("only the user can read the data folder", async () => {
  const data = folder();
  const { service } = open({ data });
  expect(statSync(data).mode & 0o777).toBe(0o700);
  for (const file of ["token", "service.db"])
    expect([file, statSync(join(data, file)).mode & 0o777]).toEqual([file, 0o600]);
  expect(readFileSync(join(data, "token"), "utf8").trim()).toBe(service.token);
  expect(readFileSync(join(data, "service.db")).includes(service.token)).toBe(false);
});

test("F29 a second service for the same folder is refused, and the folder is free after the first has closed", async () => {
  const data = folder();
  const { service } = open({ data });
  expect(() => createService({ data })).toThrow(/another machines-service serves/);
  await service.close();
  open({ data });
});

test("a lost token file is replaced with a new token", async () => {
  const data = folder();
  const { service } = open({ data });
  const { token } = service;
  await service.close();
  rmSync(join(data, "token"));
  const again = open({ data });
  expect(again.service.token).not.toBe(token);
  expect((await again.call("GET", "/platform/regions")).status).toBe(200);
});

test("F29 a store of a newer service is refused with a sentence", async () => {
  const data = folder();
  await open({ data }).service.close();
  const db = new DatabaseSync(join(data, "service.db"));
  db.exec("PRAGMA user_version = 999");
  db.close();
  const refused = /service\.db was written by machines-service \S+ \(schema 999\), and this is /;
  expect(() => createService({ data })).toThrow(refused);
  expect(() => createService({ data })).toThrow(refused); // the lock was released
});

test("F29 a damaged store is refused with a sentence", async () => {
  const data = folder();
  await open({ data }).service.close();
  writeFileSync(join(data, "service.db"), Buffer.alloc(8192, "garbage"));
  expect(() => createService({ data })).toThrow(/service\.db is damaged\. Put a backup in its place/);
});

test("F29 a full disk is 503 with Retry-After; reads continue, and writes resume once there is space", async () => {
  const { service, call } = open({ data: folder() });
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { db } = service.context.store;
  const { page_count } = db.prepare("PRAGMA page_count").get() as { page_count: number };
  db.exec(`PRAGMA max_page_count = ${page_count + 2}`);
  const big = {
    config: { image: "nginx", env: Object.fromEntries(["A", "B", "C", "D"].map((name) => [name, "x".repeat(60_000)])) },
  };
  const full = await Promise.all(Array.from({ length: 5 }, () => call("POST", machines, big)));
  for (const answer of full) {
    expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "5"]);
    expect(answer.body.error).toContain("cannot write its store");
  }
  expect((await call("GET", "/apps/web")).body.machine_count).toBe(0);
  expect((await call("GET", machines)).body).toEqual([]);
  db.exec("PRAGMA max_page_count = 1000000");
  expect((await call("POST", machines, big)).status).toBe(200);
});

test("F28 every confirmed change is on disk: every commit is synced", () => {
  const { service } = open({ data: folder() });
  const { store } = service.context;
  expect(store.get("PRAGMA synchronous")).toEqual({ synchronous: 2 });
  expect(store.get("PRAGMA journal_mode")).toEqual({ journal_mode: "wal" });
});

test("F28 the mark of a store counts at most once a second, and only data on disk", async () => {
  const data = folder();
  const clock = new ManualClock();
  const { call, service } = open({ data, clock, delays: "none" });
  const { store } = service.context;
  const marks = () => [
    readMark(join(data, "service.db")),
    store.get<{ count: number }>("SELECT count FROM written")?.count,
  ];
  const write = async (name: string) => (await call("POST", "/apps", { name, org_slug: "personal" })).status;
  expect(await write("one")).toBe(201);
  const [first = 0] = marks();
  expect(marks()).toEqual([first, first]);
  for (const name of ["two", "two", "three"]) await write(name);
  clock.advance(999);
  expect([await write("four"), ...marks()]).toEqual([201, first, first]);
  clock.advance(1);
  const { hooks } = store;
  store.hooks = {
    ...hooks,
    beforeCommit() {
      hooks.beforeCommit();
      throw new Error("the disk is gone");
    },
  };
  expect([await write("five"), ...marks()]).toEqual([500, first, first]);
  store.hooks = hooks;
  expect([await write("five"), ...marks()]).toEqual([201, first + 1, first + 1]);
});

test("F28 a new service does not use the address file of a killed one", async () => {
  const data = folder();
  await open({ data }).service.close();
  writeFileSync(join(data, "service.json"), JSON.stringify({ url: "http://127.0.0.1:1", pid: 1, data }));
  open({ data });
  expect(await findLocal({ data })).toBe(undefined);
});

test("a request refused midway leaves nothing behind", async () => {
  const { call } = open({ delays: "none" });
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  // The lease is checked last, after the Machine was written.
  expect((await call("POST", machines, { config: { image: "nginx" }, lease_ttl: 9999 })).status).toBe(400);
  expect((await call("GET", machines)).body).toEqual([]);
  const { id, version } = (await call("POST", machines, { config: { image: "nginx" } })).body;
  expect((await call("POST", `${machines}/${id}`, { config: { image: "nginx:2" }, lease_ttl: 9999 })).status).toBe(400);
  expect((await call("GET", `${machines}/${id}`)).body).toMatchObject({
    version,
    state: "started",
    config: { image: "nginx" },
  });
});

test("F29 an uncommitted change is never shown later", async () => {
  const { call, service } = open({ delays: "none" });
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = (await call("POST", machines, { config: { image: "nginx" } })).body;
  const before = (await call("GET", `${machines}/${id}`)).text;
  const { hooks } = service.context.store;
  service.context.store.hooks = {
    ...hooks,
    beforeCommit() {
      machineText(service.context, id); // another read in the same turn
      throw new Error("the disk is gone");
    },
  };
  expect((await call("POST", `${machines}/${id}`, { config: { image: "nginx:2" } })).status).toBe(500);
  service.context.store.hooks = hooks;
  expect((await call("GET", `${machines}/${id}`)).text).toBe(before);
});

test("requests in a shared transaction succeed or fail separately", async () => {
  const { call } = open({ delays: "none" });
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const create = (name: string, image = "nginx") => call("POST", machines, { name, config: { image } });
  const answers = await Promise.all([
    create("a"),
    create("a"),
    create("b", "nginx:simulate-capacity"),
    create("c"),
    call("DELETE", `${machines}/0`),
    create("d"),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 409, 422, 200, 404, 200]);
  const names = (await call("GET", machines)).body.map(({ name }: { name: string }) => name);
  expect(names.sort()).toEqual(["a", "c", "d"]);
});

test("F30 identifiers of events grow even when the clock was set back between two runs", async () => {
  const data = folder();
  const first = open({ data, clock: new ManualClock(Date.UTC(2026, 5, 1)), delays: "none" });
  await first.call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = (await first.call("POST", machines, { config: { image: "nginx" } })).body;
  const [latest] = (await first.call("GET", `${machines}/${id}/events`)).body;
  await first.service.close();
  const second = open({ data, clock: new ManualClock(Date.UTC(2026, 4, 1)), delays: "none" });
  await second.call("POST", `${machines}/${id}/stop`);
  const events = (await second.call("GET", `${machines}/${id}/events`)).body;
  expect(events[0].id > latest.id).toBe(true);
  expect(events[0]).toMatchObject({ type: "exit", status: "stopped" });
});

test("two runs with one seed and one clock have byte-identical answers", async () => {
  const run = async (): Promise<string[]> => {
    const clock = new ManualClock();
    const { call, service } = open({ clock, random: seededRandom("one"), delays: "believable" });
    const texts: string[] = [service.token];
    const say = async (...request: Parameters<typeof call>) => {
      const answer = await call(...request);
      texts.push(`${answer.status} ${String(answer.headers["svc-request-id"])} ${answer.text}`);
      return answer.body;
    };
    await say("POST", "/apps", { name: "web", org_slug: "personal" });
    const volume = await say("POST", "/apps/web/volumes", { name: "data" });
    const machine = await say("POST", machines, {
      config: { image: "nginx", mounts: [{ volume: volume.id, path: "/d" }] },
      lease_ttl: 30,
    });
    clock.advance(10_000);
    await say("GET", `${machines}/${machine.id}`);
    await say(
      "POST",
      `${machines}/${machine.id}`,
      { config: { image: "nginx:simulate-crash" } },
      { "svc-machine-lease-nonce": machine.nonce },
    );
    clock.advance(60_000);
    await say("GET", `${machines}/${machine.id}`);
    await say("GET", `${machines}/${machine.id}/events?limit=50`);
    await say("GET", "/apps/web/volumes");
    return texts;
  };
  const [one, two] = [await run(), await run()];
  expect(one).toEqual(two);
  expect(one).toHaveLength(9);
});

test("F29 an unwritable folder is refused with a sentence", async () => {
  if (process.getuid?.() === 0) {
    // The superuser can write everywhere, but a file at the folder's path blocks every user.
    const file = folder();
    writeFileSync(file, "");
    return expect(() => createService({ data: file })).toThrow(/cannot be the data folder/);
  }
  const data = folder();
  await open({ data }).service.close();
  chmodSync(join(data, "service.db"), 0o400);
  chmodSync(data, 0o500);
  expect(() => createService({ data })).toThrow(/cannot be written/);
  chmodSync(data, 0o700);
});
