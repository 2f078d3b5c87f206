// Everything of an organization, page by page (docs/interface.md#organization-lists): its five rules, and who sees
// what.
import { expect, test } from "vitest";
import { callerWith, pages, withApp, withStillClock } from "../client.ts";

const rfc3339 = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const at = "/orgs/personal/machines";
const volumesAt = "/orgs/personal/volumes";

type App = Awaited<ReturnType<typeof withStillClock>>;
const idsOf = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id);
const machineIds = async ({ call }: Pick<App, "call">, query = "") =>
  idsOf((await call("GET", at + query)).body.machines);
const volumeIds = async ({ call }: Pick<App, "call">, query = "") =>
  idsOf((await call("GET", volumesAt + query)).body.volumes);

/** Machines created a second apart, while the clock stands still. */
async function several(app: App, count: number): Promise<string[]> {
  const made: string[] = [];
  for (let i = 0; i < count; i++) {
    made.push((await app.machine()).id);
    app.clock.advance(1000);
  }
  return made;
}

test("the Machines of every App of the organization are listed, each with the name of its App", async () => {
  const { call, machine } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const web = await machine({ env: { A: "1" }, guest: { cpus: 2 }, metadata: { k: "v" } }, { region: "fra" });
  const { body: other } = await call("POST", "/apps/other/machines", { config: { image: "redis" } });
  const { body } = await call("GET", at);
  expect(body).toMatchObject({ next_cursor: "", last_machine_id: expect.any(String), last_updated_at: rfc3339 });
  const found = body.machines.find(({ id }: { id: string }) => id === web.id);
  expect(found).toEqual({
    id: web.id,
    name: web.name,
    app_name: "web",
    region: "fra",
    state: "started",
    private_ip: web.private_ip,
    version: web.version,
    instance_id: web.version,
    created_at: rfc3339,
    updated_at: rfc3339,
    config: { image: "nginx", guest: { cpus: 2 }, metadata: { k: "v" } },
  });
  expect(body.machines.find(({ id }: { id: string }) => id === other.id)).toMatchObject({
    app_name: "other",
    config: { image: "redis" },
  });
});

test("a summary omits the configuration", async () => {
  const { call, machine } = await withApp();
  const { id } = await machine({ metadata: { k: "v" } });
  const [short] = (await call("GET", `${at}?summary=true`)).body.machines;
  expect(short).toMatchObject({ id, app_name: "web", state: "started" });
  expect(short).not.toHaveProperty("config");
});

test("rule 1: Machines are sorted by updated_at, oldest to newest", async () => {
  const app = await withStillClock();
  const [a = "", b = "", c = ""] = await several(app, 3);
  expect(await machineIds(app)).toEqual([a, b, c]);
  await app.call("POST", `${app.machines}/${a}/stop`);
  app.clock.advance(1000);
  expect(await machineIds(app)).toEqual([b, c, a]);
  await app.call("PATCH", `${app.machines}/${b}/metadata`, { metadata: { k: "v" } });
  app.clock.advance(1000);
  expect(await machineIds(app)).toEqual([c, a, b]);
  await app.call("POST", `${app.machines}/${c}/cordon`);
  expect(await machineIds(app)).toEqual([a, b, c]);
  const { machines, last_machine_id, last_updated_at } = (await app.call("GET", at)).body;
  expect([last_machine_id, last_updated_at]).toEqual([c, machines.at(-1).updated_at]);
});

test("rule 2: updated_after returns only later changes; an earlier time also returns delayed ones", async () => {
  const app = await withStillClock();
  const [a = "", b = ""] = await several(app, 2);
  app.clock.advance(60_000);
  const since = new Date(app.clock.now()).toISOString();
  expect(await machineIds(app, `?updated_after=${since}`)).toEqual([]);
  await app.call("POST", `${app.machines}/${a}/stop`);
  app.clock.advance(1000);
  expect(await machineIds(app, `?updated_after=${since}`)).toEqual([a]);
  expect(await machineIds(app, "?updated_after=2026-01-01T00:00:00Z")).toEqual([b, a]);
  expect(await machineIds(app, `?updated_after=${encodeURIComponent("2026-01-01T02:00:00+02:00")}`)).toEqual([b, a]);
  for (const bad of ["yesterday", "2026-01-01", "2026-01-01T00:00:00"])
    expect([bad, (await app.call("GET", `${at}?updated_after=${bad}`)).status]).toEqual([bad, 400]);
});

