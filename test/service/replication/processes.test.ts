// Members as real processes: each answers every request, and any of them may end at any time (F97, F99, F100).
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { expect, test } from "vitest";
import { logSchema } from "../../../service/replication/postgresLog.ts";
import { freePort } from "../../support/freePort.ts";
import { storeFile } from "../../../service/store/database.ts";
import { catalogue } from "../../../service/watch/catalogue.ts";
import { isThorough } from "../../support/extent.mts";
import { hasLocks, locksStore } from "../../support/fileLocks.ts";
import { thoroughTest } from "../../support/thorough.ts";
import { folder, command, foreground } from "../command.ts";
import { figures } from "../watch/figures.ts";
import { serverForTests } from "./serverForTests.ts";
import { callOf, create, expectEqualCopies, leaderOf, namesAt, serviceOn, standing, type Member } from "./processes.ts";

const server = serverForTests();

const others = (all: readonly Member[], one: Member): Member[] => all.filter((member) => member !== one);

async function three() {
  const service = serviceOn(server.url);
  const members = [await service.start(), await service.start(), await service.start()];
  const leader = await leaderOf(members);
  return { service, members, leader, standbys: others(members, leader) as [Member, Member] };
}

test("every member answers every request, and says who leads", async () => {
  const { members, leader, standbys } = await three();
  const [standby] = standbys;
  expect(await standing(standby)).toMatchObject({ role: "standby", leader: leader.url, epoch: 1 });
  const call = callOf(standby);
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  for (const member of members) expect(await namesAt(member)).toEqual(["web"]);
  const refused = await call("POST", "/apps", { name: "web", org_slug: "personal" });
  expect(refused.status).toBe(422);
  expect((await fetch(`${standby.url}/v1/apps`)).status).toBe(401);
  expect((await call("GET", "/apps/none")).headers.get("svc-request-id")).toMatch(/\w/);
  // A path that looks like another host's URL is a path.
  const [here, there] = await Promise.all([standby, leader].map(({ url }) => fetch(`${url}//127.0.0.1:1/v1/apps`)));
  expect([here?.status, await here?.text()]).toEqual([there?.status, await there?.text()]);
  const huge = await call("POST", "/apps", { name: "x".repeat(5 * 2 ** 20) });
  expect([huge.status, huge.body]).toEqual([413, { error: "Request body is too large" }]);
  // Without them, a command beside a member would cut the files that it uses.
  if (hasLocks) for (const { pid, data } of members) expect(locksStore(pid, storeFile(data))).toBe(true);
});

const entryOf = "machines_service_member_entry";

