// The health and metrics of the service.
import { expect, test } from "vitest";
import { withApp, withStillClock } from "./client.ts";
import { figures } from "./watch/figures.ts";

test("requests, Machines, waits, the store, limits and faults are counted", async () => {
  // The clock stands still: the Machine stays in its state, however long the requests take.
  const scene = await withStillClock({ rateLimits: "documented" });
  const { call, fail, machine, machines } = scene;
  const { id } = await machine({}, { skip_launch: true });
  fail({ operation: "apps.get", status: "reset" }, { operation: "apps.get", nth: 2, status: 500 });
  await expect(call("GET", "/apps/web")).rejects.toThrow("fetch failed");
  for (let i = 0; i < 3; i++) await call("GET", "/apps/web");
  const held = call("GET", `${machines}/${id}/wait?state=suspended&timeout=60`).catch(() => undefined);
  await expect.poll(() => scene.service.context.waits.size).toBe(1);
  const before = await figures(scene);
  const counted = (labels: string) => before.get(`machines_service_requests_total{${labels}}`);
  expect(counted('operation="apps.get",status="500"')).toBe(1);
  expect(counted('operation="apps.get",status="cut"')).toBe(1);
  expect(counted('operation="apps.get",status="200"')).toBe(1);
  expect(counted('operation="apps.get",status="429"')).toBe(1);
  expect(before.get("machines_service_waits")).toBe(1);
  expect(before.get("machines_service_faults_total")).toBe(2);
  expect(before.get("machines_service_rate_limited_total")).toBe(1);
  expect(before.get("machines_service_store_bytes")).toBeGreaterThan(50_000);
  expect(before.get('machines_service_machines{state="created"}')).toBe(1);
  await scene.close();
  await held;
});

test("durations are counted in every matching bucket", async () => {
  const scene = await withApp();
  scene.fail({ operation: "apps.get", delayMs: 30 });
  await scene.call("GET", "/apps/web");
  const after = await figures(scene);
  const bucket = (le: string) =>
    after.get(`machines_service_request_duration_seconds_bucket{operation="apps.get",le="${le}"}`);
  expect([bucket("0.025"), bucket("60"), bucket("+Inf")]).toEqual([0, 1, 1]);
  expect(after.get('machines_service_request_duration_seconds_count{operation="apps.get"}')).toBe(1);
  expect(after.get('machines_service_request_duration_seconds_sum{operation="apps.get"}')).toBeGreaterThan(0.029);
});

test("metrics require a token, the health check does not", async () => {
  const { url } = await withApp();
  expect((await fetch(`${url}/metrics`)).status).toBe(401);
  for (const path of ["/healthz", "/readyz"]) {
    const response = await fetch(`${url}${path}`);
    expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
  }
});

test.each(["/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"])(
  "other websites cannot read %s",
  async (path) => {
    const { url } = await withApp();
    expect((await fetch(`${url}${path}`, { headers: { origin: "http://evil.example" } })).status).toBe(403);
  },
);

test("a service with an unwritable store is not ready until it can write again", async () => {
  const { url, service, call } = await withApp();
  const { db } = service.context.store;
  const ready = async () => (await fetch(`${url}/readyz`)).status;
  const pages = db.prepare("PRAGMA page_count").get()?.["page_count"];
  db.exec(`PRAGMA max_page_count = ${Number(pages)}`);
  expect(await ready()).toBe(503);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect((await call("GET", "/apps/web")).status).toBe(200);
  db.exec("PRAGMA max_page_count = 1000000");
  service.context.clock.advance(1000);
  expect(await ready()).toBe(200);
  expect(service.context.store.get("SELECT count(*) AS images FROM images WHERE reference = ''")).toEqual({
    images: 0,
  });
});

test("a service that is closing is not ready", async () => {
  const { service } = await withApp();
  const closing = service.close();
  expect((await service.app.inject({ url: "/readyz" })).statusCode).toBe(503);
  await closing;
});

test.each([
  ["PATCH", "/v1/apps", "GET, POST"],
  ["PUT", "/v1/apps/web/machines/none", "GET, POST, DELETE"],
  ["GET", "/v1/apps/web/certificates/acme/check/x", undefined],
  ["OPTIONS", "/v1/apps/web/certificates/acme", "POST"],
  ["POST", "/healthz", "GET"],
])("%s %s does not exist, and the error names the alternatives", async (method, path, allow) => {
  const { url, token } = await withApp();
  const response = await fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
  expect([response.status, response.headers.get("allow") ?? undefined]).toEqual([
    allow === undefined ? 404 : 405,
    allow,
  ]);
});
