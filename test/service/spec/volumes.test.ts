// Volumes and snapshots (docs/interface.md#volumes, docs/interface.md#snapshots).
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { withApp } from "../client.ts";

const stillClock = () => withApp({ clock: new ManualClock(), delays: "believable" });
const hour = 3600_000;
const at = "/apps/web/volumes";

test("a volume has the defaults of the specification, and no file system before its first mount", async () => {
  const { volume } = await withApp();
  expect(await volume()).toEqual({
    id: expect.stringMatching(/^vol_[a-z0-9]{16,17}$/),
    name: "data",
    state: expect.stringMatching(/^creat(ing|ed)$/),
    region: "ams",
    zone: expect.any(String),
    size_gb: 3,
    encrypted: true,
    fstype: "",
    type: "local",
    attached_machine_id: null,
    attached_alloc_id: null,
    auto_backup_enabled: true,
    snapshot_retention: 5,
    host_status: "ok",
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    block_size: 0,
    blocks: 0,
    blocks_avail: 0,
    blocks_free: 0,
    bytes_total: 0,
    bytes_used: 0,
  });
});

test("all given values are kept, and a mounted volume shows its file system", async () => {
  const { call, volume, machine } = await withApp();
  const made = await volume({
    name: "db_1",
    region: "fra",
    size_gb: 10,
    encrypted: false,
    fstype: "raw",
    snapshot_retention: 60,
    auto_backup_enabled: false,
  });
  expect(made).toMatchObject({
    name: "db_1",
    region: "fra",
    size_gb: 10,
    encrypted: false,
    snapshot_retention: 60,
    auto_backup_enabled: false,
  });
  const { id, region } = await machine({ mounts: [{ volume: made.id, path: "/data" }] });
  expect(region).toBe("fra"); // a volume's default placement
  expect((await call("GET", `${at}/${made.id}`)).body).toMatchObject({
    fstype: "raw",
    attached_machine_id: id,
    block_size: 4096,
    bytes_total: 10 * 2 ** 30,
  });
});

test.each([
  [{ name: undefined }, 400],
  [{ name: "Not-Good" }, 400],
  [{ name: "a".repeat(31) }, 400],
  [{ size_gb: 0 }, 400],
  [{ size_gb: 501 }, 400],
  [{ size_gb: "3" }, 400],
  [{ size_gb: 1.5 }, 400],
  [{ snapshot_retention: 61 }, 400],
  [{ fstype: "btrfs" }, 400],
  [{ region: "zzz" }, 422],
  [{ snapshot_id: "vs_none" }, 404],
  [{ source_volume_id: "vol_none" }, 404],
])("a volume with %j is refused with %i", async (more, status) => {
  const { call } = await withApp();
  const answer = await call("POST", at, { name: "data", ...more });
  expect([answer.status, typeof answer.body.error]).toEqual([status, "string"]);
  expect((await call("GET", at)).body).toEqual([]);
});

test("several volumes may share a name; each then has a different zone", async () => {
  const { call, volume } = await withApp();
  for (let i = 0; i < 5; i++) await volume();
  const zones = (await call("GET", at)).body.map(({ zone }: { zone: string }) => zone);
  expect(new Set(zones).size).toBe(5);
});

test("a summary omits blocks, block size and bytes", async () => {
  const { call, volume } = await withApp();
  await volume();
  const [short] = (await call("GET", `${at}?summary=true`)).body;
  expect(Object.keys(short).filter((name) => /^(block|bytes)/.test(name))).toEqual([]);
  expect(short).toMatchObject({ name: "data", state: "created" });
});

test("only snapshot_retention and auto_backup_enabled can be updated, and are validated", async () => {
  const { call, volume } = await withApp({ strict: false });
  const { id, ...made } = await volume();
  const answer = await call("PUT", `${at}/${id}`, {
    snapshot_retention: 30,
    auto_backup_enabled: false,
    size_gb: 100,
    name: "other",
  });
  expect(answer.body).toMatchObject({
    snapshot_retention: 30,
    auto_backup_enabled: false,
    size_gb: made.size_gb,
    name: made.name,
  });
  expect((await call("PUT", `${at}/${id}`, { snapshot_retention: 7 })).body).toMatchObject({
    snapshot_retention: 7,
    auto_backup_enabled: false,
  });
  expect((await call("PUT", `${at}/${id}`, { snapshot_retention: 0 })).status).toBe(400);
});

