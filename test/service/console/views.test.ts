// The answers of the console's own routes: their numbers, their refusals, and what each session sees of them.
import { expect, test } from "vitest";
import { prices } from "../../../api/prices.ts";
import type { Overview } from "../../../service/console/types.ts";
import { ManualClock, startAdmin, type ServiceOptions } from "../../../service/index.ts";
import { addressCost, clusterCost, machineCost, volumeCost } from "../../../provider/cost/estimate.ts";
import { leaks } from "../../support/canaries.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { callerWith, withApp, type Answer } from "../client.ts";
import { page, send } from "./browser.ts";

const api = "/console/api";

/** Reads a view until the answer is fresh. */
async function fresh(read: (path: string) => Promise<Answer>, path: string): Promise<Answer["body"]> {
  for (;;) {
    const { status, body, text } = await read(path);
    if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
    if (body.freshIn === undefined) return body;
    await new Promise((resolve) => setTimeout(resolve, body.freshIn));
  }
}

/** A service with an App, and the views of its console. */
async function withConsole(options: ServiceOptions & { clock?: ManualClock } = {}) {
  const clock = new ManualClock();
  const started = await withApp({ clock, ...options });
  const visit = await page(started);
  const read = (path: string) => visit("GET", `${api}/${path}`);
  return { ...started, clock, visit, read, view: (path: string) => fresh(read, path) };
}

/** Reads views with a token. */
const viewsOf =
  (url: string, token: string) =>
  (path: string): Promise<Answer> =>
    send(url, "GET", `${api}/${path}`, { headers: { authorization: `Bearer ${token}` } });

/** A view without what is about the moment of its answer. */
const appIn = (overview: Overview, name: string) => overview.apps.find((app) => app.name === name);

test("an organization without anything has an overview without anything", async () => {
  const { call, view, clock } = await withConsole();
  await call("DELETE", "/apps/web");
  clock.advance(60_000);
  const overview: Overview = await view("overview");
  expect(overview).toMatchObject({
    organization: { slug: "personal", name: "Personal" },
    runtime: "simulated",
    apps: [],
    clusters: [],
    cost: { currency: "USD", machines: 0, volumes: 0, addresses: 0, clusters: 0 },
  });
  expect(overview.regions.length).toBeGreaterThan(10);
  expect(overview.regions.every(({ machines, used, capacity }) => machines === 0 && used === 0 && capacity > 0)).toBe(
    true,
  );
});

