// Planned faults (F01–F05, F13–F15, F24), which other tests rely on.
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { MovableClock } from "../../service/time/clock.ts";
import { gate } from "../support/gate.ts";
import { callerWith, withApp } from "./client.ts";

test("a fault before the change leaves nothing behind, one after it leaves the whole change", async () => {
  const { call, fail, machines } = await withApp();
  const create = () => call("POST", machines, { config: { image: "nginx" } });
  fail({
    operation: "machines.create",
    when: "before",
    status: 503,
    headers: { "retry-after": "2" },
    body: { error: "later" },
  });
  const refused = await create();
  expect(refused).toMatchObject({ status: 503, body: { error: "later" } });
  expect(refused.headers.get("retry-after")).toBe("2");
  expect((await call("GET", machines)).body).toHaveLength(0);
  fail({ operation: "machines.create", when: "after", status: 502, body: "<html>" });
  expect(await create()).toMatchObject({ status: 502, text: "<html>" });
  expect((await call("GET", machines)).body).toHaveLength(1);
  expect((await create()).status).toBe(200);
});

test.each(["before", "after"] as const)("a connection is closed %s the change", async (when) => {
  const { call, fail, machines } = await withApp();
  fail({ operation: "machines.create", when, status: "reset" });
  await expect(call("POST", machines, { config: { image: "nginx" } })).rejects.toThrow(/fetch failed/);
  expect((await call("GET", machines)).body).toHaveLength(when === "before" ? 0 : 1);
});

test("a fault affects the nth request, and as many as requested", async () => {
  const { call, fail } = await withApp();
  fail({ operation: "apps.get", when: "before", nth: 2, times: 2, status: 429 });
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) statuses.push((await call("GET", "/apps/web")).status);
  expect(statuses).toEqual([200, 429, 429, 200, 200]);
});

test("an answer can be rewritten, and a request delayed", async () => {
  const { call, fail, machine, machines, requests } = await withApp();
  await machine();
  fail({ operation: "machines.list", when: "after", rewrite: () => [] });
  expect((await call("GET", machines)).body).toEqual([]);
  expect((await call("GET", machines)).body).toHaveLength(1);
  const { opened, open } = gate();
  const order: string[] = [];
  fail({ operation: "apps.get", when: "before", until: () => opened });
  const held = call("GET", "/apps/web").then(() => order.push("held"));
  await call("GET", machines).then(() => order.push("free"));
  open();
  await held;
  expect(order).toEqual(["free", "held"]);
  fail({ operation: "apps.get", when: "before", delayMs: 100 });
  await call("GET", "/apps/web");
  await expect.poll(() => requests.at(-1)?.ms).toBeGreaterThan(98);
});

test("every answered request is counted, including refusals", async () => {
  const { call, requests, machines, machine } = await withApp();
  requests.length = 0;
  await machine();
  await call("GET", `${machines}/none`);
  await call("GET", "/nowhere");
  expect(requests.map(({ operation, method, path, status }) => [operation, method, path, status])).toEqual([
    ["machines.create", "POST", "/v1/apps/web/machines", 200],
    ["machines.get", "GET", "/v1/apps/web/machines/none", 404],
    [undefined, "GET", "/v1/nowhere", 404],
  ]);
});

test("a strict service refuses to send an answer that its row does not describe", async () => {
  const { call, service } = await withApp();
  const ams = service.context.regions.get("ams");
  if (ams) Object.assign(ams, { latitude: "north" });
  const answer = await call("GET", "/platform/regions");
  expect([answer.status, answer.body.error]).toEqual([
    500,
    expect.stringContaining(
      "platform.regions built an answer (200) that its row does not describe: invalid regions[0].latitude",
    ),
  ]);
});

test("a fault counts only requests that it could affect", async () => {
  const { call, fail, machine, machines } = await withApp();
  const { id } = await machine();
  fail({ operation: "machines.get", path: id, nth: 2, status: 500 });
  fail({ org: "elsewhere", times: "always", status: 500 });
  const look = async (path: string) => (await call("GET", path)).status;
  expect([await look(`${machines}/none`), await look("/apps/web")]).toEqual([404, 200]);
  expect([await look(`${machines}/${id}`), await look(`${machines}/${id}`)]).toEqual([200, 500]);
});

test("a fault before and one after affect the same request, and the audit log names both", async () => {
  const { call, fail, service } = await withApp();
  fail({ operation: "apps.get", delayMs: 0 }, { operation: "apps.get", merge: { status: "suspended" } });
  expect((await call("GET", "/apps/web")).body.status).toBe("suspended");
  expect(service.audit.after(0).at(-1)?.faults).toEqual(["fault-1", "fault-2"]);
});

test("a request that the service itself refuses is not affected by a later fault", async () => {
  const { call, fail, service } = await withApp();
  fail({ operation: "apps.get", when: "after", status: 500 });
  expect((await call("GET", "/apps/none")).status).toBe(404);
  expect(service.faults.planned[0]?.seen).toBe(0);
});

test("an advanced clock runs everything due in order, and continues with the real clock", () => {
  const clock = new ManualClock(1000);
  const movable = new MovableClock(clock);
  const happened: [string, number][] = [];
  const note = (name: string) => () => happened.push([name, movable.now()]);
  movable.after(500, note("c"));
  movable.after(100, () => {
    note("a")();
    movable.after(50, note("b"));
  });
  movable.after(900, note("d"));
  const never = movable.after(300, note("never"));
  never();
  movable.advance(600);
  expect(movable.now()).toBe(1600);
  clock.advance(299);
  expect(happened).toEqual([
    ["a", 1100],
    ["b", 1150],
    ["c", 1500],
  ]);
  clock.advance(1);
  expect(happened.at(-1)).toEqual(["d", 1900]);
});