test("polling with the last updated_at misses no change of the same second", async () => {
  const app = await withStillClock();
  await several(app, 2);
  const { last_updated_at } = (await app.call("GET", at)).body;
  const { id } = await app.machine();
  expect(await machineIds(app, `?updated_after=${last_updated_at}`)).toContain(id);
});

test("rule 3: a cursor takes precedence over updated_after", async () => {
  const app = await withStillClock();
  const made = await several(app, 4);
  const first = (await app.call("GET", `${at}?limit=2`)).body;
  expect(idsOf(first.machines)).toEqual(made.slice(0, 2));
  const late = new Date(app.clock.now() + 3600_000).toISOString();
  expect(await machineIds(app, `?updated_after=${late}`)).toEqual([]);
  expect(await machineIds(app, `?updated_after=${late}&cursor=${first.next_cursor}`)).toEqual(made.slice(2));
});

test("rule 4: a Machine that changes between two pages is never missed", async () => {
  const app = await withStillClock();
  const made = await several(app, 6);
  let page = 0;
  const found = await pages(async (cursor) => {
    const { body } = await app.call("GET", `${at}?limit=2${cursor ? `&cursor=${cursor}` : ""}`);
    if (page++ === 0) {
      await app.call("POST", `${app.machines}/${made[4]}/stop`);
      await app.call("POST", `${app.machines}/${made[0]}/stop`);
      app.clock.advance(1000);
    }
    return { items: body.machines, next: body.next_cursor };
  });
  const seen = found.flat().map(({ id }) => id);
  expect(new Set(seen)).toEqual(new Set(made));
  expect(seen.filter((id) => id === made[0])).toHaveLength(2); // once in its old state, and once in its new state
});

test("rule 5: limit is 1 to 1000, by default the maximum; cursors lead through all items", async () => {
  const app = await withApp();
  const made: string[] = [];
  for (let i = 0; i < 12; i++) made.push((await app.machine()).id);
  const found = await pages(async (cursor) => {
    const { body } = await app.call("GET", `${at}?limit=5${cursor ? `&cursor=${cursor}` : ""}`);
    return { items: body.machines, next: body.next_cursor };
  });
  for (const page of found) expect(page.length).toBeLessThanOrEqual(5);
  expect(
    found
      .flat()
      .map(({ id }) => id)
      .sort(),
  ).toEqual(made.sort());
  expect(await machineIds(app)).toHaveLength(12);
  expect(await machineIds(app, "?limit=1000")).toHaveLength(12);
  for (const query of ["limit=0", "limit=1001", "limit=-1", "limit=x", "cursor=nonsense"])
    expect([query, (await app.call("GET", `${at}?${query}`)).status]).toEqual([query, 400]);
});

test("Machines filter by region and state, and destroyed ones are shown on request", async () => {
  const app = await withApp();
  const { id: fra } = await app.machine({}, { region: "fra" });
  const { id: stopped } = await app.machine({}, { skip_launch: true });
  const { id: gone } = await app.machine();
  await app.call("DELETE", `${app.machines}/${gone}?force=true`);
  expect(new Set(await machineIds(app))).toEqual(new Set([fra, stopped]));
  expect(new Set(await machineIds(app, "?include_deleted=true"))).toEqual(new Set([fra, stopped, gone]));
  expect(await machineIds(app, "?region=fra")).toEqual([fra]);
  expect(await machineIds(app, "?state=stopped")).toEqual([stopped]);
  expect(new Set(await machineIds(app, "?state=stopped,started"))).toEqual(new Set([fra, stopped]));
  expect((await app.call("GET", `${at}?state=bogus`)).status).toBe(400);
  expect((await app.call("GET", `${at}?include_deleted=perhaps`)).status).toBe(400);
});

