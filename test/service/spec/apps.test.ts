// Apps (docs/interface.md#apps). Every test of this folder is written by hand from docs/interface.md, never from the
// contract: otherwise it would not notice a wrong row.
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { addToken } from "../../../service/store/tokens.ts";
import { caller, callerWith, pages, withApp, withStillClock } from "../client.ts";

const failed = (text: string) => ({ error: text });

test("creating an App answers 201 with the App and milliseconds", async () => {
  const { call } = await withApp();
  const made = await call("POST", "/apps", { app_name: "other", org_slug: "personal" });
  expect(made.status).toBe(201);
  const { created_at, ...app } = made.body;
  expect(created_at).toBeGreaterThan(1.6e12);
  expect(app).toMatchObject({
    id: expect.stringMatching(/^[a-z0-9]{16}$/),
    name: "other",
    status: "pending",
    organization: { name: expect.any(String), slug: "personal", internal_numeric_id: expect.any(Number) },
  });
  expect((await call("GET", "/apps/other")).body).toEqual(app);
});

test("an App shows the host name that CNAME records of its hostnames point at", async () => {
  const { call } = await withApp();
  const { cname_target } = (await call("GET", "/apps/web")).body;
  expect(cname_target).toMatch(/^web\./);
  const hostname = await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  expect(hostname.body.dns_requirements.cname).toBe(cname_target);
});

test("an App shows its organization, its counts and whether it has Machines", async () => {
  const { call, machine, volume } = await withApp();
  expect((await call("GET", "/apps/web")).body).toMatchObject({
    name: "web",
    status: "pending",
    network: "default",
    machine_count: 0,
    volume_count: 0,
    organization: { slug: "personal" },
  });
  await machine();
  await volume();
  expect((await call("GET", "/apps/web")).body).toMatchObject({
    status: "deployed",
    machine_count: 1,
    volume_count: 1,
  });
});

test.each([
  ["no organization", { name: "x" }, 400, "authorization: request doesn't contain org_slug"],
  ["an empty organization", { name: "x", org_slug: "" }, 400, "authorization: request doesn't contain org_slug"],
  ["null for an organization", { name: "x", org_slug: null }, 400, "authorization: request doesn't contain org_slug"],
  ["an empty body", {}, 400, "authorization: request doesn't contain org_slug"],
  ["no name", { org_slug: "personal" }, 400, "invalid name, got nothing, must be of type string"],
  ["null for a name", { name: null, org_slug: "personal" }, 400, "invalid name, got nothing, must be of type string"],
  [
    "no name for a new key",
    { org_slug: "personal", idempotency_key: "k" },
    400,
    "invalid name, got nothing, must be of type string",
  ],
  ["an empty name", { name: "", org_slug: "personal" }, 400, 'invalid name, got "", must be 1 to 62 of a-z, 0-9 and -'],
  [
    "a number for a name",
    { name: 5, org_slug: "personal" },
    400,
    "invalid name, got a value of type number, must be of type string",
  ],
  [
    "a list for the other spelling of the name",
    { app_name: ["x"], org_slug: "personal" },
    400,
    "invalid app_name, got an array, must be of type string",
  ],
  ["a taken name", { name: "web", org_slug: "personal" }, 422, "Validation failed: Name has already been taken"],
  [
    "a bad name",
    { name: "No Good", org_slug: "personal" },
    422,
    "Validation failed: Name under 63 chars using numbers, lowercase letters and dashes",
  ],
  [
    "a bad name in its other spelling",
    { app_name: "No Good", org_slug: "personal" },
    422,
    "Validation failed: Name under 63 chars using numbers, lowercase letters and dashes",
  ],
  [
    "a long name",
    { name: "a".repeat(63), org_slug: "personal" },
    422,
    "Validation failed: Name under 63 chars using numbers, lowercase letters and dashes",
  ],
  ["an unknown organization", { name: "x", org_slug: "nobody" }, 404, "organization not found"],
])("an App with %s is refused", async (_, body, status, text) => {
  const { call } = await withApp();
  const answer = await call("POST", "/apps", body);
  expect(answer.status).toBe(status);
  expect(answer.body.error).toBe(text);
});

test("a taken name is marked name_taken", async () => {
  const { call } = await withApp();
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal" })).body.status).toBe("name_taken");
});