test("a volume is extended and never shrinks; a running Machine needs a restart to see it", async () => {
  const { call, volume, machine, machines } = await withApp();
  const { id } = await volume({ size_gb: 5 });
  const extend = (size_gb: number) => call("PUT", `${at}/${id}/extend`, { size_gb });
  for (const size of [5, 4, 501]) expect((await extend(size)).status).toBe(400);
  expect((await extend(6)).body).toMatchObject({
    volume: { id, size_gb: 6, state: "extending" },
    needs_restart: false,
  });
  expect((await call("GET", `${at}/${id}`)).body).toMatchObject({ size_gb: 6, state: "created" });
  const made = await machine({ mounts: [{ volume: id, path: "/d" }] });
  expect((await extend(7)).body.needs_restart).toBe(true);
  await call("POST", `${machines}/${made.id}/stop`);
  expect((await extend(8)).body.needs_restart).toBe(false);
});

// --- states ---

async function path(app: Awaited<ReturnType<typeof stillClock>>, id: string): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < 12; i++) {
    const { state } = (await app.call("GET", `${at}/${id}`)).body;
    if (seen.at(-1) !== state) seen.push(state);
    app.clock.advance(50);
  }
  return seen;
}

test("a new volume, a restored one and a fork each have their own states", async () => {
  const app = await stillClock();
  const { id } = await app.volume({ size_gb: 9, region: "fra" });
  expect(await path(app, id)).toEqual(["creating", "created"]);
  await app.call("POST", `${at}/${id}/snapshots`);
  app.clock.advance(1000);
  const [snapshot] = (await app.call("GET", `${at}/${id}/snapshots`)).body;
  const restored = await app.volume({ snapshot_id: snapshot.id });
  expect(restored.size_gb).toBe(9);
  expect(await path(app, restored.id)).toEqual(["creating", "restoring", "created"]);
  const fork = await app.volume({ source_volume_id: id });
  expect(fork).toMatchObject({ size_gb: 9, region: "fra" });
  expect(await path(app, fork.id)).toEqual(["creating", "enabling_remote_export", "hydrating", "created"]);
  expect((await app.call("POST", at, { name: "data", source_volume_id: id, size_gb: 8 })).status).toBe(400);
});

test("a deleted volume is pending_destroy for 24 hours, then gone", async () => {
  const app = await stillClock();
  const { id } = await app.volume();
  expect(await app.call("DELETE", `${at}/${id}`)).toMatchObject({
    status: 200,
    body: { id, state: "scheduling_destroy" },
  });
  app.clock.advance(1000);
  const shown = async () => app.call("GET", `${at}/${id}`);
  expect((await shown()).body.state).toBe("pending_destroy");
  expect((await app.call("DELETE", `${at}/${id}`)).status).toBe(200);
  expect((await app.call("PUT", `${at}/${id}`, { snapshot_retention: 6 })).status).toBe(404);
  expect(
    (await app.call("POST", app.machines, { config: { image: "nginx", mounts: [{ volume: id, path: "/d" }] } })).status,
  ).toBe(412);
  app.clock.advance(24 * hour - 2000);
  expect((await shown()).status).toBe(200);
  app.clock.advance(2000);
  expect((await shown()).status).toBe(404);
});

// --- mounts ---

test("a volume is mounted by one Machine in its region, and released a moment after that is destroyed", async () => {
  const app = await stillClock();
  const { call, machine, machines, clock } = app;
  const { id: volume } = await app.volume({ region: "fra" });
  const mounts = [{ volume, path: "/data" }];
  const create = (region?: string) => call("POST", machines, { region, config: { image: "nginx", mounts } });
  const elsewhere = (place: string) =>
    `invalid config.mounts[0].volume, got "${volume}", which is in region fra, must be a volume in the machine's region ${place}`;
  expect(await create("ams")).toMatchObject({ status: 400, body: { error: elsewhere("ams") } });
  const other = await machine({}, { region: "lhr" });
  const update = await call("POST", `${machines}/${other.id}`, { config: { image: "nginx", mounts } });
  expect(update).toMatchObject({ status: 400, body: { error: elsewhere("lhr") } });
  expect((await call("GET", `${at}/${volume}`)).body.attached_machine_id).toBe(null);
  const { id } = await machine({ mounts });
  expect(await create()).toMatchObject({
    status: 412,
    body: { error: `failed_precondition: volume already claimed by machine ${id}` },
  });
  const bound = { status: 412, body: { error: `failed_precondition: volume is currently bound to machine: ${id}` } };
  expect(await call("DELETE", `${at}/${volume}`)).toMatchObject(bound);
  await call("DELETE", `${machines}/${id}?force=true`);
  clock.advance(250);
  expect((await call("GET", `${machines}/${id}`)).body.state).toBe("destroyed");
  expect(await call("DELETE", `${at}/${volume}`)).toMatchObject(bound);
  clock.advance(1000);
  expect((await call("GET", `${at}/${volume}`)).body.attached_machine_id).toBe(null);
  expect((await call("DELETE", `${at}/${volume}`)).status).toBe(200);
});