test("the overview has the numbers of what was created, and the costs that the budget policy estimates", async () => {
  const { call, machine, volume, view, machines } = await withConsole();
  await call("POST", "/apps", { name: "api", org_slug: "personal", network: "blue" });
  const check = { port: 80, type: "tcp" };
  await machine({ size: "performance-4x" }, { region: "ams" });
  await machine({ guest: { cpu_kind: "shared", cpus: 2, memory_mb: 1024 }, checks: { web: check } }, { region: "fra" });
  await machine({ guest: { cpu_kind: "performance", cpus: 8, memory_mb: 16384, gpu_kind: "l40s", gpus: 2 } });
  await machine({ guest: { cpu_kind: "performance", cpus: 1, memory_mb: 2048, gpu_kind: "a10" } });
  const stopped = await machine({ size: "performance-2x" });
  await call("POST", `${machines}/${stopped.id}/stop`);
  await volume({ size_gb: 10 });
  await volume();
  for (const type of ["v4", "v6", "shared_v4"]) await call("POST", "/apps/web/ip_assignments", { type });
  await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  const made = await call("POST", "/postgres", {
    name: "db",
    org_slug: "personal",
    region: "ams",
    plan: "Performance",
    disk_size_gb: 40,
  });
  expect(made.status).toBe(201);
  const overview: Overview = await view("overview");
  const config = (guest: object, size?: string) => ({ config: { image: "nginx", guest, size } }) as never;
  const ofMachines = [
    machineCost({ config: { image: "nginx", size: "performance-4x" } } as never, prices),
    machineCost(config({ cpuKind: "shared", cpus: 2, memoryMb: 1024 }), prices),
    machineCost(config({ cpuKind: "performance", cpus: 8, memoryMb: 16384, gpuKind: "l40s", gpus: 2 }), prices),
    machineCost(config({ cpuKind: "performance", cpus: 1, memoryMb: 2048, gpuKind: "a10" }), prices),
    machineCost({ config: { image: "nginx" }, state: "stopped" } as never, prices),
  ].reduce((sum, one) => sum + one);
  const volumes = volumeCost({ sizeGb: 10 }, prices) + volumeCost({}, prices);
  const addresses = addressCost({ type: "v4" }, prices);
  expect(overview.cost).toEqual({
    currency: "USD",
    machines: expect.closeTo(ofMachines, 6),
    volumes: expect.closeTo(volumes, 6),
    addresses: expect.closeTo(addresses, 6),
    clusters: expect.closeTo(clusterCost({ plan: "Performance", diskSizeGb: 40 }, prices), 6),
  });
  expect(ofMachines).toBeGreaterThan(2000);
  expect(appIn(overview, "web")).toMatchObject({
    ...{ machines: 5, states: { started: 4, stopped: 1 }, critical: 0, warning: 0, volumes: 2, hostnames: 1 },
    regions: ["ams", "fra"],
    deleting: false,
    network: "default",
    cost: expect.closeTo(ofMachines + volumes + addresses, 6),
  });
  expect(appIn(overview, "api")).toMatchObject({ network: "blue", machines: 0, cost: 0, regions: [] });
  expect(overview.apps.map(({ name }) => name)).toEqual(["api", "web"]);
  const region = (code: string) => overview.regions.find((one) => one.code === code);
  expect([region("ams"), region("fra"), region("iad")]).toMatchObject([
    { machines: 4, used: 4 },
    { machines: 1, used: 1 },
    { machines: 0, used: 0 },
  ]);
  expect(overview.clusters).toMatchObject([{ name: "db", plan: "Performance", diskGb: 40, attachments: [] }]);
});

test("a Machine without checks has no result of checks, whatever its state is", async () => {
  const { machine, call, view, machines, clock, service } = await withConsole({ delays: "believable" });
  const plain = await machine({ env: { checks: '"checks":' } });
  const empty = await machine({ checks: {}, services: [{ protocol: "tcp", internal_port: 80, checks: [] }] });
  const own = await machine({ checks: { web: { port: 80, type: "tcp" } } });
  const ofService = await machine({ services: [{ protocol: "tcp", internal_port: 80, checks: [{ type: "tcp" }] }] });
  const results = async () => {
    const { rows } = await view("apps/web/machines");
    const found = new Map(rows.map(({ id, checks }: { id: string; checks: unknown }) => [id, checks]));
    return [plain, empty, own, ofService].map(({ id }) => found.get(id));
  };
  const appCounts = async () => appIn(await view("overview"), "web");
  expect(await results()).toEqual([null, null, null, null]);
  clock.advance(450);
  expect((await view("apps/web/machines")).rows.map(({ state }: { state: string }) => state)).toEqual(
    Array(4).fill("started"),
  );
  expect(await results()).toEqual([null, null, "warning", "warning"]);
  expect(await appCounts()).toMatchObject({ warning: 2, critical: 0 });
  clock.advance(1000);
  expect(await results()).toEqual([null, null, "passing", "passing"]);
  const { store } = service.context;
  await store.write(() => store.run("UPDATE machines SET checks = 'critical'"));
  expect(await appCounts()).toMatchObject({ warning: 0, critical: 2 });
  expect((await view("apps/web/groups")).groups).toMatchObject([{ critical: 2, states: { started: 4 } }]);
  await call("POST", `${machines}/${own.id}`, { config: { image: "nginx" } });
  clock.advance(5000);
  expect(await results()).toEqual([null, null, null, "critical"]);
});

