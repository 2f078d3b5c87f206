// The data of volumes, on every runtime that really stores it: nothing loses it.
import { expect, test } from "vitest";
import { image } from "./image.ts";
import type { AppOnRuntime } from "./runtimes.ts";

const hour = 3600_000;
const volumes = "/apps/web/volumes";

/** A started Machine with this volume at /data. */
export async function mounting(app: AppOnRuntime, volume: string, config: object = {}): Promise<string> {
  const id = await app.create({ mounts: [{ volume, path: "/data" }], ...config });
  await app.reaches(id, "started");
  return id;
}

export const write = async (app: AppOnRuntime, id: string, file: string, text: string, mode = "644") => {
  const { body } = await app.call("POST", `${app.machines}/${id}/exec`, {
    command: ["write", file, mode],
    stdin: text,
  });
  expect(body.exit_code).toBe(0);
};

export const read = async (app: AppOnRuntime, id: string, file: string): Promise<string> =>
  (await app.exec(id, "cat", file)).stdout;

export const isCreated = (app: AppOnRuntime, id: string) =>
  expect.poll(async () => (await app.call("GET", `${volumes}/${id}`)).body.state).toBe("created");

/** A finished snapshot of a volume. */
async function snapshotOf(app: AppOnRuntime, volume: string) {
  await app.call("POST", `${volumes}/${volume}/snapshots`);
  const latest = async () => (await app.call("GET", `${volumes}/${volume}/snapshots`)).body.at(-1);
  await expect.poll(async () => (await latest()).status).toBe("created");
  return latest();
}

/** The tests of data. `start` starts a service, and `stored` lists the ids of the volumes and snapshots that its runtime has. */
export function describeVolumes<App extends AppOnRuntime>(
  start: () => Promise<App>,
  stored: (app: App) => Promise<string[]>,
): void {
  test("the data stays through an update, a restart, a larger size and another Machine", async () => {
    const app = await start();
    const { id: volume } = await app.volume();
    const id = await mounting(app, volume);
    expect((await app.exec(id, "cat", "/data/file")).exit_code).toBe(1);
    await write(app, id, "/data/file", "kept", "640");
    await app.call("POST", `${app.machines}/${id}`, {
      config: { image, env: { NEW: "yes" }, mounts: [{ volume, path: "/data" }] },
    });
    await app.reaches(id, "started");
    expect((await app.exec(id, "env")).stdout).toContain("NEW=yes");
    expect(await read(app, id, "/data/file")).toBe("kept");
    await app.call("PUT", `${volumes}/${volume}/extend`, { size_gb: 5 });
    await app.post(id, "restart");
    await app.reaches(id, "started");
    expect(await read(app, id, "/data/file")).toBe("kept");
    await app.call("DELETE", `${app.machines}/${id}?force=true`);
    await expect.poll(async () => (await app.call("GET", `${volumes}/${volume}`)).body.attached_machine_id).toBeNull();
    const next = await mounting(app, volume);
    expect(await read(app, next, "/data/file")).toBe("kept");
    expect((await app.exec(next, "mode", "/data/file")).stdout).toBe("640 1000\n");
  });

  test("a snapshot and a fork have the data of their moment, and a restored volume has the snapshot's", async () => {
    const app = await start();
    const { id: volume } = await app.volume();
    const id = await mounting(app, volume);
    await write(app, id, "/data/file", "first", "600");
    const snapshot = await snapshotOf(app, volume);
    expect(snapshot.size).toBeGreaterThan(0);
    await write(app, id, "/data/file", "second");
    const { id: fork } = await app.volume({ source_volume_id: volume });
    const { id: restored } = await app.volume({ snapshot_id: snapshot.id });
    // Both Machines wait until their volumes are written.
    const [ofFork, ofRestored] = [await mounting(app, fork), await mounting(app, restored)];
    await write(app, id, "/data/file", "third");
    expect(await read(app, ofFork, "/data/file")).toBe("second");
    expect(await read(app, ofRestored, "/data/file")).toBe("first");
    expect((await app.exec(ofRestored, "mode", "/data/file")).stdout).toBe("600 1000\n");
    expect(await app.state(id)).toBe("started");
    expect(await stored(app)).toEqual([volume, fork, restored, snapshot.id].sort());
  });

  test("a deleted volume and its data go after the time of grace, and snapshots when they expire", async () => {
    const app = await start();
    const { id: volume } = await app.volume({ snapshot_retention: 2 });
    await isCreated(app, volume);
    const snapshot = await snapshotOf(app, volume);
    await app.call("DELETE", `${volumes}/${volume}`);
    expect(await stored(app)).toEqual([volume, snapshot.id].sort());
    app.service.context.clock.advance(25 * hour);
    await expect.poll(() => stored(app)).toEqual([snapshot.id]);
    app.service.context.clock.advance(25 * hour);
    await expect.poll(() => stored(app)).toEqual([]);
  });

  test("a deleted App leaves no volume", async () => {
    const app = await start();
    const { id: volume } = await app.volume();
    await mounting(app, volume);
    await snapshotOf(app, volume);
    await app.call("DELETE", "/apps/web?force=true");
    await expect.poll(() => stored(app)).toEqual([]);
  });
}
