// Machines: created, shown, listed, updated, destroyed (docs/interface.md#machine,
// docs/interface.md#create-and-update).
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { pages, withApp, withStillClock } from "../client.ts";

const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/;
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const failed = (text: string) => ({ error: text });

test("a Machine's answer has everything that docs/interface.md#machine lists", async () => {
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
])("the image %s is split into its parts", async (image, parts) => {
  const { machine } = await withApp();
  expect((await machine({ image })).image_ref).toMatchObject(parts);
});

test("a name is generated if omitted, and is unique only among live Machines", async () => {
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

test("answers write autostop as false, true or suspend, durations as text, and omit nulls", async () => {
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

const isNoImage = 'must be an image such as "registry.example.com/web:v3" or "web@sha256:…"; ';

test.each([
  [{ image: "hello world" }, `invalid config.image, got "hello world", ${isNoImage}it has no spaces`],
  [{ image: "" }, `invalid config.image, got "", ${isNoImage}the repository is missing`],
  [{ image: "example.com/Web" }, `invalid config.image, got "example.com/Web", ${isNoImage}a repository is lowercase`],
  [{ image: "nginx:" }, `invalid config.image, got "nginx:", ${isNoImage}a tag has 1 to 128 `],
  [{ image: "nginx@sha256:4f" }, `invalid config.image, got "nginx@sha256:4f", ${isNoImage}a digest is sha256:`],
  [
    { image: "nginx", containers: [{ name: "side", image: "a//b" }] },
    `invalid config.containers[0].image, got "a//b", ${isNoImage}a repository is of a-z and 0-9`,
  ],
  [
    { image: "nginx", files: [{ guest_path: "/f", image_config: "ex_ample.com/a" }] },
    `invalid config.files[0].image_config, got "ex_ample.com/a", ${isNoImage}a registry is a host name`,
  ],
  [{ image: "nginx", volumes: [{ name: "v", image: "-" }] }, 'invalid config.volumes[0].image, got "-", '],
])("create and update refuse what is no image: %j", async (config, text) => {
  const { call, machines, machine } = await withApp();
  const { id, version } = await machine();
  for (const path of [machines, `${machines}/${id}`]) {
    const answer = await call("POST", path, { config });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(text);
  }
  expect((await call("GET", machines)).body).toMatchObject([{ version }]);
});

test("a Machine from before images were checked is shown, until its image is changed", async () => {
  const { call, machines, machine, service } = await withApp();
  const { id } = await machine({ image: "hello-world" });
  const { store } = service.context;
  await store.write(() => store.run(`UPDATE machine_versions SET config = '{"image":"hello world"}'`));
  service.context.configs.clear();
  service.context.machineTexts.clear();
  const found = await call("GET", `${machines}/${id}`);
  expect([found.status, found.body.config.image]).toEqual([200, "hello world"]);
  expect((await call("POST", `${machines}/${id}`, { config: found.body.config })).status).toBe(400);
  expect((await call("POST", `${machines}/${id}`, { config: { image: "hello-world" } })).status).toBe(200);
});

test("a value of the wrong type is never quoted", async () => {
  const { call, machines } = await withApp();
  const answer = await call("POST", machines, { config: { image: "nginx", env: { TOKEN: ["hunter2"] } } });
  expect(answer.status).toBe(400);
  expect(answer.text).toContain("config.env.TOKEN");
  expect(answer.text).not.toContain("hunter2");
});

test("a region that does not exist is 422, a full one is insufficient_capacity", async () => {
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

test("lists filter by state and region, hide destroyed Machines and summarize on request", async () => {
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

test("an update replaces the whole configuration and creates a new version", async () => {
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

test("cordon and uncordon are visible, create one event, and keep the state", async () => {
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

test("a missing object is 404 with the platform's text", async () => {
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

// --- lists, page by page (docs/interface.md#paging) ---

test("paging returns every Machine exactly once; the next page's cursor is a header", async () => {
  const { call, machine, machines } = await withApp();
  const made: string[] = [];
  for (let i = 0; i < 7; i++) made.push((await machine()).id);
  const found = await pages(async (cursor) => {
    const { body, headers } = await call("GET", `${machines}?limit=3&summary=true${cursor ? `&cursor=${cursor}` : ""}`);
    return { items: body, next: headers.get("fly-next-cursor") };
  });
  expect(found.map((page) => page.length)).toEqual([3, 3, 1]);
  expect(
    found
      .flat()
      .map(({ id }) => id)
      .sort(),
  ).toEqual(made.sort());
  const all = await call("GET", machines);
  expect([all.body.length, all.headers.get("fly-next-cursor")]).toEqual([7, null]);
  for (const query of ["limit=0", "limit=1001", "limit=x", "cursor=nonsense"])
    expect([query, (await call("GET", `${machines}?${query}`)).status]).toEqual([query, 400]);
});

test("a Machine created or deleted between two pages neither hides nor repeats another", async () => {
  const { call, clock, machine, machines } = await withApp({ clock: new ManualClock() });
  const made: string[] = [];
  for (let i = 0; i < 6; i++) {
    made.push((await machine()).id);
    clock.advance(1000);
  }
  const first = await call("GET", `${machines}?limit=3`);
  await call("DELETE", `${machines}/${made[2]}?force=true`);
  await call("DELETE", `${machines}/${made[0]}?force=true`);
  const { id } = await machine();
  const rest = await call("GET", `${machines}?cursor=${first.headers.get("fly-next-cursor")}`);
  expect(rest.body.map((one: { id: string }) => one.id)).toEqual([...made.slice(3), id]);
});

test("lists filter by metadata, by one key or several", async () => {
  const { call, machine, machines } = await withApp();
  const a = await machine({ metadata: { role: "web", "team.name": "x" } });
  const b = await machine({ metadata: { role: "web" } });
  await machine({ metadata: { role: "db" } });
  await machine();
  const ids = async (query: string) =>
    (await call("GET", `${machines}?${query}`)).body.map(({ id }: { id: string }) => id).sort();
  expect(await ids("metadata.role=web")).toEqual([a.id, b.id].sort());
  expect(await ids("metadata.role=web&metadata.team.name=x")).toEqual([a.id]);
  expect(await ids("metadata.role=none")).toEqual([]);
  await call("PATCH", `${machines}/${b.id}/metadata`, { metadata: { role: "db" } });
  expect(await ids("metadata.role=web")).toEqual([a.id]);
});

test("include_deleted shows destroyed Machines, and filters still apply", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine({}, { region: "fra" });
  await call("DELETE", `${machines}/${id}?force=true`);
  const deleted = async (query: string) => (await call("GET", `${machines}?include_deleted=true${query}`)).body;
  expect(await deleted("")).toMatchObject([{ id, state: "destroyed" }]);
  expect(await deleted("&region=fra")).toHaveLength(1);
  expect(await deleted("&region=ams")).toEqual([]);
  expect(await deleted("&state=started")).toEqual([]);
});

// --- requests ---

test("nulls count as omitted fields, at every depth", async () => {
  const { call, machine, machines } = await withApp();
  const nulls = { name: null, region: null, skip_launch: null, lease_ttl: null, min_secrets_version: null };
  const made = await machine(
    { env: null, guest: { cpus: 2, memory_mb: null }, services: null, metadata: { a: "1" }, mounts: null },
    nulls,
  );
  expect(made.config).toEqual({ image: "nginx", guest: { cpus: 2 }, metadata: { a: "1" } });
  expect(made).not.toHaveProperty("nonce");
  const updated = await call("POST", `${machines}/${made.id}`, {
    config: { image: "nginx", restart: { policy: null }, checks: { alive: { type: "tcp", port: 80, path: null } } },
    current_version: null,
  });
  expect(updated.body.config).toEqual({ image: "nginx", restart: {}, checks: { alive: { type: "tcp", port: 80 } } });
});

test("unknown fields are kept inside config and ignored elsewhere; a strict service refuses them", async () => {
  const { call, machine, machines } = await withApp({ strict: false });
  const made = await machine({ novelty: { deep: [1, null] } }, { novelty: true });
  expect(made.config).toEqual({ image: "nginx", novelty: { deep: [1, null] } });
  expect(made).not.toHaveProperty("novelty");
  expect((await call("GET", `${machines}/${made.id}`)).body.config.novelty).toEqual({ deep: [1, null] });
  const strict = await withApp();
  const refused = await strict.call("POST", machines, { config: { image: "nginx", novelty: 1 } });
  expect([refused.status, refused.body.error]).toEqual([400, "unknown config.novelty"]);
});

test("config is required, and replaced as a whole", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine({ env: { A: "1" } });
  for (const body of [undefined, {}, { config: null }, { config: {} }, { config: "nginx" }, { config: { env: {} } }]) {
    expect((await call("POST", machines, body)).status).toBe(400);
    expect((await call("POST", `${machines}/${id}`, body)).status).toBe(400);
  }
});

test("a name or a region cannot be changed by an update", async () => {
  const { call, machine, machines } = await withApp({ strict: false });
  const { id } = await machine({}, { name: "one", region: "fra" });
  const updated = await call("POST", `${machines}/${id}`, { config: { image: "nginx" }, name: "two", region: "ams" });
  expect(updated.body).toMatchObject({ name: "one", region: "fra" });
});

test("min_secrets_version must not exceed the current version", async () => {
  const { call, machine, machines } = await withApp();
  const create = (min_secrets_version: number) =>
    call("POST", machines, { config: { image: "nginx" }, min_secrets_version });
  expect((await create(0)).status).toBe(200);
  expect(await create(1)).toMatchObject({ status: 412, body: { error: expect.stringContaining("secrets") } });
  const { version } = (await call("POST", "/apps/web/secrets/A", { value: "1" })).body;
  expect((await create(version)).status).toBe(200);
  const { id } = await machine();
  const update = (min_secrets_version: number) =>
    call("POST", `${machines}/${id}`, { config: { image: "nginx" }, min_secrets_version });
  expect((await update(version)).status).toBe(200);
  expect((await update(version + 1)).status).toBe(412);
  expect((await call("GET", `${machines}/${id}/versions`)).body).toHaveLength(2);
});

test("skip_launch with an update keeps the Machine stopped, and a start then runs the new version", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  await call("POST", `${machines}/${id}`, { config: { image: "nginx:2" }, skip_launch: true });
  expect((await call("GET", `${machines}/${id}`)).body).toMatchObject({ state: "stopped", image_ref: { tag: "2" } });
  expect((await call("POST", `${machines}/${id}/start`)).status).toBe(200);
  expect((await call("GET", `${machines}/${id}`)).body).toMatchObject({
    state: "started",
    config: { image: "nginx:2" },
  });
});

test("skip_service_registration with an update cordons; without it nothing is uncordoned", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  const update = async (more: object) =>
    (await call("POST", `${machines}/${id}`, { config: { image: "nginx" }, ...more })).body.cordoned;
  expect(await update({})).toBe(false);
  expect(await update({ skip_service_registration: true })).toBe(true);
  expect(await update({})).toBe(true);
});

test.each([
  [{ guest: { cpus: 3 } }, "cpus"],
  [{ guest: { cpus: 10, memory_mb: 20480 } }, "cpus"],
  [{ guest: { cpus: 1, memory_mb: 300 } }, "memory_mb"],
  [{ guest: { cpu_kind: "performance", cpus: 1, memory_mb: 1024 } }, "memory_mb"],
  [{ guest: { cpus: 1 }, size: "shared-cpu-1x" }, "size"],
  [{ size: "huge" }, "size"],
  [{ services: [{ protocol: "tcp", internal_port: 80, ports: [{ port: 80, start_port: 1, end_port: 2 }] }] }, "ports"],
  [{ services: [{ protocol: "icmp", internal_port: 80 }] }, "protocol"],
  [{ services: [{ protocol: "tcp", internal_port: 0 }] }, "internal_port"],
  [{ services: [{ protocol: "tcp", internal_port: 80, autostart: "yes" }] }, "autostart"],
  [{ mounts: [{ path: "/d" }] }, "volume"],
  [{ mounts: [{ volume: "vol_1", path: "d" }] }, "path"],
  [{ files: [{ guest_path: "relative", raw_value: "" }] }, "guest_path"],
  [{ files: [{ guest_path: "/f", raw_value: "", secret_name: "A" }] }, "files"],
  [{ restart: { policy: "sometimes" } }, "policy"],
  [{ stop_config: { signal: "SIGSEGV" } }, "signal"],
  [{ stop_config: { timeout: "soon" } }, "timeout"],
  [{ schedule: "yearly" }, "schedule"],
  [{ standbys: ["0"], services: [{ protocol: "tcp", internal_port: 80 }] }, "standbys"],
  [{ spot: { max_price_fraction: 1.5 } }, "max_price_fraction"],
  [{ metrics: { port: 9000 } }, "path"],
  [{ auto_destroy: "yes" }, "auto_destroy"],
])("the configuration %j is 400 and names the field", async (config, field) => {
  const { call, machines } = await withApp();
  const answer = await call("POST", machines, { config: { image: "nginx", ...config } });
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(field)]);
  expect((await call("GET", machines)).body).toEqual([]);
});

test.each([
  ["the smallest size", {}, 256],
  ["CPUs alone", { guest: { cpus: 2 } }, 512],
  ["performance CPUs", { guest: { cpu_kind: "performance" } }, 2048],
  ["a named size", { size: "performance-2x" }, 4096],
  ["a named shared size", { size: "shared-cpu-4x" }, 1024],
  ["memory", { guest: { cpus: 2, memory_mb: 1024 } }, 1024],
])("a Machine of %s has its default memory", async (_, config, memory) => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine(config);
  expect((await call("GET", `${machines}/${id}/memory`)).body).toEqual({ limit_mb: memory, available_mb: 0 });
});

test("a region may have capacity for only one kind of CPU", async () => {
  const { call, machine, machines } = await withApp({ capacity: { ams: { performance: 1 } } });
  const create = (config: object) => call("POST", machines, { config: { image: "nginx", ...config } });
  expect((await create({ guest: { cpu_kind: "performance" } })).status).toBe(200);
  expect((await create({ guest: { cpu_kind: "performance" } })).status).toBe(422);
  expect((await create({ size: "performance-1x" })).status).toBe(422);
  const { id } = await machine();
  const update = (config: object) => call("POST", `${machines}/${id}`, { config: { image: "nginx", ...config } });
  expect(await update({ guest: { cpu_kind: "performance" } })).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining("aborted: could not reserve resource for machine") },
  });
  expect((await update({ guest: { cpus: 2 } })).status).toBe(200);
});

// --- how processes end ---

test("a deaf process is killed when its stop timeout ends", async () => {
  const { call, clock, machine, machines, state } = await withStillClock();
  const stop = async (body: object, config: object = {}) => {
    const { id } = await machine({ image: "nginx:simulate-deaf", ...config });
    clock.advance(1000);
    expect((await call("POST", `${machines}/${id}/stop`, body)).status).toBe(200);
    return id;
  };
  const usual = await stop({});
  const asked = await stop({ timeout: "30s", signal: "SIGTERM" });
  const configured = await stop({}, { stop_config: { timeout: "60s", signal: "SIGTERM" } });
  const killed = await stop({ signal: "SIGKILL", timeout: "300s" });
  clock.advance(1500);
  expect(await Promise.all([usual, asked, configured, killed].map(state))).toEqual([
    "stopping",
    "stopping",
    "stopping",
    "stopped",
  ]);
  clock.advance(5000);
  expect(await Promise.all([usual, asked, configured].map(state))).toEqual(["stopped", "stopping", "stopping"]);
  clock.advance(26_000);
  expect(await Promise.all([asked, configured].map(state))).toEqual(["stopped", "stopping"]);
  clock.advance(30_000);
  expect(await state(configured)).toBe("stopped");
  expect((await call("GET", `${machines}/${usual}/events?limit=1`)).body).toMatchObject([
    { type: "exit", request: { exit_event: { exit_code: 137, guest_signal: 9, requested_stop: true } } },
  ]);
});

test("a stop takes 300 seconds at most", async () => {
  const { call, clock, machine, machines, state } = await withStillClock();
  const { id } = await machine({ image: "nginx:simulate-deaf" });
  clock.advance(1000);
  await call("POST", `${machines}/${id}/stop`, { timeout: "24h" });
  clock.advance(299_000);
  expect(await state(id)).toBe("stopping");
  clock.advance(1000);
  expect(await state(id)).toBe("stopped");
});

test("a restart waits for the given time, and force_stop does not wait", async () => {
  const { call, clock, machine, machines, state } = await withStillClock();
  const { id } = await machine({ image: "nginx:simulate-deaf" });
  clock.advance(1000);
  await call("POST", `${machines}/${id}/restart?timeout=20`);
  clock.advance(19_000);
  expect(await state(id)).toBe("restarting");
  clock.advance(2000);
  expect(await state(id)).toBe("started");
  await call("POST", `${machines}/${id}/restart?timeout=20s&force_stop=true`);
  clock.advance(1000);
  expect(await state(id)).toBe("started");
});

test("a hanging Machine never starts, but can be stopped and destroyed", async () => {
  const { call, clock, machine, machines, state } = await withStillClock();
  const { id } = await machine({ image: "nginx:simulate-hang" });
  clock.advance(3600_000);
  expect(await state(id)).toBe("starting");
  expect((await call("POST", `${machines}/${id}/stop`)).status).toBe(200);
  clock.advance(1000);
  expect(await state(id)).toBe("stopped");
  await call("POST", `${machines}/${id}/start`);
  expect((await call("DELETE", `${machines}/${id}`)).status).toBe(412);
  expect((await call("DELETE", `${machines}/${id}?force=true`)).status).toBe(200);
  clock.advance(1000);
  expect(await state(id)).toBe("destroyed");
});

test("auto_destroy destroys a stopped Machine, but not a restarted one", async () => {
  const { call, machine, machines, state } = await withApp();
  const { id } = await machine({ auto_destroy: true });
  await call("POST", `${machines}/${id}/restart`);
  expect(await state(id)).toBe("started");
  await call("POST", `${machines}/${id}/stop`);
  expect(await state(id)).toBe("destroyed");
});

test("a suspended Machine resumes from its snapshot, and its event says so", async () => {
  const { call, machine, machines, state } = await withApp();
  const { id } = await machine();
  expect(await call("POST", `${machines}/${id}/suspend`)).toMatchObject({ status: 200, body: { ok: true } });
  expect(await state(id)).toBe("suspended");
  expect((await call("POST", `${machines}/${id}/start`)).body).toMatchObject({ previous_state: "suspended" });
  expect(await state(id)).toBe("started");
});

test("a standby starts when its Machine fails, and not when that is stopped", async () => {
  const { call, machine, machines, state } = await withApp();
  const { id } = await machine();
  const standby = (await machine({ standbys: [id] }, { skip_launch: true })).id;
  const other = (await machine({ standbys: ["00000000000000"] }, { skip_launch: true })).id;
  await call("POST", `${machines}/${id}/stop`);
  expect(await state(standby)).toBe("stopped");
  await call("POST", `${machines}/${id}`, {
    config: { image: "nginx:simulate-crash", restart: { policy: "no" } },
  });
  expect(await Promise.all([id, standby, other].map(state))).toEqual(["failed", "started", "stopped"]);
});

test.each([
  ["hourly", 3600_000],
  ["daily", 24 * 3600_000],
  ["weekly", 7 * 24 * 3600_000],
  ["monthly", 30 * 24 * 3600_000],
])("a Machine with the schedule %s is started at each scheduled time", async (schedule, every) => {
  const { call, clock, machine, machines } = await withStillClock();
  const { id } = await machine({ schedule, image: "nginx:simulate-exit-0" });
  const starts = async () =>
    (await call("GET", `${machines}/${id}/events?limit=50`)).body.filter(
      (event: { type: string }) => event.type === "start",
    ).length;
  clock.advance(every - 1000);
  const once = await starts();
  clock.advance(3000);
  expect(await starts()).toBe(once + 2); // the scheduled start and its completion
});

test("retries are counted for five minutes: a process that rarely fails is always restarted", async () => {
  const { call, clock, machine, machines, state } = await withStillClock();
  const { id } = await machine({ env: { MACHINES_SIMULATE: "slow:1m,exit:3" }, restart: { max_retries: 5 } });
  clock.advance(3600_000);
  expect(["starting", "started", "stopped"]).toContain(await state(id));
  const events = (await call("GET", `${machines}/${id}/events?limit=50`)).body;
  expect(events.filter(({ type }: { type: string }) => type === "restart").length).toBeGreaterThan(10);
  const quick = await machine({ env: { MACHINES_SIMULATE: "slow:30s,exit:3" }, restart: { max_retries: 5 } });
  clock.advance(3600_000);
  expect(await state(quick.id)).toBe("failed");
});
