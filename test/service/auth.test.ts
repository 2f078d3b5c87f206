// Authentication (docs/interface.md#authentication, docs/interface.md#refusals), and the limits of web pages (F36).
import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { addToken } from "../../service/store/tokens.ts";
import { caller, withApp } from "./client.ts";

const unauthenticated = { error: "Authenticate: token validation error" };

test.each([
  ["no header", undefined],
  ["an unknown token", "Bearer nonsense"],
  ["an empty token", "Bearer "],
  ["another scheme", "Basic dTpw"],
  ["no scheme", "the-token-alone"],
])("%s is 401 on every kind of route", async (_, authorization) => {
  const { url } = await withApp();
  for (const path of [
    "/v1/apps/web",
    "/v1/apps?org_slug=personal",
    "/v1/platform/regions",
    "/v1/nowhere",
    "/nowhere",
  ]) {
    const answer = await fetch(url + path, authorization === undefined ? {} : { headers: { authorization } });
    expect([path, answer.status, await answer.json()]).toEqual([path, 401, unauthenticated]);
  }
});

test("a token is valid until it expires", async () => {
  const { url, clock, service } = await withApp({ clock: new ManualClock() });
  addToken(service.context.store, "short-lived", { slug: "personal", expiresAt: clock.now() + 60_000 }, clock.now());
  const call = caller(url, "short-lived");
  expect((await call("GET", "/apps/web")).status).toBe(200);
  clock.advance(59_999);
  expect((await call("GET", "/apps/web")).status).toBe(200);
  clock.advance(1);
  expect(await call("GET", "/apps/web")).toMatchObject({ status: 401, body: unauthenticated });
});

test("every request for objects of another organization is 403", async () => {
  const { url, service, call, machine, volume, machines } = await withApp();
  const { id } = await machine();
  const { id: disk } = await volume();
  addToken(service.context.store, "stranger", { slug: "strangers", expiresAt: null }, 0);
  const stranger = caller(url, "stranger");
  const before = (await call("GET", machines)).text;
  for (const [method, path, body] of [
    ["GET", "/apps/web"],
    ["DELETE", "/apps/web"],
    ["GET", machines],
    ["POST", machines, { config: { image: "nginx" } }],
    ["GET", `${machines}/${id}`],
    ["GET", `${machines}/${id}/wait`],
    ["POST", `${machines}/${id}/lease`],
    ["DELETE", `${machines}/${id}?force=true`],
    ["GET", `/apps/web/volumes/${disk}`],
    ["DELETE", `/apps/web/volumes/${disk}`],
    ["GET", "/apps?org_slug=strangers"],
  ] as const) {
    const answer = await stranger(method, path, body);
    expect([path, answer.status]).toEqual([path, path.startsWith("/apps?") ? 200 : 403]);
    if (answer.status === 403) expect(answer.body).toEqual({ error: "unauthorized" });
  }
  expect((await call("GET", machines)).text).toBe(before);
});

test("personal is the token's own organization; another's slug is refused", async () => {
  const { url, service, call } = await withApp();
  addToken(service.context.store, "stranger", { slug: "strangers", expiresAt: null }, 0);
  const stranger = caller(url, "stranger");
  await stranger("POST", "/apps", { name: "theirs", org_slug: "personal" });
  expect((await stranger("GET", "/apps/theirs")).body.organization.slug).toBe("strangers");
  expect((await call("GET", "/apps?org_slug=personal")).body.total_apps).toBe(1);
  expect((await call("GET", "/apps?org_slug=strangers")).status).toBe(403);
  expect((await call("POST", "/apps", { name: "theirs", org_slug: "personal" })).body.status).toBe("name_taken");
});

test("a volume or snapshot of another organization cannot be copied", async () => {
  const { url, service, call, volume } = await withApp();
  addToken(service.context.store, "stranger", { slug: "strangers", expiresAt: null }, 0);
  const stranger = caller(url, "stranger");
  await stranger("POST", "/apps", { name: "theirs", org_slug: "personal" });
  const { id } = await volume();
  await call("POST", `/apps/web/volumes/${id}/snapshots`);
  const [snapshot] = (await call("GET", `/apps/web/volumes/${id}/snapshots`)).body;
  for (const source of [{ source_volume_id: id }, { snapshot_id: snapshot.id }]) {
    expect((await stranger("POST", "/apps/theirs/volumes", { name: "copy", ...source })).status).toBe(404);
    expect((await call("POST", "/apps/web/volumes", { name: "copy", ...source })).status).toBe(200);
  }
});

test("the store has no token in plain text", async () => {
  const { service, token } = await withApp();
  const rows = service.context.store.all("SELECT * FROM tokens");
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain(token);
});

/** A request with headers that `fetch` does not allow. */
function raw(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    httpRequest(`${url}/v1/apps/web`, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}

test("F36 a host name that is not this computer's is refused, because foreign DNS can point here", async () => {
  const { url, token } = await withApp({ allowHosts: ["machines.test"] });
  const authorization = `Bearer ${token}`;
  for (const [host, status] of [
    ["localhost", 200],
    ["127.0.0.1:4280", 200],
    ["[::1]:4280", 200],
    ["machines.test:80", 200],
    ["evil.example", 403],
    ["localhost.evil.example", 403],
    ["evil.example:4280", 403],
  ] as const) {
    expect([host, await raw(url, { host, authorization })]).toEqual([host, status]);
  }
});

test("F36 a browser's requests from another website are refused", async () => {
  const { url, token } = await withApp();
  const authorization = `Bearer ${token}`;
  const host = new URL(url).host;
  expect(await raw(url, { host, authorization, origin: "https://evil.example" })).toBe(403);
  expect(await raw(url, { host, authorization, origin: "http://localhost:3000" })).toBe(403);
  expect(await raw(url, { host, authorization, origin: "null" })).toBe(403);
  expect(await raw(url, { host, authorization, "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await raw(url, { host, authorization, origin: url })).toBe(200);
});
