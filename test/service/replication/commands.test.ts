// The commands of a service that runs as several members: its keys, tokens and list of members, and moving its data
// in and out (F100).
import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { logSchema } from "../../../service/replication/postgresLog.ts";
import { idOf } from "../../../service/store/tokens.ts";
import { caller } from "../client.ts";
import { command, folder, foreground } from "../command.ts";
import { momentOf, serverForTests } from "./serverForTests.ts";
import { allOr } from "../../support/extent.mts";
import { callOf, historyOf, leaderOf, serviceOn, type Member, type Service } from "./processes.ts";

const server = serverForTests();

const ok = async (...args: string[]): Promise<string> => {
  const { code, out, err } = await command(args);
  expect([code, err]).toEqual([0, expect.any(String)]);
  return out;
};
const refused = async (...args: string[]): Promise<string> => {
  const { code, err } = await command(args);
  expect(code).toBe(1);
  return err;
};

/** Ends members, and waits until they have exited. */
async function stop(...members: Pick<Member, "pid" | "end">[]): Promise<void> {
  for (const { pid, end } of members) {
    process.kill(pid, "SIGTERM");
    expect((await end).code).toBe(0);
  }
}

const storeOf = ({ store, keyFile }: Service): string[] => ["--store", store, "--key-file", keyFile];
const call = (one: { url: string; token: string }) => caller(one.url, one.token);

/** Creates an App with a secret and a Machine, and returns what a client sees of them. */
async function fill(send: ReturnType<typeof caller>, app: string): Promise<void> {
  await send("POST", "/apps", { name: app, org_slug: "personal" });
  await send("POST", `/apps/${app}/secrets`, { values: { KEY: `value of ${app}` } });
  await send("POST", `/apps/${app}/machines`, { config: { image: "nginx" } });
}
async function seenBy(send: ReturnType<typeof caller>): Promise<unknown> {
  const { body } = await send("GET", "/apps?org_slug=personal");
  const of = async ({ name }: { name: string }) => {
    const [secrets, machines] = [`/apps/${name}/secrets?show_secrets=true`, `/apps/${name}/machines`];
    return [
      name,
      (await send("GET", secrets)).body,
      (await send("GET", machines)).body.map(({ id }: { id: string }) => id),
    ];
  };
  return Promise.all((body as { apps: { name: string }[] }).apps.map(of));
}

test("a new key is another one each time", async () => {
  const key = await ok("key", "new");
  expect(Buffer.from(key.trim(), "base64")).toHaveLength(32);
  expect(await ok("key", "new")).not.toBe(key);
});

test("a member in the background does not show the URL of its database among its arguments", async () => {
  const service = serviceOn(server.url.replace("postgres@", "postgres:canary@"));
  const data = folder();
  await ok("start", "--detach", "--data", data, "--listen", "127.0.0.1:0", ...service.options);
  const { pid } = JSON.parse(await ok("status", "--json", "--data", data)) as { pid: number };
  const { stdout } = await promisify(execFile)("ps", ["-o", "args=", "-p", String(pid)]);
  expect(stdout).toContain("--key-file");
  expect(stdout).not.toContain("canary");
  await ok("stop", "--data", data);
});

