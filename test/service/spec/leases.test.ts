// Leases (docs/interface.md#leases).
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { addToken } from "../../../service/store/tokens.ts";
import { caller, withApp } from "../client.ts";

async function setup() {
  const app = await withApp({ clock: new ManualClock(Date.UTC(2026, 0, 1)), delays: "none" });
  const { id } = await app.machine();
  const one = `${app.machines}/${id}`;
  const { store } = app.service.context;
  await store.write(() => addToken(store, "second-client", { slug: "personal", expiresAt: null }, 0));
  const other = caller(app.url, "second-client");
  const acquire = async (body: object = {}) => (await app.call("POST", `${one}/lease`, body)).body.data;
  return { ...app, id, one, other, acquire };
}

const header = (nonce: string) => ({ "svc-machine-lease-nonce": nonce });

test("a lease is granted with 201 in an envelope, by default for 30 seconds", async () => {
  const { call, one, machine, machines } = await setup();
  const granted = await call("POST", `${one}/lease`, { description: "deploy" });
  expect(granted.status).toBe(201);
  expect(granted.body).toEqual({
    status: "success",
    data: {
      nonce: expect.stringMatching(/^[0-9a-f]{12,}$/),
      expires_at: Date.UTC(2026, 0, 1) / 1000 + 30,
      owner: expect.stringContaining("@"),
      description: "deploy",
      version: (await call("GET", one)).body.version,
    },
  });
  const { id } = await machine();
  expect((await call("POST", `${machines}/${id}/lease`)).body.data).toMatchObject({
    description: "",
    expires_at: Date.UTC(2026, 0, 1) / 1000 + 30,
  });
});

test("the ttl is in the body or in the query, and is 1 to 3600", async () => {
  const { call, machine, machines } = await setup();
  for (const [ttl, status] of [
    [0, 400],
    [-1, 400],
    [3601, 400],
    [1, 201],
    [3600, 201],
  ] as const) {
    const { id } = await machine();
    expect((await call("POST", `${machines}/${id}/lease`, { ttl })).status).toBe(status);
    const { id: second } = await machine();
    const answer = await call("POST", `${machines}/${second}/lease?ttl=${ttl}`);
    expect(answer.status).toBe(status);
    if (status === 201) expect(answer.body.data.expires_at).toBe(Date.UTC(2026, 0, 1) / 1000 + ttl);
  }
});

test("an active lease refuses all other clients, with holder and expiry", async () => {
  const { id, one, other, acquire } = await setup();
  const { owner, nonce } = await acquire({ ttl: 13 });
  const text = `machine ID ${id} lease currently held by ${owner}, expires at 2026-01-01T00:00:13Z`;
  expect(await other("POST", `${one}/lease`)).toMatchObject({
    status: 409,
    body: { status: "error", message: text, code: "invalid" },
  });
  expect(await other("POST", `${one}/stop`)).toMatchObject({ status: 409, body: { error: text } });
  expect((await other("GET", `${one}/lease`)).body.data).not.toHaveProperty("nonce");
  expect((await other("GET", `${one}/lease`, undefined, header(nonce))).body.data.nonce).toBe(nonce);
});

const guarded = [
  ["POST", "", { config: { image: "nginx:2" } }],
  ["POST", "/start"],
  ["POST", "/stop"],
  ["POST", "/restart"],
  ["POST", "/suspend"],
  ["POST", "/cordon"],
  ["POST", "/uncordon"],
  ["DELETE", "?force=true"],
] as const;

test.each(guarded)(
  "%s %s without the nonce is refused and changes nothing; with it, it succeeds",
  async (method, path, body?: object) => {
    const { call, one, acquire } = await setup();
    if (path === "/start") await call("POST", `${one}/stop`);
    const { nonce } = await acquire();
    const before = (await call("GET", one)).text;
    expect((await call(method, one + path, body)).status).toBe(409);
    expect((await call(method, one + path, body, header("0".repeat(32)))).status).toBe(409);
    expect((await call("GET", one)).text).toBe(before);
    expect((await call(method, one + path, body, header(nonce))).status).toBe(200);
  },
);