test("an App shows what it has", async () => {
  const { call, machine, volume, view } = await withConsole();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  await machine();
  await call("POST", "/apps/other/machines", { config: { image: "nginx" } });
  await call("POST", "/apps/web/secrets/A", { value: "hidden-value" });
  await call("POST", "/apps/web/ip_assignments", { type: "v6" });
  await volume();
  for (let i = 0; i < 30; i++) await call("POST", "/apps/web/certificates/acme", { hostname: `www${i}.example.com` });
  const app = await view("apps/web");
  expect(app).toMatchObject({
    app: { name: "web", status: "deployed" },
    urls: [],
    volumes: { total: 1, first: [{ name: "data", size_gb: 3 }] },
    addresses: { total: 1, first: [{ ip: expect.stringContaining(":") }] },
    secrets: { total: 1, first: [{ name: "A" }] },
    secretKeys: { total: 0, first: [] },
  });
  expect(app.certificates).toMatchObject({ total: 30, first: { length: 30 } });
});

test("an App with many volumes shows the oldest ones, and their number", async () => {
  const { volume, view, service } = await withConsole();
  const first = await volume();
  const { store } = service.context;
  const row = store.get<object>("SELECT * FROM volumes");
  await store.write(() => {
    for (let i = 0; i < 10_000; i++) store.insert("volumes", { ...row, id: `vol_${i}`, created_at: 2e12 });
  });
  const { volumes } = await view("apps/web");
  expect([volumes.total, volumes.first.length, volumes.first[0].id]).toEqual([10_001, 200, first.id]);
});

test("a Machine shows its events, versions, lease, volumes and waiting requests", async () => {
  const { call, machine, volume, view, machines, service } = await withConsole();
  const mounted = await volume();
  const { id, version } = await machine({ image: "nginx:1", mounts: [{ volume: mounted.id, path: "/data" }] });
  await call("POST", `${machines}/${id}`, {
    config: { image: "nginx:2", mounts: [{ volume: mounted.id, path: "/data" }] },
  });
  const lease = (await call("POST", `${machines}/${id}/lease`, { description: "mine", ttl: 60 })).body.data;
  const waiting = call("GET", `${machines}/${id}/wait?state=stopped&timeout=60`);
  await expect.poll(() => service.context.waits.size).toBe(1);
  const shown = await view(`apps/web/machines/${id}`);
  expect(shown).toMatchObject({
    machine: { id, state: "started", config: { image: "nginx:2" } },
    versions: [{ image: "nginx:2" }, { image: "nginx:1", version }],
    lease: { description: "mine", owner: lease.owner },
    waits: [{ wanted: expect.stringContaining("stopped"), until: expect.any(Number) }],
    volumes: [{ id: mounted.id, name: "data", size_gb: 3 }],
    canLog: false,
  });
  expect(shown.events.map(({ type }: { type: string }) => type)).toContain("update");
  expect(JSON.stringify(shown)).not.toContain(lease.nonce);
  await call("POST", `${machines}/${id}/stop`, undefined, { "svc-machine-lease-nonce": lease.nonce });
  expect((await waiting).status).toBe(200);
  expect(await view(`apps/web/machines/${id}/versions/${version}`)).toMatchObject({ image: "nginx:1" });
});

test("inside a Machine that runs there are processes and memory, and nothing in one that does not", async () => {
  const { call, machine, view, machines } = await withConsole();
  const { id } = await machine();
  const inside = await view(`apps/web/machines/${id}/inside`);
  expect(inside.processes.length).toBeGreaterThan(0);
  expect(inside.memory).toMatchObject({ limit_mb: expect.any(Number) });
  await call("POST", `${machines}/${id}/stop`);
  expect((await view(`apps/web/machines/${id}/inside`)).processes).toBe(null);
});