test("tokens and organizations of every member's folder are those of the service", async () => {
  const service = serviceOn(server.url);
  const members = [await service.start(), await service.start()];
  const leader = await leaderOf(members);
  const standby = members.find((one) => one !== leader) as Member;
  expect(readFileSync(join(standby.data, "token"), "utf8")).toBe(readFileSync(join(leader.data, "token"), "utf8"));
  await ok("org", "create", "shop", "--data", standby.data);
  const { id, token } = JSON.parse(await ok("token", "create", "--org", "shop", "--json", "--data", leader.data));
  for (const { url } of members) expect((await caller(url, token)("GET", "/apps?org_slug=shop")).status).toBe(200);
  await expect.poll(() => ok("token", "list", "--data", standby.data)).toContain(id);
  await ok("token", "revoke", id, "--data", standby.data);
  await expect.poll(async () => (await caller(standby.url, token)("GET", "/apps?org_slug=shop")).status).toBe(401);
  const seed = join(dirname(standby.data), "seed.json");
  writeFileSync(
    seed,
    JSON.stringify({ apps: [{ name: "web", machines: [{ name: "one", config: { image: "nginx" } }] }] }),
  );
  await ok("seed", seed, "--data", standby.data);
  await expect.poll(() => ok("ls", "--data", standby.data)).toContain("web");
  for (const { data, url } of members) {
    const own = JSON.parse(await ok("token", "create", "--app", "web", "--json", "--data", data)) as Record<
      string,
      string
    >;
    await expect.poll(() => ok("token", "list", "--data", data)).toContain(own["id"]);
    await ok("token", "revoke", own["id"] ?? "", "--data", data);
    await expect.poll(async () => (await caller(url, own["token"] ?? "")("GET", "/apps/web")).status).toBe(401);
  }
  await stop(standby);
  for (const change of [
    ["org", "create", "other"],
    ["reset", "--yes"],
    ["export", join(dirname(standby.data), "file")],
  ])
    expect(await refused(...change, "--data", standby.data)).toContain("is a copy of a store");
});

/** Opens the console of a member, as its command does. */
async function consoleStatus({ url, data }: Member): Promise<number> {
  const { url: link } = JSON.parse(await ok("console", "--no-open", "--json", "--data", data)) as { url: string };
  const body = JSON.stringify({ code: new URL(link).hash.slice("#code=".length) });
  return (await fetch(`${url}/console/session`, { method: "POST", body })).status;
}

test("a rotated first token reaches every member, also one that was stopped meanwhile", async () => {
  const service = serviceOn(server.url);
  const [one, down] = [await service.start(), await service.start()];
  const tokenIn = ({ data }: Member) => readFileSync(join(data, "token"), "utf8").trim();
  const statusOf = async (member: Member, token: string) =>
    (await caller(member.url, token)("GET", "/apps?org_slug=personal")).status;
  const rotate = async (member: Member): Promise<string> =>
    (await ok("token", "rotate", idOf(tokenIn(member)), "--keep", "1ms", "--data", member.data)).trim();
  const first = tokenIn(one);
  await stop(down);
  await leaderOf([one]);
  const second = await rotate(one);
  await expect.poll(() => statusOf(one, first)).toBe(401);
  expect([tokenIn(one), await statusOf(one, second), await consoleStatus(one)]).toEqual([second, 200, 200]);
  // One that did not run gets it after its start.
  const other = await service.start(down.data);
  await expect.poll(() => tokenIn(other)).toBe(second);
  // One that runs gets it, too.
  const third = await rotate(other);
  await expect.poll(() => tokenIn(one)).toBe(third);
  await stop(one);
  await leaderOf([other]);
  expect(await statusOf(other, third)).toBe(200);
  await expect.poll(() => consoleStatus(other)).toBe(200);
  const again = await service.start(one.data);
  await expect.poll(() => tokenIn(again)).toBe(third);
  await expect.poll(() => statusOf(again, third)).toBe(200);
});

test("members get another first token once theirs was revoked, at the next start of one that leads", async () => {
  const service = serviceOn(server.url);
  const one = await service.start();
  const file = join(one.data, "token");
  const first = readFileSync(file, "utf8").trim();
  await leaderOf([one]);
  await ok("token", "revoke", idOf(first), "--data", one.data);
  await stop(one);
  const members = [await service.start(one.data), await service.start()];
  await leaderOf(members);
  const next = readFileSync(file, "utf8").trim();
  expect(next).not.toBe(first);
  await expect.poll(() => readFileSync(join(members[1]?.data ?? "", "token"), "utf8").trim()).toBe(next);
  await expect.poll(() => consoleStatus(members[0] as Member)).toBe(200);
});

