// Faults on purpose (F01–F05, F13–F15, F24), which other tests lean on.
import { expect, test } from "vitest";
import { withApp } from "./client.ts";

test("a fault before the change leaves nothing behind, one after it leaves everything", async () => {
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

test.each(["before", "after"] as const)("a connection is cut %s the change", async (when) => {
  const { call, fail, machines } = await withApp();
  fail({ operation: "machines.create", when, status: "reset" });
  await expect(call("POST", machines, { config: { image: "nginx" } })).rejects.toThrow(/fetch failed/);
  expect((await call("GET", machines)).body).toHaveLength(when === "before" ? 0 : 1);
});

test("a fault meets the nth request, and as many as asked for", async () => {
  const { call, fail } = await withApp();
  fail({ operation: "apps.get", when: "before", nth: 2, times: 2, status: 429 });
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) statuses.push((await call("GET", "/apps/web")).status);
  expect(statuses).toEqual([200, 429, 429, 200, 200]);
});

test("an answer can be rewritten, and a request held back", async () => {
  const { call, fail, machine, machines } = await withApp();
  await machine();
  fail({ operation: "machines.list", when: "after", rewrite: () => [] });
  expect((await call("GET", machines)).body).toEqual([]);
  expect((await call("GET", machines)).body).toHaveLength(1);
  const order: string[] = [];
  fail({ operation: "apps.get", when: "before", delayMs: 100 });
  await Promise.all([
    call("GET", "/apps/web").then(() => order.push("held")),
    call("GET", machines).then(() => order.push("free")),
  ]);
  expect(order).toEqual(["free", "held"]);
});

test("every request that was answered is counted, refusals included", async () => {
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

test("a strict service refuses to give an answer its row does not describe", async () => {
  const { call, service } = await withApp();
  const ams = service.world.regions.get("ams");
  if (ams) Object.assign(ams, { latitude: "north" });
  const answer = await call("GET", "/platform/regions");
  expect([answer.status, answer.body.error]).toEqual([
    500,
    expect.stringContaining(
      "platform.regions made an answer (200) that its row does not describe: invalid regions[0].latitude",
    ),
  ]);
});