test("either spelling of the header is the nonce, an empty one is ignored", async () => {
  const { call, one, acquire } = await setup();
  const { nonce } = await acquire();
  expect((await call("POST", `${one}/cordon`, undefined, { "fly-machine-lease-nonce": nonce })).status).toBe(200);
  expect((await call("POST", `${one}/cordon`, undefined, header(""))).status).toBe(409);
});

test("reads, waits and metadata need no lease", async () => {
  const { one, other, acquire } = await setup();
  await acquire();
  for (const path of ["", "/events", "/versions", "/metadata", "/lease", "/wait?timeout=1"])
    expect([path, (await other("GET", one + path)).status]).toEqual([path, 200]);
  expect((await other("PATCH", `${one}/metadata`, { metadata: { a: "b" } })).status).toBe(204);
});

test("a refresh with the nonce keeps the lease and restarts its duration", async () => {
  const { call, clock, one, acquire } = await setup();
  const { nonce, expires_at } = await acquire({ ttl: 10, description: "mine" });
  clock.advance(6000);
  const again = await call("POST", `${one}/lease`, { ttl: 10 }, header(nonce));
  expect(again).toMatchObject({
    status: 201,
    body: { data: { nonce, expires_at: expires_at + 6, description: "mine" } },
  });
  clock.advance(9000);
  expect((await call("GET", `${one}/lease`)).status).toBe(200);
  expect((await call("POST", `${one}/lease`, { ttl: 10 }, header("f".repeat(32)))).status).toBe(409);
});

test("an expired lease disappears silently, and its nonce is invalid", async () => {
  const { call, clock, one, other, acquire } = await setup();
  const { nonce } = await acquire({ ttl: 5 });
  clock.advance(4999);
  expect((await other("POST", `${one}/cordon`)).status).toBe(409);
  clock.advance(1);
  expect(await call("GET", `${one}/lease`)).toMatchObject({ status: 404, body: { error: "lease not found" } });
  expect((await other("POST", `${one}/cordon`)).status).toBe(200);
  // Fencing: a client that still uses an old nonce must be refused, whether or not there is a new holder.
  expect((await call("POST", `${one}/uncordon`, undefined, header(nonce))).status).toBe(409);
  expect((await call("POST", `${one}/lease`, {}, header(nonce))).status).toBe(404);
  await other("POST", `${one}/lease`, { ttl: 60 });
  expect((await call("POST", `${one}/uncordon`, undefined, header(nonce))).status).toBe(409);
  expect((await call("GET", one)).body.cordoned).toBe(true);
});

test("release: 400 without a nonce, 409 with another, 200 with it, 404 after", async () => {
  const { call, one, acquire } = await setup();
  const { nonce } = await acquire();
  expect((await call("DELETE", `${one}/lease`)).status).toBe(400);
  expect((await call("DELETE", `${one}/lease`, undefined, header("f".repeat(32)))).status).toBe(409);
  expect(await call("DELETE", `${one}/lease`, undefined, header(nonce))).toMatchObject({
    status: 200,
    body: { status: "success", data: { ok: true } },
  });
  expect((await call("DELETE", `${one}/lease`, undefined, header(nonce))).status).toBe(404);
  expect((await call("POST", `${one}/cordon`)).status).toBe(200);
});

test("lease_ttl acquires a lease with create and update and returns the nonce once", async () => {
  const { call, machine, machines } = await setup();
  const made = await machine({}, { lease_ttl: 30 });
  expect((await call("GET", `${machines}/${made.id}`)).body).not.toHaveProperty("nonce");
  expect((await call("POST", `${machines}/${made.id}/stop`)).status).toBe(409);
  const updated = await call(
    "POST",
    `${machines}/${made.id}`,
    { config: { image: "nginx:2" }, lease_ttl: 60 },
    header(made.nonce),
  );
  expect(updated).toMatchObject({ status: 200, body: { nonce: made.nonce } });
  expect((await call("POST", machines, { config: { image: "nginx" }, lease_ttl: 3601 })).status).toBe(400);
});