test("quotas that are set in any member's folder hold at the leader, which counts what they limit", async () => {
  const service = serviceOn(server.url);
  const members = [await service.start(), await service.start()];
  const leader = await leaderOf(members);
  const standby = members.find((one) => one !== leader) as Member;
  const send = call(standby);
  await fill(send, "web");
  for (const { data } of [standby, leader]) {
    await ok("quota", "set", "--app", "web", "--machines", "1", "--data", data);
    await ok("quota", "set", "--memory", "512", "--data", data);
  }
  const create = () => send("POST", "/apps/web/machines", { config: { image: "nginx" } });
  expect((await create()).body.error).toContain("the limit of app web for machines is 1, it has 1, and this adds 1");
  await ok("quota", "set", "--app", "web", "--machines", "none", "--data", leader.data);
  expect((await create()).status).toBe(200);
  expect((await create()).body.error).toContain("is 512 MB, it has 512 MB, and this adds 256 MB");
  const listed = async (): Promise<unknown> => JSON.parse(await ok("quota", "list", "--json", "--data", standby.data));
  await expect.poll(listed).toEqual([{ org: "personal", app: null, resource: "memory", limit: 512, used: 512 }]);
});

test("changes without the signature of a member are refused", async () => {
  const one = await serviceOn(server.url).start();
  const send = (headers: Record<string, string>) =>
    fetch(`${one.url}/-/changes`, { method: "POST", headers, body: JSON.stringify({ changes: "AAAA" }) });
  expect((await send({})).status).toBe(401);
  expect((await send({ "machines-changes": `${Date.now()} ${"0".repeat(64)}` })).status).toBe(401);
  expect((await send({ authorization: `Bearer ${one.token}` })).status).toBe(401);
});

test("members are listed with their role and how far they are, and removed once they have ended", async () => {
  const service = serviceOn(server.url);
  const members = [await service.start(), await service.start()];
  const leader = await leaderOf(members);
  const standby = members.find((one) => one !== leader) as Member;
  await call(leader)("POST", "/apps", { name: "web", org_slug: "personal" });
  const listed = async () => JSON.parse(await ok("members", "--json", "--store", service.store));
  await expect
    .poll(async () =>
      (await listed()).map(({ address, role, behind }: Record<string, unknown>) => [address, role, behind]).sort(),
    )
    .toEqual(
      [
        [leader.url, "leader", 0],
        [standby.url, "standby", 0],
      ].sort(),
    );
  expect(await ok("members", "--store", service.store)).toMatch(/ADDRESS.*ROLE.*ENTRY.*BEHIND.*VERSION.*SEEN/);
  expect(await refused("members", "remove", standby.url, "--store", service.store)).toContain(
    "is running; stop it first",
  );
  expect(await refused("members", "remove", "http://none", "--store", service.store)).toContain(
    "there is no member http://none",
  );
  await stop(standby);
  await server.query(`UPDATE ${logSchema}.member SET at = at - interval '1 minute' WHERE address = '${standby.url}'`);
  await ok("members", "remove", standby.url, "--store", service.store);
  expect(await listed()).toHaveLength(1);
  expect(await refused("members")).toContain("members needs --store");
});

test("data move from a folder into a store and back, with their secrets, Machines and identity", async () => {
  const data = folder();
  const single = await foreground(data, ["--delays", "none"]);
  await fill(call(single), "web");
  const before = await seenBy(call(single));
  const service = serviceOn(server.url);
  const store = storeOf(service);
  expect(await refused("import", ...store, "--data", data)).toContain("another machines-service");
  await stop(single);
  await ok("import", ...store, "--data", data);
  expect(await refused("start", "--data", data)).toContain("were moved to a store");
  const members = [await service.start(data), await service.start()];
  for (const member of members) expect(await seenBy(callOf(member))).toEqual(before);
  const began = await historyOf(members[1] as Member);
  expect(began.length).toBeGreaterThan(3);
  expect(readFileSync(join(members[1]?.data ?? "", "data-id"))).toEqual(readFileSync(join(data, "data-id")));
  await fill(callOf(members[0] as Member), "more");
  const after = await seenBy(callOf(members[1] as Member));
  const other = folder();
  expect(await refused("export", ...store, "--data", other)).toContain("leads; stop all members first");
  await stop(...members);
  expect(await refused("import", ...store, "--data", data)).toContain("is a copy of a store");
  await ok("export", ...store, "--data", other);
  expect(await refused("start", ...service.options, "--data", folder(), "--listen", "127.0.0.1:0")).toContain(
    `the data were moved to ${other}`,
  );
  const again = await foreground(other, ["--delays", "none"]);
  expect(await seenBy(call(again))).toEqual(after);
  const whole = await historyOf({ ...again, data: other });
  expect([whole.slice(0, began.length), whole.length > began.length]).toEqual([began, true]);
  expect(readFileSync(join(other, "data-id"))).toEqual(readFileSync(join(data, "data-id")));
});