test("an idempotency key returns the first App and refuses another name", async () => {
  const { call } = await withApp();
  const create = (body: object) => call("POST", "/apps", { org_slug: "personal", idempotency_key: "k1", ...body });
  const first = await create({ name: "one" });
  expect((await create({ name: "one" })).body).toEqual(first.body);
  expect((await create({})).body).toEqual(first.body);
  expect((await create({ name: "two" })).status).toBe(422);
});

test("the list of Apps counts, filters by role and is paged", async () => {
  const { call } = await withApp();
  for (const name of ["a1", "a2", "a3"])
    await call("POST", "/apps", {
      name,
      org_slug: "personal",
      ...(name === "a2" ? { app_role_id: "postgres_cluster" } : {}),
    });
  const all = (await call("GET", "/apps?org_slug=personal")).body;
  expect(all.total_apps).toBe(4);
  expect(all.apps.map(({ name }: { name: string }) => name)).toEqual(["web", "a1", "a2", "a3"]);
  expect(all).not.toHaveProperty("next_cursor");
  expect((await call("GET", "/apps?org_slug=personal&app_role=postgres_cluster")).body.apps).toMatchObject([
    { name: "a2", app_role: "postgres_cluster" },
  ]);
  const first = (await call("GET", "/apps?org_slug=personal&limit=3")).body;
  expect(first.apps).toHaveLength(3);
  const second = (await call("GET", `/apps?org_slug=personal&limit=3&cursor=${first.next_cursor}`)).body;
  expect(second.apps).toMatchObject([{ name: "a3" }]);
  expect(second).not.toHaveProperty("next_cursor");
  expect((await call("GET", "/apps?org_slug=personal&cursor=nonsense")).status).toBe(400);
  expect((await call("GET", "/apps")).status).toBe(400);
});

test("deleting an App is 202 without a body and deletes its contents", async () => {
  const { call, machine, volume, machines } = await withApp();
  const { id } = await machine();
  const { id: disk } = await volume();
  const gone = await call("DELETE", "/apps/web");
  expect([gone.status, gone.text]).toEqual([202, ""]);
  for (const path of ["/apps/web", machines, `${machines}/${id}`, `/apps/web/volumes/${disk}`]) {
    const answer = await call("GET", path);
    expect([answer.status, answer.body]).toEqual([404, failed("app not found")]);
  }
  expect((await call("DELETE", "/apps/web")).body).toEqual(failed("Could not find App"));
  expect((await call("POST", "/apps", { name: "web", org_slug: "personal" })).status).toBe(201);
  expect((await call("GET", machines)).body).toEqual([]);
});

test("a bad request to create an App is 400 and names the field", async () => {
  const { call } = await withApp();
  for (const [body, text] of [
    ["{", "invalid body"],
    ["[]", "invalid body"],
    ['"web"', "invalid body"],
    [{ name: "x", org_slug: 5 }, "org_slug"],
    [{ name: "x", org_slug: "personal", enable_subdomains: "yes" }, "enable_subdomains"],
  ] as const) {
    const answer = await call("POST", "/apps", body);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(text)]);
  }
  expect((await call("POST", "/apps")).status).toBe(400);
});

test("nulls count as omitted fields", async () => {
  const { call } = await withApp();
  const body = { name: "other", app_name: null, org_slug: "personal", network: null, idempotency_key: null };
  expect((await call("POST", "/apps", body)).status).toBe(201);
  expect((await call("GET", "/apps/other")).body).toMatchObject({ name: "other", network: "default" });
});

test("an App on a separate network shows it", async () => {
  const { call } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal", network: "inner" });
  expect((await call("GET", "/apps/other")).body.network).toBe("inner");
});

test("a list entry has at least id, name, counts and network; paging returns every App exactly once", async () => {
  const { call } = await withApp();
  for (let i = 0; i < 6; i++) await call("POST", "/apps", { name: `a${i}`, org_slug: "personal" });
  const found = await pages(async (cursor) => {
    const { body } = await call("GET", `/apps?org_slug=personal&limit=3${cursor ? `&cursor=${cursor}` : ""}`);
    return { items: body.apps, next: body.next_cursor };
  });
  expect(found.map((page) => page.length)).toEqual([3, 3, 1]);
  expect(found.flat().map(({ name }) => name)).toEqual(["web", "a0", "a1", "a2", "a3", "a4", "a5"]);
  expect(found[0]?.[0]).toMatchObject({
    id: expect.any(String),
    machine_count: 0,
    volume_count: 0,
    network: "default",
  });
  for (const query of ["limit=0", "limit=5001", "limit=x"])
    expect([query, (await call("GET", `/apps?org_slug=personal&${query}`)).status]).toEqual([query, 400]);
});

