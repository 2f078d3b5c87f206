// Written by hand from the tables and samples of the specification and of bodies, never from the contract: it would
// not notice a row that is wrong.
import { expect, test } from "vitest";
import { withApp } from "./client.ts";

const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const failed = (text: string) => ({ error: text });

// --- apps (spec 4.1, bodies 3) ---

test("creating an App answers 201 with its id and milliseconds", async () => {
  const { call } = await withApp();
  const made = await call("POST", "/apps", { app_name: "other", org_slug: "personal" });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({ id: expect.stringMatching(/^[a-z0-9]{16}$/), created_at: expect.any(Number) });
  expect(made.body.created_at).toBeGreaterThan(1.6e12);
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
  [
    "a name that is taken",
    { name: "web", org_slug: "personal" },
    422,
    "Validation failed: Name has already been taken",
  ],
  [
    "a bad name",
    { name: "No Good", org_slug: "personal" },
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

test("an idempotency key answers the first App and refuses another name", async () => {
  const { call } = await withApp();
  const create = (body: object) => call("POST", "/apps", { org_slug: "personal", idempotency_key: "k1", ...body });
  const first = await create({ name: "one" });
  expect((await create({ name: "one" })).body).toEqual(first.body);
  expect((await create({})).body).toEqual(first.body);
  expect((await create({ name: "two" })).status).toBe(422);
});

test("the list of Apps counts, filters by role and goes page by page", async () => {
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

test("deleting an App is 202 without a body and takes everything along", async () => {
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

// --- machines (spec 4.2, bodies 4) ---

test("a Machine is answered with everything bodies 4.2 lists", async () => {
  const { machine, call, machines } = await withApp();
  const made = await machine({ env: { A: "1" } }, { name: "one", region: "fra" });
  expect(made).toMatchObject({
    name: "one",
    region: "fra",
    host_status: "ok",
    cordoned: false,
    config: { image: "nginx", env: { A: "1" } },
  });
  expect(["created", "starting"]).toContain(made.state);
  expect(made.id).toMatch(/^[0-9a-f]{14}$/);
  expect(made.version).toMatch(ulid);
  expect(made.instance_id).toBe(made.version);
  expect(made.private_ip).toMatch(/^fdaa:/);
  expect(made.created_at).toMatch(rfc3339);
  expect(made.updated_at).toMatch(rfc3339);
  expect(made.image_ref).toMatchObject({
    registry: "docker.io",
    repository: "library/nginx",
    tag: "latest",
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
  expect(made.events).toMatchObject([
    { type: "launch", status: "created", source: "user", request: null, id: expect.stringMatching(ulid) },
  ]);
  expect(made).not.toHaveProperty("nonce");
  expect(await call("GET", `${machines}/${made.id}`)).toMatchObject({
    status: 200,
    body: { state: "started", id: made.id },
  });
});

test.each([
  ["localhost:5000/team/app:v2", { registry: "localhost:5000", repository: "team/app", tag: "v2" }],
  [
    `registry.example.com/app@sha256:${"a".repeat(64)}`,
    { registry: "registry.example.com", repository: "app", digest: `sha256:${"a".repeat(64)}` },
  ],
  ["team/app", { registry: "docker.io", repository: "team/app", tag: "latest" }],
])("the image %s is taken apart", async (image, parts) => {
  const { machine } = await withApp();
  expect((await machine({ image })).image_ref).toMatchObject(parts);
});

test("a name is made up when none is given, and is unique among live Machines only", async () => {
  const { call, machine, machines } = await withApp();
  expect((await machine()).name).toMatch(/^[a-z]+-[a-z]+-\d{4}$/);
  const { id } = await machine({}, { name: "one" });
  const again = await call("POST", machines, { name: "one", config: { image: "nginx" } });
  expect([again.status, again.body]).toEqual([
    409,
    failed(`already_exists: unique machine name violation, machine ID ${id} already exists with name "one"`),
  ]);
  await call("DELETE", `${machines}/${id}?force=true`);
  expect((await machine({}, { name: "one" })).id).not.toBe(id);
});

test("answers spell autostop as false, true or suspend, durations in words, and leave nulls out", async () => {
  const { machine } = await withApp();
  const service = { protocol: "tcp", internal_port: 80 };
  const { config } = await machine({
    init: { exec: null },
    services: [
      { ...service, autostop: "stop", checks: [{ type: "tcp", interval: 90e9, timeout: "2s" }] },
      { ...service, autostop: "off", autostart: true },
      { ...service, autostop: "suspend" },
      { ...service, autostop: true, force_instance_key: null },
    ],
  });
  expect(config).toEqual({
    image: "nginx",
    init: {},
    services: [
      { ...service, autostop: true, checks: [{ type: "tcp", interval: "1m30s", timeout: "2s" }] },
      { ...service, autostop: false, autostart: true },
      { ...service, autostop: "suspend" },
      { ...service, autostop: true },
    ],
  });
});

test.each([
  [
    "too little memory",
    { guest: { cpus: 4, memory_mb: 512 } },
    "invalid config.guest.memory_mb, minimum required 1024 MiB",
  ],
  [
    "too much memory",
    { guest: { cpus: 1, memory_mb: 4096 } },
    "invalid config.guest.memory_mb, cannot exceed 2048 MiB",
  ],
  [
    "two mounts",
    {
      mounts: [
        { volume: "vol_a", path: "/a" },
        { volume: "vol_b", path: "/b" },
      ],
    },
    "invalid config.mounts, got",
  ],
  ["no image", { image: undefined }, "invalid config.image, got nothing, must be of type string"],
  [
    "a wrong type",
    { guest: { cpus: "two" } },
    "invalid config.guest.cpus, got a value of type string, must be of type number",
  ],
  [
    "an unknown value",
    { guest: { cpu_kind: "fast" } },
    'invalid config.guest.cpu_kind, got "fast", allowed are "shared", "performance"',
  ],
  ["a bad region code", { region: 5 }, "unknown config.region"],
])("a configuration with %s is 400 and names the field", async (_, config, text) => {
  const { call, machines } = await withApp();
  const answer = await call("POST", machines, { config: { image: "nginx", ...config } });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain(text);
});

test("a value of the wrong type is never repeated", async () => {
  const { call, machines } = await withApp();
  const answer = await call("POST", machines, { config: { image: "nginx", env: { TOKEN: ["hunter2"] } } });
  expect(answer.status).toBe(400);
  expect(answer.text).toContain("config.env.TOKEN");
  expect(answer.text).not.toContain("hunter2");
});

test("a region that does not exist is 422, one without room is insufficient_capacity", async () => {
  const { call, machine, machines, volume } = await withApp({ capacity: { fra: 1 } });
  const create = (region: string, image = "nginx") => call("POST", machines, { region, config: { image } });
  expect(await create("zzz")).toMatchObject({ status: 422, body: failed('region "zzz" not found') });
  const { id } = await machine({}, { region: "fra" });
  const full = { status: 422, body: { error: "could not find a candidate host", status: "insufficient_capacity" } };
  expect(await create("fra")).toMatchObject(full);
  expect(await create("ams", "nginx:simulate-capacity")).toMatchObject(full);
  const { id: disk } = await volume({ region: "fra" });
  const mounted = { config: { image: "nginx", mounts: [{ volume: disk, path: "/d" }] } };
  expect(await call("POST", machines, mounted)).toMatchObject({
    status: 412,
    body: {
      error: `insufficient resources to create new machine with existing volume '${disk}'`,
      status: "volume_placement_capacity",
    },
  });
  expect(await call("POST", `${machines}/${id}`, { config: { image: "nginx:simulate-capacity" } })).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining("aborted: could not reserve resource for machine") },
  });
  await call("DELETE", `${machines}/${id}?force=true`);
  expect((await create("fra")).status).toBe(200);
});

test("lists filter by state and region, hide the destroyed and shorten on request", async () => {
  const { call, machine, machines } = await withApp();
  const a = await machine({}, { region: "fra" });
  const b = await machine({}, { region: "ams", skip_launch: true });
  const c = await machine();
  await call("DELETE", `${machines}/${c.id}?force=true`);
  const ids = async (query: string) =>
    (await call("GET", `${machines}${query}`)).body.map(({ id }: { id: string }) => id).sort();
  expect(await ids("")).toEqual([a.id, b.id].sort());
  expect(await ids("?include_deleted=true")).toEqual([a.id, b.id, c.id].sort());
  expect(await ids("?region=fra")).toEqual([a.id]);
  expect(await ids("?state=stopped")).toEqual([b.id]);
  expect(await ids("?state=started,stopped")).toEqual([a.id, b.id].sort());
  const [short] = (await call("GET", `${machines}?summary=1`)).body;
  for (const left of ["config", "checks", "events", "host_status", "nonce"]) expect(short).not.toHaveProperty(left);
  expect(short).toMatchObject({ id: expect.any(String), state: "started" });
  expect((await call("GET", `${machines}?state=bogus`)).status).toBe(400);
  expect((await call("GET", `${machines}?summary=maybe`)).status).toBe(400);
});

test("an update replaces the whole configuration and makes a new version", async () => {
  const { call, machine, machines } = await withApp();
  const made = await machine({ env: { A: "1" }, metadata: { k: "v" } });
  const updated = await call("POST", `${machines}/${made.id}`, { config: { image: "nginx:2" } });
  expect(updated.status).toBe(200);
  expect(updated.body.config).toEqual({ image: "nginx:2" });
  expect(updated.body.version > made.version).toBe(true);
  expect(updated.body.image_ref.tag).toBe("2");
  const again = await call("POST", `${machines}/${made.id}`, { config: { image: "nginx:2" } });
  expect(again.body.version).not.toBe(updated.body.version);
  const versions = (await call("GET", `${machines}/${made.id}/versions`)).body;
  expect(versions.map(({ version }: { version: string }) => version)).toEqual([
    again.body.version,
    updated.body.version,
    made.version,
  ]);
  expect(versions[2].user_config).toEqual({ image: "nginx", env: { A: "1" }, metadata: { k: "v" } });
  expect((await call("GET", `${machines}/${made.id}?version=${made.version}`)).body).toMatchObject({
    state: "replaced",
    version: made.version,
    config: { env: { A: "1" } },
  });
});

test("an update for a stale version is 409 and changes nothing", async () => {
  const { call, machine, machines } = await withApp();
  const made = await machine();
  const update = (current_version: string, image: string) =>
    call("POST", `${machines}/${made.id}`, { config: { image }, current_version });
  const next = (await update(made.version, "nginx:2")).body;
  const before = (await call("GET", `${machines}/${made.id}`)).text;
  const stale = await update(made.version, "nginx:3");
  expect([stale.status, stale.body]).toEqual([409, failed("aborted: machine version mismatch")]);
  expect((await call("GET", `${machines}/${made.id}`)).text).toBe(before);
  expect((await update(next.version, "nginx:3")).status).toBe(200);
});

test("cordon and uncordon show, count once, and leave the state alone", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  const shown = async () => (await call("GET", `${machines}/${id}`)).body;
  for (const verb of ["cordon", "cordon"])
    expect(await call("POST", `${machines}/${id}/${verb}`)).toMatchObject({ status: 200, body: { ok: true } });
  const { events, ...cordoned } = await shown();
  expect(cordoned).toMatchObject({ cordoned: true, state: "started" });
  expect(events.map(({ type, status }: { type: string; status: string }) => `${type} ${status}`)).toEqual([
    "cordon started",
    "start started",
    "launch starting",
    "launch created",
  ]);
  await call("POST", `${machines}/${id}/uncordon`);
  expect(await shown()).toMatchObject({ cordoned: false });
  expect(await machine({}, { skip_service_registration: true })).toMatchObject({ cordoned: true });
});

test("events come newest first, 1 to 50 of them", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  for (let i = 0; i < 10; i++) for (const verb of ["stop", "start"]) await call("POST", `${machines}/${id}/${verb}`);
  const events = async (query = "") => (await call("GET", `${machines}/${id}/events${query}`)).body;
  const twenty = await events();
  expect(twenty).toHaveLength(20);
  const ids = twenty.map((event: { id: string }) => event.id);
  expect(ids).toEqual([...ids].sort().reverse());
  expect(await events("?limit=50")).toHaveLength(43); // launch ×2, start, then four for each stop and start
  expect(await events("?limit=1")).toHaveLength(1);
  for (const limit of ["0", "51", "x", "1.5"])
    expect((await call("GET", `${machines}/${id}/events?limit=${limit}`)).status).toBe(400);
});

test("what does not exist is 404 in the platform's words", async () => {
  const { call, machines } = await withApp();
  expect(await call("GET", "/apps/nope")).toMatchObject({ status: 404, body: failed("app not found") });
  expect(await call("GET", `${machines}/3d8d413b29d089`)).toMatchObject({
    status: 404,
    body: failed("not_found: machine not found"),
  });
  expect(await call("GET", "/apps/web/volumes/vol_x")).toMatchObject({ status: 404, body: failed("volume not found") });
  expect(await call("GET", "/nothing/here")).toMatchObject({ status: 404, body: { error: expect.any(String) } });
});

test("a Machine of one App is not found under another", async () => {
  const { call, machine, volume } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const { id } = await machine();
  const { id: disk } = await volume();
  expect((await call("GET", `/apps/other/machines/${id}`)).status).toBe(404);
  expect((await call("DELETE", `/apps/other/machines/${id}?force=true`)).status).toBe(404);
  expect((await call("GET", `/apps/other/volumes/${disk}`)).status).toBe(404);
  expect(
    (await call("POST", "/apps/other/machines", { config: { image: "nginx", mounts: [{ volume: disk, path: "/d" }] } }))
      .status,
  ).toBe(404);
});

// --- checks ---

test("service checks and named checks pass a moment after the start", async () => {
  const { call, machine, machines } = await withApp();
  const services = [
    { protocol: "tcp", internal_port: 8080, checks: [{ type: "tcp" }, { type: "http", port: 9090, path: "/" }] },
    { protocol: "tcp", internal_port: 5432, checks: [{ type: "tcp" }] },
  ];
  const made = await machine({ services, checks: { alive: { type: "http", port: 80, path: "/" } } });
  expect(made.checks.map(({ status }: { status: string }) => status)).toEqual([
    "warning",
    "warning",
    "warning",
    "warning",
  ]);
  const { checks } = (await call("GET", `${machines}/${made.id}`)).body;
  expect(checks.map(({ name, status }: { name: string; status: string }) => [name, status])).toEqual([
    ["servicecheck-00-tcp-8080", "passing"],
    ["servicecheck-01-http-9090", "passing"],
    ["servicecheck-02-tcp-5432", "passing"],
    ["alive", "passing"],
  ]);
  const ill = await machine({ image: "nginx:simulate-checks-critical", services });
  expect((await call("GET", `${machines}/${ill.id}`)).body).toMatchObject({
    state: "started",
    checks: [{ status: "critical" }, { status: "critical" }, { status: "critical" }],
  });
});

// --- platform (spec 4.7, bodies 9.2) ---

test("the regions of the platform are listed with their details", async () => {
  const { call } = await withApp();
  const { nearest, regions } = (await call("GET", "/platform/regions")).body;
  const codes = regions.map(({ code }: { code: string }) => code);
  expect(codes).toEqual([
    "ams",
    "arn",
    "bom",
    "cdg",
    "dfw",
    "ewr",
    "fra",
    "gru",
    "iad",
    "jnb",
    "lax",
    "lhr",
    "nrt",
    "ord",
    "sin",
    "sjc",
    "syd",
    "yyz",
  ]);
  expect(codes).toContain(nearest);
  expect(regions[0]).toMatchObject({
    name: expect.any(String),
    geo_region: "europe",
    latitude: expect.any(Number),
    longitude: expect.any(Number),
    gateway_available: true,
    requires_paid_plan: false,
    deprecated: false,
    capacity: expect.any(Number),
  });
});

test("the capacity of a region falls with every Machine and rises when one is destroyed", async () => {
  const { call, machine, machines } = await withApp({ capacity: { ams: 7 } });
  const room = async () => (await call("GET", "/platform/regions")).body.regions[0].capacity;
  const { id } = await machine();
  await machine();
  expect(await room()).toBe(5);
  await call("DELETE", `${machines}/${id}?force=true`);
  expect(await room()).toBe(6);
  await call("DELETE", "/apps/web");
  expect(await room()).toBe(7);
});

// --- every answer ---

test("every answer carries a request id under both names, refusals included", async () => {
  const { call, url } = await withApp();
  const answers = [
    await call("GET", "/apps/web"),
    await call("GET", "/apps/nope"),
    await call("GET", "/nowhere"),
    await fetch(`${url}/v1/apps/web`),
  ];
  const ids = answers.map(({ headers }) => headers.get("svc-request-id"));
  expect(new Set(ids).size).toBe(4);
  for (const [i, { headers }] of answers.entries()) {
    expect(ids[i]).toBeTruthy();
    expect(headers.get("fly-request-id")).toBe(ids[i]);
  }
});