test("an update may not swap the volume of a Machine", async () => {
  const { call, machine, machines, volume } = await withApp();
  const [a, b] = [await volume(), await volume()];
  const mounts = (id: string) => ({ config: { image: "nginx", mounts: [{ volume: id, path: "/d" }] } });
  const { id, version } = await machine(mounts(a.id).config);
  expect((await call("POST", `${machines}/${id}`, mounts(b.id))).status).toBe(400);
  expect((await call("GET", `${machines}/${id}`)).body.version).toBe(version);
  expect((await call("POST", `${machines}/${id}`, mounts(a.id))).status).toBe(200);
  expect((await call("GET", `${at}/${a.id}`)).body.attached_machine_id).toBe(id);
});

test("a volume that an update no longer mounts is released once the update has ended the process", async () => {
  const app = await stillClock();
  const { call, machines, clock } = app;
  const { id: volume } = await app.volume();
  const mounts = [{ volume, path: "/data" }];
  const { id } = await app.machine({ mounts });
  clock.advance(1000);
  const update = (config: object = {}) => call("POST", `${machines}/${id}`, { config: { image: "nginx", ...config } });
  const claim = () => call("POST", machines, { config: { image: "nginx", mounts } });
  expect((await update()).body.state).toBe("replacing");
  const claimed = { status: 412, body: { error: `failed_precondition: volume already claimed by machine ${id}` } };
  expect(await claim()).toMatchObject(claimed);
  expect((await call("GET", `${at}/${volume}`)).body.attached_machine_id).toBe(id);
  // It may be mounted again meanwhile.
  expect((await update({ mounts })).status).toBe(200);
  expect((await update()).body.state).toBe("replacing");
  expect(await claim()).toMatchObject(claimed);
  clock.advance(1000);
  expect(await app.state(id)).toBe("started");
  expect((await call("GET", `${at}/${volume}`)).body.attached_machine_id).toBe(null);
  expect((await claim()).status).toBe(200);
});