// --- volumes ---

test("volumes are listed with all their fields, the name of their App and updated_at", async () => {
  const { call, volume } = await withApp();
  const { id } = await volume();
  const whole = (await call("GET", `/apps/web/volumes/${id}`)).body;
  const { body } = await call("GET", volumesAt);
  expect(body).toEqual({
    volumes: [{ ...whole, app_name: "web", updated_at: rfc3339 }],
    next_cursor: "",
    last_volume_id: id,
    last_updated_at: rfc3339,
  });
  const [short] = (await call("GET", `${volumesAt}?summary=true`)).body.volumes;
  expect(short).toMatchObject({ id, app_name: "web" });
  expect(Object.keys(short).filter((name) => name.startsWith("block"))).toEqual([]);
});

test("volumes are sorted by their last change, filter, page and follow the cursor's precedence", async () => {
  const app = await withStillClock();
  const made: string[] = [];
  for (const region of ["fra", "ams", "fra", "ams"]) {
    made.push((await app.volume({ region })).id);
    app.clock.advance(1000);
  }
  const [a = "", b = "", c = "", d = ""] = made;
  expect(await volumeIds(app)).toEqual([a, b, c, d]);
  await app.call("PUT", `/apps/web/volumes/${a}`, { snapshot_retention: 9 });
  app.clock.advance(1000);
  expect(await volumeIds(app)).toEqual([b, c, d, a]);
  expect(await volumeIds(app, "?region=fra")).toEqual([c, a]);
  expect(await volumeIds(app, "?updated_after=2026-01-01T00:00:03Z")).toEqual([d, a]);
  const first = (await app.call("GET", `${volumesAt}?limit=2`)).body;
  const rest = await volumeIds(app, `?updated_after=2030-01-01T00:00:00Z&cursor=${first.next_cursor}`);
  expect([...idsOf(first.volumes), ...rest]).toEqual([b, c, d, a]);
  await app.call("DELETE", `/apps/web/volumes/${b}`);
  app.clock.advance(1000);
  expect(await volumeIds(app)).toEqual([c, d, a]);
  expect(await volumeIds(app, "?include_deleted=true")).toEqual([c, d, a, b]);
  expect(await volumeIds(app, "?include_deleted=true&state=pending_destroy")).toEqual([b]);
  expect(await volumeIds(app, "?state=created")).toEqual([c, d, a]);
  for (const query of ["limit=0", "limit=1001", "cursor=nonsense", "updated_after=never"])
    expect([query, (await app.call("GET", `${volumesAt}?${query}`)).status]).toEqual([query, 400]);
});

test("creating a volume's file system is a change", async () => {
  const app = await withStillClock();
  const { id } = await app.volume();
  await app.machine({ mounts: [{ volume: id, path: "/d" }] });
  app.clock.advance(200);
  const since = new Date(app.clock.now()).toISOString();
  app.clock.advance(1000);
  const [changed] = (await app.call("GET", `${volumesAt}?updated_after=${since}`)).body.volumes;
  expect(changed).toMatchObject({ id, fstype: "ext4" });
});

// --- whose ---

test("personal is the caller's own organization, another's is 403; an unknown one is 404", async () => {
  const app = await withApp();
  const { id } = await app.machine();
  const stranger = callerWith(app, "stranger", { slug: "strangers" });
  for (const kind of ["machines", "volumes"]) {
    expect((await stranger("GET", `/orgs/personal/${kind}`)).body[kind]).toEqual([]);
    expect((await stranger("GET", `/orgs/strangers/${kind}`)).body[kind]).toEqual([]);
    expect((await app.call("GET", `/orgs/strangers/${kind}`)).status).toBe(403);
    expect((await app.call("GET", `/orgs/nobody/${kind}`)).status).toBe(404);
  }
  expect(await machineIds(app)).toEqual([id]);
});