type Values = Readonly<Record<string, unknown>>;

describe("an unreachable host", () => {
  test("its Machines are listed without configuration, and only force destroys one", async () => {
    const { call, machines, machine, service } = await withApp();
    const [{ id }, other] = [await machine({}, { region: "ams" }), await machine({}, { region: "ams" })];
    const at = `${machines}/${id}`;
    expect((await call("GET", `${at}/wait?state=started`)).status).toBe(200);
    const lost = (await call("GET", at)).body;
    const [fault = ""] = service.faults.add({ unreachableHost: { machines: [lost.id] } });
    const { config: _, ...known } = lost;
    expect((await call("GET", at)).body).toEqual({ ...known, host_status: "unreachable" });
    for (const path of [machines, `${machines}?include_leases=true`]) {
      const listed: Values[] = (await call("GET", path)).body;
      const shown = Object.fromEntries(listed.map((one) => [one["id"], [one["host_status"], "config" in one]]));
      expect(shown).toEqual({ [lost.id]: ["unreachable", false], [other.id]: ["ok", true] });
    }
    const inOrg: Values[] = (await call("GET", "/orgs/personal/machines")).body.machines;
    expect(inOrg.filter((one) => !("config" in one)).map(({ id }) => id)).toEqual([lost.id]);
    const requests: [string, string, unknown?][] = [
      ["POST", "", { config: { image: "nginx:2" } }],
      ["POST", "/stop"],
      ["POST", "/start"],
      ["POST", "/restart"],
      ["POST", "/exec", { command: ["true"] }],
      ["POST", "/lease"],
      ["POST", "/metadata/key", { value: "1" }],
      ["GET", "/metadata"],
      ["GET", "/events"],
      ["GET", "/wait?state=stopped"],
      ["DELETE", ""],
    ];
    const error = `unavailable: the host of machine ${lost.id} cannot be reached; nothing was changed`;
    for (const [method, path, body] of requests)
      expect(await call(method, `${at}${path}`, body), path).toMatchObject({ status: 503, body: { error } });
    expect((await call("POST", `${machines}/${other.id}/stop`)).status).toBe(200);
    service.faults.remove(fault);
    expect((await call("GET", at)).body).toEqual(lost);
    service.faults.add({ unreachableHost: { machines: [lost.id] } });
    expect((await call("DELETE", `${at}?force=true`)).status).toBe(200);
    expect((await call("GET", `${at}/wait?state=destroyed`)).status).toBe(200);
    expect((await call("GET", machines)).body.map(({ id }: Values) => id)).toEqual([other.id]);
  });

  test("it is chosen by App and region, and no other organization learns of it", async () => {
    const scene = await withApp();
    const { call, machines, machine, service } = scene;
    const [ams, fra] = [await machine({}, { region: "ams" }), await machine({}, { region: "fra" })];
    service.faults.add({ unreachableHost: { app: "web", region: "ams" } });
    const statusesOf = async (path: string) =>
      Object.fromEntries((await call("GET", path)).body.map((one: Values) => [one["id"], one["host_status"]]));
    expect(await statusesOf(machines)).toEqual({ [ams.id]: "unreachable", [fra.id]: "ok" });
    await call("POST", "/apps", { name: "elsewhere", org_slug: "personal" });
    const elsewhere = await call("POST", "/apps/elsewhere/machines", { config: { image: "nginx" }, region: "ams" });
    expect(await statusesOf("/apps/elsewhere/machines")).toEqual({ [elsewhere.body.id]: "ok" });
    const create = { config: { image: "nginx" }, region: "ams" };
    expect((await call("POST", machines, create)).status).toBe(422);
    expect((await call("POST", "/apps/web/volumes", { name: "data", region: "ams" })).status).toBe(409);
    expect((await call("POST", machines, { ...create, region: "fra" })).status).toBe(200);
    const stranger = callerWith(scene, "token-of-others", { slug: "others" });
    expect((await stranger("POST", `${machines}/${ams.id}/stop`)).status).toBe(403);
  });

  test("its volumes stay on it after their Machine, and no Machine can mount them", async () => {
    const { call, machines, machine, service } = await withApp();
    const volumes = "/apps/web/volumes";
    const [data, free] = [
      (await call("POST", volumes, { name: "data", region: "ams" })).body,
      (await call("POST", volumes, { name: "free", region: "ams" })).body,
    ];
    const mounts = [{ volume: data.id, path: "/data" }];
    const { id } = await machine({ mounts }, { region: "ams" });
    service.faults.add({ unreachableHost: { machines: [id] } });
    const statuses = async () =>
      Object.fromEntries((await call("GET", volumes)).body.map((one: Values) => [one["id"], one["host_status"]]));
    expect(await statuses()).toEqual({ [data.id]: "unreachable", [free.id]: "ok" });
    expect((await call("PUT", `${volumes}/${data.id}/extend`, { size_gb: 9 })).status).toBe(503);
    expect((await call("DELETE", `${machines}/${id}?force=true`)).status).toBe(200);
    expect(await statuses()).toEqual({ [data.id]: "unreachable", [free.id]: "ok" });
    expect((await call("DELETE", `${volumes}/${data.id}`)).status).toBe(503);
    expect(await call("POST", machines, { config: { image: "nginx", mounts }, region: "ams" })).toMatchObject({
      status: 412,
      body: { status: "volume_placement_capacity" },
    });
  });
});