test("a deleted App disappears a moment later, or at once with force, and accepts no changes meanwhile", async () => {
  const { call, clock, machines } = await withStillClock();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  expect((await call("DELETE", "/apps/web")).status).toBe(202);
  expect((await call("GET", "/apps/web")).status).toBe(200);
  expect((await call("POST", machines, { config: { image: "nginx" } })).status).toBe(404);
  expect((await call("DELETE", "/apps/web")).status).toBe(202);
  clock.advance(1000);
  expect((await call("GET", "/apps/web")).status).toBe(404);
  expect((await call("DELETE", "/apps/other?force=true")).status).toBe(202);
  expect((await call("GET", "/apps/other")).status).toBe(404);
});

// --- tokens (docs/interface.md#deploy-tokens, docs/interface.md#authentication) ---

test("a deploy token is valid only for its App", async () => {
  const { call, url, machines, machine } = await withApp();
  const { id } = await machine();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const made = await call("POST", "/apps/web/deploy_token", {});
  expect([made.status, made.body]).toEqual([200, { token: expect.any(String) }]);
  const deploy = caller(url, made.body.token);
  expect((await deploy("GET", "/apps/web")).body).toMatchObject({ name: "web", organization: { slug: "personal" } });
  expect((await deploy("POST", machines, { config: { image: "nginx" } })).status).toBe(200);
  expect((await deploy("DELETE", `${machines}/${id}?force=true`)).status).toBe(200);
  for (const [method, path, body] of [
    ["GET", "/apps/other"],
    ["DELETE", "/apps/other"],
    ["POST", "/apps/other/machines", { config: { image: "nginx" } }],
    ["POST", "/apps/other/deploy_token", {}],
    ["GET", "/apps?org_slug=personal"],
    ["POST", "/apps", { name: "third", org_slug: "personal" }],
    ["GET", "/orgs/personal/machines"],
    ["GET", "/orgs/personal/volumes"],
    ["GET", "/postgres?org_slug=personal"],
    ["POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic" }],
    ["POST", "/platform/placements", { org_slug: "personal" }],
  ] as const) {
    const answer = await deploy(method, path, body);
    expect([path, answer.status, answer.body]).toEqual([path, 403, failed(expect.stringMatching(/^unauthorized\b/))]);
  }
});

test("two deploy tokens differ, and both are valid", async () => {
  const { call, url } = await withApp();
  const make = async () => (await call("POST", "/apps/web/deploy_token", {})).body.token;
  const [one, two] = [await make(), await make()];
  expect(one).not.toBe(two);
  for (const token of [one, two]) expect((await caller(url, token)("GET", "/apps/web")).status).toBe(200);
});

test("a deploy token expires at the requested time, by default after twenty years", async () => {
  const { call, clock, url } = await withApp({ clock: new ManualClock() });
  const make = async (body: object) => caller(url, (await call("POST", "/apps/web/deploy_token", body)).body.token);
  const [short, long] = [await make({ expiry: "1h30m" }), await make({})];
  clock.advance(90 * 60_000 - 1);
  expect((await short("GET", "/apps/web")).status).toBe(200);
  clock.advance(1);
  expect((await short("GET", "/apps/web")).status).toBe(401);
  clock.advance(19 * 365 * 24 * 3600_000);
  expect((await long("GET", "/apps/web")).status).toBe(200);
  clock.advance(2 * 365 * 24 * 3600_000);
  expect((await long("GET", "/apps/web")).status).toBe(401);
});

test("a deploy token cannot create others, which would outlive its revocation", async () => {
  const { call, url } = await withApp();
  const { token } = (await call("POST", "/apps/web/deploy_token", { expiry: "1h" })).body;
  expect((await caller(url, token)("POST", "/apps/web/deploy_token", { expiry: "1h" })).status).toBe(403);
});