test("a destroyed Machine is shown until it is forgotten, and is in no list", async () => {
  const { call, machine, view, read, machines, clock } = await withConsole();
  const { id } = await machine();
  const { nonce } = (await call("POST", `${machines}/${id}/lease`, {})).body.data;
  await call("DELETE", `${machines}/${id}?force=true`, undefined, { "svc-machine-lease-nonce": nonce });
  const shown = await view(`apps/web/machines/${id}`);
  expect(shown).toMatchObject({ machine: { id, state: "destroyed" }, lease: null, waits: [], volumes: [] });
  expect(shown.versions).toHaveLength(1);
  expect(await view(`apps/web/machines/${id}/inside`)).toEqual({ processes: null, memory: null });
  expect(await view("apps/web/machines")).toEqual({ total: 0, offset: 0, rows: [] });
  expect((await view("apps/web/groups")).groups).toEqual([]);
  expect(appIn(await view("overview"), "web")).toMatchObject({ machines: 0, states: {}, cost: 0 });
  clock.advance(365 * 24 * 3600_000);
  // The session is over by then.
  const later = await call("GET", `${machines}/${id}`);
  expect([later.status, (await read("overview")).status]).toEqual([404, 401]);
});

test("a cluster shows its contents, and those that it cannot show yet as null", async () => {
  const { call, view, clock } = await withConsole({ delays: "believable" });
  const { body } = await call("POST", "/postgres", { name: "db", org_slug: "personal", region: "ams", plan: "basic" });
  const path = `clusters/${body.data.id}`;
  expect(await view(path)).toMatchObject({ cluster: { name: "db", status: "creating" }, active: null, slow: null });
  clock.advance(60_000);
  const ready = await view(path);
  expect(ready).toMatchObject({ cluster: { status: "ready" }, backups: [], active: expect.any(Array) });
  expect(ready.databases.length + ready.users.length).toBeGreaterThan(0);
});

test("the request log has the requests after a number, and what watches it is not in it", async () => {
  const { call, view, service } = await withConsole();
  const from = service.audit.last;
  await call("GET", "/apps/web");
  await call("GET", "/apps/none");
  const { last, entries } = await view(`requests?after=${from}`);
  expect([last, entries]).toMatchObject([
    from + 2,
    [
      { seq: from + 1, operation: "apps.get", path: "/v1/apps/web", status: 200 },
      { seq: from + 2, operation: "apps.get", path: "/v1/apps/none", status: 404 },
    ],
  ]);
  for (const path of ["overview", "apps/web", "apps/web/machines", "requests", "faults"]) await view(path);
  expect(await view(`requests?after=${last}`)).toEqual({ run: service.run, last, entries: [] });
});

test("one answer with a long request log has the newest thousand", async () => {
  const { service, view } = await withConsole();
  const [entry] = service.audit.after(0);
  if (!entry) throw new Error("nothing was recorded");
  for (let i = 0; i < 5000; i++) service.audit.add({ ...entry, org: i % 2 ? "personal" : "team" });
  const { last, entries } = await view("requests");
  expect(last).toBe(service.audit.last);
  const expected = service.audit.after(0).filter(({ org }) => org === "personal");
  expect(entries.map(({ seq }: { seq: number }) => seq)).toEqual(expected.slice(-1000).map(({ seq }) => seq));
});

test("only the operator sees and changes the faults, while the admin listener is on", async () => {
  const { service, visit, view, url, token, call } = await withConsole();
  const off = { isOn: false, faults: [], before: [], operations: [] };
  const fault = { operation: "apps.get", status: 500, times: "always" };
  // On a busy computer it also says for how long it was remembered.
  expect(await view("faults")).toMatchObject(off);
  expect((await visit("POST", `${api}/faults`, fault)).status).toBe(403);
  const admin = await startAdmin({ service, listen: { host: "127.0.0.1", port: 0 } });
  afterThisTest(() => admin.close());
  const { id } = (await visit("POST", `${api}/faults`, fault)).body;
  expect((await call("GET", "/apps/web")).status).toBe(500);
  // A request is noted after its answer was sent.
  await expect
    .poll(() => view("faults"))
    .toMatchObject({
      isOn: true,
      faults: [{ id, seen: 1, fault, hits: [{ path: "/v1/apps/web", status: 500, faults: [id] }] }],
    });
  expect((await view("faults")).operations).toContain("machines.create");
  const byToken = viewsOf(url, token);
  expect((await byToken("faults")).body).toMatchObject(off);
  const headers = { authorization: `Bearer ${token}` };
  expect((await send(url, "DELETE", `${api}/faults/${id}`, { headers })).status).toBe(403);
  expect((await visit("POST", `${api}/faults`, { ...fault, statuss: 1 })).body.error).toBe("unknown statuss");
  expect((await visit("DELETE", `${api}/faults/${id}`)).status).toBe(204);
  expect((await visit("DELETE", `${api}/faults/${id}`)).status).toBe(404);
  expect(await view("faults")).toMatchObject({ faults: [], before: [{ path: "/v1/apps/web", faults: [id] }] });
});