test("concurrent Machines for one volume: exactly one gets it", async () => {
  const { call, machines, volume } = await withApp();
  const { id } = await volume();
  const answers = await Promise.all(
    Array.from({ length: 10 }, () =>
      call("POST", machines, { config: { image: "nginx", mounts: [{ volume: id, path: "/d" }] } }),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
  expect((await call("GET", machines)).body).toHaveLength(1);
});

// --- snapshots ---

test("a snapshot is pending while it is written; a second one is refused meanwhile", async () => {
  const app = await stillClock();
  const { id } = await app.volume({ size_gb: 2, snapshot_retention: 3 });
  const take = () => app.call("POST", `${at}/${id}/snapshots`);
  const list = async () => (await app.call("GET", `${at}/${id}/snapshots`)).body;
  expect(await list()).toEqual([]);
  expect(await take()).toMatchObject({ status: 200, text: "" });
  expect(await list()).toMatchObject([
    {
      id: expect.stringMatching(/^vs_[a-z0-9]{22,24}$/),
      status: "pending",
      volume_size: 2 * 2 ** 30,
      retention_days: 3,
    },
  ]);
  expect(await take()).toMatchObject({
    status: 412,
    body: { error: "failed_precondition: snapshot is already scheduled at 2026-01-01T00:00:00Z" },
  });
  app.clock.advance(1000);
  expect(await list()).toMatchObject([{ status: "created" }]);
  expect((await take()).status).toBe(200);
});

test("snapshots are taken daily and expire; the retention at their creation applies", async () => {
  const app = await stillClock();
  const { id } = await app.volume({ snapshot_retention: 2 });
  const count = async () => (await app.call("GET", `${at}/${id}/snapshots`)).body.length;
  app.clock.advance(23 * hour);
  expect(await count()).toBe(0);
  app.clock.advance(2 * hour);
  expect(await count()).toBe(1);
  app.clock.advance(10 * 24 * hour);
  expect(await count()).toBe(2);
  await app.call("PUT", `${at}/${id}`, { auto_backup_enabled: false });
  app.clock.advance(3 * 24 * hour);
  expect(await count()).toBe(0);
  await app.call("PUT", `${at}/${id}`, { auto_backup_enabled: true });
  app.clock.advance(25 * hour);
  expect(await count()).toBe(1);
});

test("the daily snapshot is left out while another one is being written", async () => {
  const app = await stillClock();
  const { id } = await app.volume();
  const list = async () => (await app.call("GET", `${at}/${id}/snapshots`)).body;
  app.clock.advance(24 * hour - 200);
  expect((await app.call("POST", `${at}/${id}/snapshots`)).status).toBe(200);
  app.clock.advance(300);
  expect(await list()).toMatchObject([{ status: "pending" }]);
  // The next one is taken.
  app.clock.advance(24 * hour);
  expect(await list()).toHaveLength(2);
});

test("snapshots outlive their volume, can be restored, and then expire too", async () => {
  const app = await stillClock();
  const { id } = await app.volume({ snapshot_retention: 5 });
  await app.call("POST", `${at}/${id}/snapshots`);
  app.clock.advance(1000);
  await app.call("DELETE", `${at}/${id}`);
  app.clock.advance(25 * hour);
  expect((await app.call("GET", `${at}/${id}`)).status).toBe(404);
  const [snapshot] = (await app.call("GET", `${at}/${id}/snapshots`)).body;
  expect((await app.call("POST", at, { name: "again", snapshot_id: snapshot.id })).status).toBe(200);
  app.clock.advance(5 * 24 * hour);
  expect((await app.call("GET", `${at}/${id}/snapshots`)).status).toBe(404);
});

test("an unfinished snapshot cannot be restored yet", async () => {
  const app = await stillClock();
  const { id } = await app.volume();
  await app.call("POST", `${at}/${id}/snapshots`);
  const [snapshot] = (await app.call("GET", `${at}/${id}/snapshots`)).body;
  const restore = () => app.call("POST", at, { name: "again", snapshot_id: snapshot.id });
  expect((await restore()).status).toBe(412);
  app.clock.advance(1000);
  expect((await restore()).status).toBe(200);
});

// --- requests ---

test("nulls count as omitted fields", async () => {
  const { call, volume } = await withApp();
  const made = await volume({ region: null, size_gb: null, snapshot_id: null, source_volume_id: null, compute: null });
  expect(made).toMatchObject({ region: "ams", size_gb: 3, encrypted: true });
  const updated = await call("PUT", `${at}/${made.id}`, { snapshot_retention: null, auto_backup_enabled: false });
  expect(updated.body).toMatchObject({ snapshot_retention: 5, auto_backup_enabled: false });
});

test("a volume can be placed for a Machine size, and has only one source", async () => {
  const { call, volume } = await withApp();
  expect((await volume({ compute: { cpus: 2, memory_mb: 512 }, compute_image: "nginx" })).size_gb).toBe(3);
  expect((await call("POST", at, { name: "data", compute: { cpus: "two" } })).status).toBe(400);
  const { id } = await volume();
  await call("POST", `${at}/${id}/snapshots`);
  const [snapshot] = (await call("GET", `${at}/${id}/snapshots`)).body;
  expect((await call("POST", at, { name: "data", snapshot_id: snapshot.id, source_volume_id: id })).status).toBe(400);
});

test("a copy may be larger than its source and have another name", async () => {
  const { call, volume } = await withApp();
  const { id } = await volume({ size_gb: 5, name: "one" });
  expect(await volume({ source_volume_id: id, size_gb: 9, name: "two" })).toMatchObject({ size_gb: 9, name: "two" });
  expect((await call("GET", `${at}/${id}`)).body).toMatchObject({ size_gb: 5, name: "one" });
});

test("zones are unique per name, in the whole App, or not at all", async () => {
  const { volume } = await withApp();
  const zones = new Set<string>();
  for (const name of ["a", "b", "c"]) zones.add((await volume({ name, unique_zone_app_wide: true })).zone);
  expect(zones.size).toBe(3);
  expect((await volume({ require_unique_zone: false })).zone).toEqual(expect.any(String));
});

test("a missing object is 404 for every operation", async () => {
  const { call } = await withApp();
  for (const [method, path, body] of [
    ["GET", ""],
    ["PUT", "", { snapshot_retention: 1 }],
    ["DELETE", ""],
    ["PUT", "/extend", { size_gb: 9 }],
    ["GET", "/snapshots"],
    ["POST", "/snapshots"],
  ] as const)
    expect([path, (await call(method, `${at}/vol_none${path}`, body)).status]).toEqual([path, 404]);
});

test("volumes and snapshots are deleted with their App", async () => {
  const { call, volume } = await withApp();
  const { id } = await volume();
  await call("POST", `${at}/${id}/snapshots`);
  await call("DELETE", "/apps/web");
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  expect((await call("GET", at)).body).toEqual([]);
  expect((await call("GET", `${at}/${id}/snapshots`)).status).toBe(404);
});