test("a deploy token lasts at most a hundred years, and not longer than the token that created it", async () => {
  const { call, clock, service, url } = await withApp({ clock: new ManualClock() });
  expect((await call("POST", "/apps/web/deploy_token", { expiry: "9999999999h" })).status).toBe(400);
  const { store } = service.context;
  const forAMinute = { slug: "personal", expiresAt: clock.now() + 60_000 };
  await store.write(() => addToken(store, "for-a-minute", forAMinute, clock.now()));
  const { token } = (await caller(url, "for-a-minute")("POST", "/apps/web/deploy_token", {})).body;
  clock.advance(60_000);
  expect((await caller(url, token)("GET", "/apps/web")).status).toBe(401);
});

test("an idempotency key can be reused once its App is being deleted", async () => {
  const { call } = await withApp({ clock: new ManualClock(), delays: "believable" });
  const create = (name: string) => call("POST", "/apps", { name, org_slug: "personal", idempotency_key: "k" });
  const first = (await create("one")).body;
  await call("DELETE", "/apps/one");
  const second = await create("two");
  expect(second.status).toBe(201);
  expect(second.body.id).not.toBe(first.id);
});

test.each(["0s", "soon", "-1h", ["1h"], true])("a deploy token for %j is refused", async (expiry) => {
  const { call } = await withApp();
  const answer = await call("POST", "/apps/web/deploy_token", { expiry });
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining("expiry")]);
});

test("a deploy token ends with its App, even if the name is reused", async () => {
  const { call, clock, url } = await withApp({ clock: new ManualClock() });
  const { token } = (await call("POST", "/apps/web/deploy_token", {})).body;
  await call("DELETE", "/apps/web");
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  expect([401, 403]).toContain((await caller(url, token)("GET", "/apps/web")).status);
  clock.advance(5000);
  expect((await caller(url, token)("GET", "/apps/web")).status).toBe(401);
});

test("a read-only token changes nothing and sees no secret", async () => {
  const app = await withApp();
  const { call, machines, machine } = app;
  const { id } = await machine();
  await call("POST", "/apps/web/secrets/TOKEN", { value: "canary" });
  await call("POST", "/apps/web/secretkeys/k/generate", { type: "nacl_secretbox" });
  const cluster = (await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic" })).body.data
    .id;
  const reader = callerWith(app, "reader", { role: "read" });
  for (const path of [
    "/apps/web",
    machines,
    `${machines}/${id}`,
    `${machines}/${id}/wait`,
    "/apps/web/secrets",
    "/platform/regions",
    "/orgs/personal/machines",
    `/postgres/${cluster}/users`,
  ])
    expect([path, (await reader("GET", path)).status]).toEqual([path, 200]);
  expect((await reader("POST", "/platform/placements", { org_slug: "personal" })).status).toBe(200);
  const before = (await call("GET", machines)).text;
  for (const [method, path, body] of [
    ["POST", "/apps", { name: "other", org_slug: "personal" }],
    ["DELETE", "/apps/web"],
    ["POST", machines, { config: { image: "nginx" } }],
    ["POST", `${machines}/${id}`, { config: { image: "nginx:2" } }],
    ["POST", `${machines}/${id}/stop`],
    ["POST", `${machines}/${id}/lease`],
    ["POST", `${machines}/${id}/exec`, { command: ["env"] }],
    ["PATCH", `${machines}/${id}/metadata`, { metadata: { a: "b" } }],
    ["DELETE", `${machines}/${id}?force=true`],
    ["GET", "/apps/web/secrets?show_secrets=true"],
    ["GET", "/apps/web/secrets/TOKEN?show_secrets=true"],
    ["POST", "/apps/web/secretkeys/k/decrypt", { ciphertext: "" }],
    ["POST", "/apps/web/secretkeys/k/encrypt", { plaintext: "" }],
    ["GET", `/postgres/${cluster}/users/fly-user/credentials`],
    ["POST", "/apps/web/deploy_token", {}],
  ] as const) {
    const answer = await reader(method, path, body);
    expect([path, answer.status, answer.body]).toEqual([path, 403, failed(expect.stringMatching(/^unauthorized\b/))]);
  }
  expect((await call("GET", machines)).text).toBe(before);
});