test.each([
  ["overview?app=web", "unknown app"],
  ["apps/web?x=1", "unknown x"],
  ["apps/web/groups?sort=name", "unknown sort"],
  ["apps/web/machines?sorted=name", "unknown sorted"],
  ["apps/web/machines?offset=-1", "invalid offset, got"],
  ["apps/web/machines?offset=1.5", "invalid offset, got"],
  ["apps/web/machines?limit=0", "invalid limit, got"],
  ["apps/web/machines?limit=501", "invalid limit, got"],
  ["apps/web/machines?limit=many", "invalid limit, got"],
  ["apps/web/machines?sort=size", 'invalid sort, got "size", allowed are "name", "region"'],
  ["apps/web/machines?order=down", 'invalid order, got "down", allowed are "asc", "desc"'],
  ["apps/web/machines?only=failing", 'invalid only, got "failing", allowed are "passing"'],
  ["apps/web/machines?state=started,gone", 'invalid state, got "started,gone", must be states with commas'],
  [`apps/web/machines?text=${"x".repeat(201)}`, "must have at most 200 characters"],
  ["apps/web/machines?text=a&text=b", "invalid text, got an array, must be of type string"],
  ["requests?after=x", "invalid after, got "],
  ["requests?before=1", "unknown before"],
  ["faults?x=1", "unknown x"],
  ["clusters/none?x=1", "unknown x"],
])("%s is 400, and names the property", async (path, error) => {
  const { read } = await withConsole();
  expect(await read(path)).toMatchObject({ status: 400, body: { error: expect.stringContaining(error) } });
});

test("what does not exist is 404", async () => {
  const { machine, read } = await withConsole();
  const { id } = await machine();
  for (const path of [
    "apps/none",
    "apps/none/groups",
    "apps/none/machines",
    `apps/none/machines/${id}`,
    "apps/web/machines/none",
    "apps/web/machines/none/inside",
    `apps/web/machines/${id}/versions/none`,
    "clusters/none",
    "none",
  ])
    expect([path, (await read(path)).status]).toEqual([path, 404]);
});