test("each member has metrics of its own, for the operator's token", async () => {
  const { leader, standbys } = await three();
  const [standby] = standbys;
  await callOf(standby)("POST", "/apps", { name: "web", org_slug: "personal" });
  const metrics = async ({ url, token }: Member) => {
    const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    return Object.fromEntries((await answer.text()).split("\n").map((line) => line.split(" ") as [string, string]));
  };
  expect(await metrics(leader)).toMatchObject({
    ...{ machines_service_member_leads: "1", machines_service_leaderships_total: "1", machines_service_waits: "0" },
  });
  await expect
    .poll(() => metrics(standby))
    .toMatchObject({
      ...{ machines_service_member_leads: "0", machines_service_leaderships_total: "1" },
      ...{ machines_service_member_behind: "0" },
    });
  const entries = () => Promise.all([leader, standby].map(async (one) => (await metrics(one))[entryOf]));
  await expect.poll(async () => new Set(await entries()).size).toBe(1);
  expect((await fetch(`${standby.url}/metrics`)).status).toBe(401);
  const { "several members": ofMembers = {}, "the process": ofProcess = {} } = catalogue;
  const expected = [...Object.values(ofProcess), ...Object.values(ofMembers)].map(({ name }) => name);
  for (const member of [leader, standby]) {
    await expect
      .poll(async () => (await figures(member)).get('machines_service_members{role="standby"}'))
      .toBe(standbys.length);
    const names = [...(await figures(member)).keys()].map((key) => key.replace(/(_bucket|_sum|_count)?(\{.*)?$/, ""));
    expect([...new Set(names)]).toEqual(expect.arrayContaining(expected));
    if (member === standby) expect(new Set(names)).toEqual(new Set(expected));
  }
});

test("a request that is held at a standby is answered as soon as what it waits for happens", async () => {
  const { leader, standbys } = await three();
  const call = callOf(standbys[0]);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { body } = await call("POST", "/apps/web/machines", { config: { image: "nginx" }, skip_launch: true });
  const held = call("GET", `/apps/web/machines/${body.id}/wait?state=started&timeout=60`);
  expect((await callOf(leader)("POST", `/apps/web/machines/${body.id}/start`)).status).toBe(200);
  expect((await held).status).toBe(200);
});

test("when the leader is killed, another member answers, and has all that was acknowledged", async () => {
  const { members, leader, standbys } = await three();
  const creating = create("app", () => standbys);
  await creating.more(10);
  process.kill(leader.pid, "SIGKILL");
  const next = await leaderOf(others(members, leader));
  await creating.more(10);
  await creating.end();
  const names = new Set(await namesAt(next));
  expect(creating.acknowledged.filter((name) => !names.has(name))).toEqual([]);
});

test("a leader that is stopped hands over, and no connection is cut", async () => {
  const { members, leader, standbys } = await three();
  const call = callOf(standbys[0]);
  const enough = new AbortController();
  let sent = 0;
  const statuses = new Set<number>();
  const send = async (): Promise<void> => {
    while (!enough.signal.aborted)
      statuses.add((await call("POST", "/apps", { name: `app-${++sent}`, org_slug: "personal" })).status);
  };
  const sending = send();
  await expect.poll(() => sent).toBeGreaterThan(10);
  process.kill(leader.pid, "SIGTERM");
  await leaderOf(others(members, leader));
  expect((await leader.end).code).toBe(0);
  const before = sent;
  await expect.poll(() => sent).toBeGreaterThan(before + 10);
  enough.abort();
  await sending;
  // On a slow computer the other member may need longer than requests wait.
  statuses.delete(503);
  expect([...statuses]).toEqual([201]);
});

test("a leader that was paused beyond its lease answers nothing, and ends", async () => {
  const { members, leader } = await three();
  await callOf(leader)("POST", "/apps", { name: "web", org_slug: "personal" });
  process.kill(leader.pid, "SIGSTOP");
  const next = await leaderOf(others(members, leader));
  await callOf(next)("POST", "/apps", { name: "later", org_slug: "personal" });
  const read = namesAt(leader);
  read.catch(() => {});
  process.kill(leader.pid, "SIGCONT");
  await expect(read).rejects.toThrow();
  const { code, err } = await leader.end;
  expect([code, err]).toEqual([4, expect.stringContaining("has lost its leadership")]);
});

test("the only member is killed, and started again at its address: it answers once it leads", async () => {
  const service = serviceOn(server.url);
  const listen = `127.0.0.1:${await freePort()}`;
  const first = await service.start(folder(), "--listen", listen);
  expect((await callOf(first)("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  process.kill(first.pid, "SIGKILL");
  await first.end;
  const again = service.start(first.data, "--listen", listen);
  // It listens before it leads. On a slow computer that may take longer than requests wait.
  const created = () => callOf(first)("POST", "/apps", { name: "more", org_slug: "personal" }).catch(() => undefined);
  await expect.poll(async () => (await created())?.status).toBe(201);
  expect(await standing(await again)).toMatchObject({ role: "leader", epoch: 2 });
});

// In process: services.test.ts. histories.test.ts compares copies of members that were killed.
thoroughTest("the copies of all members are equal, also of one that was started again", async () => {
  const { service, leader, standbys } = await three();
  const call = callOf(standbys[0]);
  for (const name of ["one", "two"]) {
    await call("POST", "/apps", { name, org_slug: "personal" });
    await call("POST", `/apps/${name}/machines`, { config: { image: "nginx" } });
  }
  process.kill(leader.pid, "SIGKILL");
  await leader.end;
  const again = await service.start(leader.data);
  await call("POST", "/apps", { name: "three", org_slug: "personal" });
  await expectEqualCopies([...standbys, again]);
});

test("the database reveals nothing without the key", async () => {
  const service = serviceOn(server.url);
  const one = await service.start();
  const call = callOf(one);
  const canaries = ["canary-app", "canary-value", "canary-env", "canary-user"];
  await call("POST", "/apps", { name: "canary-app", org_slug: "personal" });
  await call("POST", "/apps/canary-app/secrets", { values: { KEY: "canary-value" } });
  await call("POST", "/apps/canary-app/machines", { config: { image: "nginx", env: { KEY: "canary-env" } } });
  const file = (data: string, name: string) => readFileSync(join(data, name), "utf8").trim();
  const known = [...canaries, ...["key", "token", "data-id", "local-ca.key"].map((name) => file(one.data, name))];
  const dumped: Buffer[] = [];
  const { rows: tables } = await server.query(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '${logSchema}'`,
  );
  for (const { name } of tables as { name: string }[])
    for (const row of (await server.query(`SELECT * FROM ${logSchema}.${name}`)).rows as object[])
      for (const value of Object.values(row)) dumped.push(Buffer.isBuffer(value) ? value : Buffer.from(String(value)));
  const all = Buffer.concat(dumped);
  expect(all.length).toBeGreaterThan(1000);
  expect(known.filter((one) => all.includes(one))).toEqual([]);
});

test("a damaged copy is replaced by what the log has", async () => {
  const { service, leader, standbys } = await three();
  const [standby] = standbys;
  for (const name of ["one", "two", "three"]) await callOf(leader)("POST", "/apps", { name, org_slug: "personal" });
  process.kill(standby.pid, "SIGTERM");
  await standby.end;
  const file = storeFile(standby.data);
  // In one file, with a page of it destroyed.
  const before = new DatabaseSync(file);
  before.exec("PRAGMA journal_mode = DELETE");
  const { rootpage } = before.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'apps'").get() as {
    rootpage: number;
  };
  before.close();
  const opened = openSync(file, "r+");
  writeSync(opened, Buffer.alloc(4096, "damaged"), 0, 4096, (rootpage - 1) * 4096);
  closeSync(opened);
  const again = await service.start(standby.data);
  const copied = () => {
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return db
        .prepare("SELECT name FROM apps ORDER BY name")
        .all()
        .map(({ name }) => name);
    } finally {
      db.close();
    }
  };
  await expect.poll(copied).toEqual(["one", "three", "two"]);
  const metrics = await fetch(`${again.url}/metrics`, { headers: { authorization: `Bearer ${again.token}` } });
  expect(await metrics.text()).toContain("machines_service_member_copies_replaced_total 1");
});

test("a member that loses the database while it starts tries again", async () => {
  const service = serviceOn(server.url);
  const first = await service.start();
  const other = new pg.Client({ connectionString: server.url });
  await other.connect();
  try {
    await other.query(`BEGIN; LOCK TABLE ${logSchema}.place IN ACCESS EXCLUSIVE MODE`);
    const second = service.start();
    const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
    for (let i = 0; i < 2; i++) await expect.poll(async () => (await server.query(cut)).rows.length).toBe(1);
    await other.query("ROLLBACK");
    expect(await standing(await second)).toMatchObject({ role: "standby", leader: first.url });
  } finally {
    await other.end();
  }
});

test("a member is refused with another key, in a folder with data of its own, or in that of another service", async () => {
  const service = serviceOn(server.url);
  const one = await service.start();
  const other = serviceOn(server.url);
  const refusedBy = (data: string, options: readonly string[]) =>
    command(["start", "--data", data, "--listen", "127.0.0.1:0", ...options]);
  const otherKey = await refusedBy(folder(), other.options);
  expect([otherKey.code, otherKey.err]).toEqual([
    1,
    expect.stringContaining("this database belongs to another service"),
  ]);
  if (isThorough) {
    // In process: place.test.ts.
    const otherRuntime = await refusedBy(folder(), [...service.options, "--runtime", "kubernetes"]);
    expect([otherRuntime.code, otherRuntime.err]).toEqual([
      1,
      expect.stringContaining("--runtime kubernetes: this service has --runtime simulated"),
    ]);
  }
  const alone = folder();
  const single = await foreground(alone);
  process.kill(single.pid, "SIGTERM");
  await single.end;
  const own = await refusedBy(alone, service.options);
  expect([own.code, own.err]).toEqual([1, expect.stringContaining("has data of its own")]);
  process.kill(one.pid, "SIGTERM");
  await one.end;
  const copy = await refusedBy(one.data, []);
  expect([copy.code, copy.err]).toEqual([1, expect.stringContaining("--store")]);
  await server.query(`DROP SCHEMA ${logSchema} CASCADE`);
  const moved = await refusedBy(one.data, service.options);
  expect([moved.code, moved.err]).toEqual([1, expect.stringContaining("belongs to another service")]);
});

// In process: place.test.ts.
thoroughTest("only the member with the data of the Postgres servers leads", async () => {
  const service = serviceOn(server.url, "--postgres", "embedded", "--pgbouncer", "none");
  const first = await service.start();
  const second = await service.start();
  expect(second.said()).toContain("this member only follows: the Postgres servers");
  expect((await callOf(second)("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  process.kill(first.pid, "SIGKILL");
  await first.end;
  await expect.poll(async () => (await standing(second))?.leader).toBe(null);
  const again = await service.start(first.data);
  expect(await leaderOf([again])).toBe(again);
  expect(await namesAt(second)).toEqual(["web"]);
});