test("include_leases shows the holder and never the nonce", async () => {
  const { call, one, machines, acquire } = await setup();
  expect((await call("GET", `${one}?include_leases=true`)).body).not.toHaveProperty("lease");
  const { owner, expires_at, nonce } = await acquire({ description: "why" });
  const lease = { owner, expires_at, description: "why" };
  const answers = [
    await call("GET", `${one}?include_leases=true`),
    await call("GET", `${machines}?include_leases=true`),
    await call("GET", `${machines}?include_leases=true&summary=true`),
  ];
  for (const { body, text } of answers) {
    expect((Array.isArray(body) ? body[0] : body).lease).toEqual(lease);
    expect(text).not.toContain(nonce);
  }
  expect((await call("GET", one)).body).not.toHaveProperty("lease");
});

test("destroying a Machine ends its lease, and may be repeated with the old nonce", async () => {
  const { call, one, acquire } = await setup();
  const { nonce } = await acquire();
  expect((await call("DELETE", `${one}?force=true`, undefined, header(nonce))).status).toBe(200);
  expect((await call("DELETE", `${one}?force=true`, undefined, header(nonce))).status).toBe(200);
  expect((await call("GET", `${one}/lease`)).status).toBe(404);
});

test("two concurrent requests for a lease: one succeeds", async () => {
  const { call, one, other } = await setup();
  for (let round = 0; round < 10; round++) {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? call : other)("POST", `${one}/lease`, { ttl: 30 })),
    );
    const [winner, ...more] = answers.filter(({ status }) => status === 201);
    expect(more).toEqual([]);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(7);
    await call("DELETE", `${one}/lease`, undefined, header(winner?.body.data.nonce));
  }
});

test("the body overrides the query; nulls count as omitted; a ttl that is not a number is 400", async () => {
  const { call, one } = await setup();
  const start = Date.UTC(2026, 0, 1) / 1000;
  const both = await call("POST", `${one}/lease?ttl=10`, { ttl: 20, description: null });
  expect(both.body.data).toMatchObject({ expires_at: start + 20, description: "" });
  await call("DELETE", `${one}/lease`, undefined, header(both.body.data.nonce));
  const query = await call("POST", `${one}/lease?ttl=10`, { ttl: null });
  expect(query.body.data.expires_at).toBe(start + 10);
  for (const [path, body] of [
    ["/lease?ttl=soon"],
    ["/lease", { ttl: "30" }],
    ["/lease", { ttl: 1.5 }],
    ["/lease", { description: 5 }],
    ["/lease", []],
  ] as const)
    expect([path, body, (await call("POST", one + path, body, header(query.body.data.nonce))).status]).toEqual([
      path,
      body,
      400,
    ]);
});

test("both headers work for acquiring, refreshing and releasing", async () => {
  const { call, one, acquire } = await setup();
  const { nonce } = await acquire();
  const other = { "fly-machine-lease-nonce": nonce };
  expect((await call("POST", `${one}/lease`, { ttl: 60 }, other)).body.data.nonce).toBe(nonce);
  expect((await call("GET", `${one}/lease`, undefined, other)).body.data.nonce).toBe(nonce);
  expect((await call("DELETE", `${one}/lease`, undefined, other)).status).toBe(200);
});

test("a lease requires an existing Machine", async () => {
  const { call, machines } = await setup();
  for (const method of ["GET", "POST", "DELETE"])
    expect((await call(method, `${machines}/00000000000000/lease`, undefined, header("f".repeat(32)))).status).toBe(
      404,
    );
});