test("a token of one App, or of another organization, sees nothing else", async () => {
  const started = await withConsole();
  const { call, machine, service, url } = started;
  const { store } = service.context;
  await call("POST", "/apps", { name: "own", org_slug: "personal" });
  const { id } = await machine();
  await call("POST", "/apps/own/machines", { config: { image: "nginx" } });
  const cluster = (await call("POST", "/postgres", { name: "db", org_slug: "personal", region: "ams", plan: "basic" }))
    .body.data.id;
  const ownApp = store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'own'")?.id;
  const ofOwn = callerWith(started, "of-own", { apps: [ownApp ?? ""] });
  const ofTeam = callerWith(started, "of-team", { slug: "team" });
  await ofOwn("GET", "/apps/own/machines");
  await ofOwn("GET", "/orgs/own/machines");
  await ofTeam("GET", "/apps/web");
  await ofTeam("POST", "/apps", { name: "theirs", org_slug: "team" });
  const [own, team] = [viewsOf(url, "of-own"), viewsOf(url, "of-team")];
  const overviews: Overview[] = [await fresh(own, "overview"), await fresh(team, "overview")];
  expect(overviews.map(({ apps, organization }) => [organization.slug, apps.map(({ name }) => name)])).toEqual([
    ["personal", ["own"]],
    ["team", ["theirs"]],
  ]);
  expect(overviews.map(({ clusters, cost }) => [clusters, cost.clusters])).toEqual([
    [[], 0],
    [[], 0],
  ]);
  expect(overviews.map(({ regions }) => regions.reduce((sum, { machines }) => sum + machines, 0))).toEqual([1, 0]);
  const paths = async (read: typeof own) => [
    ...new Set((await fresh(read, "requests")).entries.map(({ path }: { path: string }) => path)),
  ];
  expect(await paths(own)).toEqual(["/v1/apps/own/machines"]);
  expect(await paths(team)).toEqual(["/v1/apps/web", "/v1/apps"]);
  expect(await paths(viewsOf(url, started.token))).not.toContain("/v1/apps/theirs");
  const foreign = ["apps/web", "apps/web/groups", "apps/web/machines", `apps/web/machines/${id}`];
  for (const path of [...foreign, `apps/web/machines/${id}/inside`])
    for (const read of [own, team]) expect([path, (await read(path)).status]).toEqual([path, 403]);
  for (const read of [own, team]) expect([403, 404]).toContain((await read(`clusters/${cluster}`)).status);
  expect((await own(`apps/own/machines/${id}`)).status).toBe(404);
  expect((await send(url, "GET", `${api}/overview`)).status).toBe(401);
});

test("secrets, values of variables and nonces are in no view, except in the configuration of a Machine", async () => {
  const started = await withConsole();
  const { call, machine, machines, url, service } = started;
  const canaries = {
    secret: "canary-secret-value",
    key: Buffer.from("canary-of-a-secret-key-32-bytes!").toString("base64"),
    file: "canary-secret-file",
  };
  const env = { variable: "canary-of-a-variable" };
  await call("POST", "/apps/web/secrets/TOKEN", { value: canaries.secret });
  await call("POST", "/apps/web/secretkeys/signing/type/SIGNING", { value: [...Buffer.from(canaries.key)] });
  const { id, version } = await machine({ env: { SHOWN: env.variable } });
  const { nonce } = (await call("POST", `${machines}/${id}/lease`, {})).body.data;
  await call("POST", `${machines}/${id}/cordon`, undefined, { "svc-machine-lease-nonce": nonce });
  const db = (await call("POST", "/postgres", { name: "db", org_slug: "personal", region: "ams", plan: "basic" })).body
    .data.id;
  const sealed = JSON.stringify((await call("GET", `/postgres/${db}`)).body);
  const password = /"password":"([^"]+)"/.exec(sealed)?.[1];
  const held = { ...canaries, nonce, token: started.token, ...(password ? { password } : {}) };
  const views = ["overview", "apps/web", "apps/web/groups", "apps/web/machines", "requests", "faults"];
  const shown = await Promise.all(
    [...views, `apps/web/machines/${id}/inside`].map(async (path) => ({
      what: path,
      text: (await viewsOf(url, started.token)(path)).text,
    })),
  );
  expect(leaks({ ...held, ...env }, shown)).toEqual([]);
  const configured = await Promise.all(
    [`apps/web/machines/${id}`, `apps/web/machines/${id}/versions/${version}`].map(async (path) => ({
      what: path,
      text: (await viewsOf(url, started.token)(path)).text,
    })),
  );
  expect(leaks(held, configured)).toEqual([]);
  expect(leaks(env, configured)).toHaveLength(2);
  expect(service.audit.last).toBeGreaterThan(4);
});

test("a view shows no change that is not durable, and is never cached", async () => {
  const { read, call } = await withConsole();
  const [made, shown] = await Promise.all([
    call("POST", "/apps", { name: "made", org_slug: "personal" }),
    read("overview"),
  ]);
  expect([made.status, shown.headers.get("cache-control")]).toEqual([201, "no-store"]);
});