test("a store that has data takes no others, and the folder keeps its own", async () => {
  const service = serviceOn(server.url);
  await service.start();
  const data = folder();
  const single = await foreground(data);
  await stop(single);
  expect(await refused("import", ...storeOf(service), "--data", data)).toContain("has the data of a service already");
  await foreground(data);
});

test("any past moment of a store can be exported as a folder, while members run", async () => {
  const service = serviceOn(server.url);
  const one = await service.start();
  const begun = Date.now();
  await fill(callOf(one), "first");
  const before = await seenBy(callOf(one));
  const moment = await momentOf(server);
  await fill(callOf(one), "second");
  await callOf(one)("DELETE", "/apps/first?force=true");
  const past = folder();
  const at = (time: string) => ["export", ...storeOf(service), "--at", time];
  await ok(...at(moment), "--data", past);
  const shown = await foreground(past, ["--delays", "none"]);
  expect(await seenBy(call(shown))).toEqual(before);
  // It is another service.
  expect(existsSync(join(past, "data-id"))).toBe(false);
  expect(await refused(...at(new Date(begun - 3600_000).toISOString()), "--data", folder())).toMatch(
    /--at: the store has no entry of that time; its oldest one is of \d{4}-/,
  );
  expect(await refused(...at("2026-11-26T10:00"), "--data", folder())).toContain("It must be a time with its zone");
  expect(await refused("export", "--at", moment, join(dirname(past), "file"))).toContain("--at needs --store");
  const used = await refused(...at(moment), "--data", past);
  expect(used).toMatch(/another machines-service|exists already/);
});

test("after the key is rotated only the new one opens the store, and nothing is lost", async () => {
  const service = serviceOn(server.url);
  const one = await service.start();
  await fill(callOf(one), "web");
  const before = await seenBy(callOf(one));
  const history = await historyOf(one);
  const sent = "SELECT max(last) AS last FROM machines_service.history";
  await expect
    .poll(async () => Number((await server.query(sent)).rows[0]?.last))
    .toBeGreaterThanOrEqual(history.length);
  const next = join(dirname(one.data), "next");
  writeFileSync(next, await ok("key", "new"));
  const rotate = ["key", "rotate", ...storeOf(service), "--new-key-file", next];
  expect(await refused(...rotate)).toContain("leads; stop all members first");
  // It has not ended its lease, so the command waits until that has ended by itself.
  process.kill(one.pid, "SIGKILL");
  await one.end;
  await ok(...rotate);
  expect(await refused("start", ...service.options, "--data", folder(), "--listen", "127.0.0.1:0")).toContain(
    "belongs to another service, which has another key",
  );
  writeFileSync(service.keyFile, readFileSync(next));
  // A copy from before, and a new one.
  for (const data of allOr([one.data, folder()], [folder()])) {
    const member = await service.start(data);
    await leaderOf([member]);
    expect(await seenBy(callOf(member))).toEqual(before);
    expect((await historyOf(member)).slice(0, history.length)).toEqual(history);
    expect(existsSync(join(data, "service.db"))).toBe(true);
    await stop(member);
  }
});
