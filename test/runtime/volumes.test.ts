// Volumes of the Docker runtime hold real data, which nothing loses.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { afterThisTest } from "../support/leftovers.ts";
import { docker, hasEngine, withRuntime } from "./runtimes.ts";

type App = Awaited<ReturnType<typeof withRuntime>>;

const hour = 3600_000;
const volumes = "/apps/web/volumes";

/** The engine's volumes of a service: ids of volumes and snapshots. */
async function stored(app: App): Promise<string[]> {
  const { Volumes } = await docker.listVolumes({ filters: { label: [`machines-service.data=${app.dataId()}`] } });
  return (Volumes ?? []).map(({ Labels }) => Labels["machines-service.volume"] ?? "").sort();
}

const nameOf = (app: App, id: string): string => `machines-${app.dataId().slice(0, 8)}-${id}`;

/** A started Machine with this volume at /data. */
async function mounting(app: App, volume: string, config: object = {}): Promise<string> {
  const id = await app.create({ mounts: [{ volume, path: "/data" }], ...config });
  await app.reaches(id, "started");
  return id;
}

const write = async (app: App, id: string, file: string, text: string, mode = "644") => {
  const { body } = await app.call("POST", `${app.machines}/${id}/exec`, {
    command: ["write", file, mode],
    stdin: text,
  });
  expect(body.exit_code).toBe(0);
};

const read = async (app: App, id: string, file: string): Promise<string> => (await app.exec(id, "cat", file)).stdout;

const isCreated = (app: App, id: string) =>
  expect.poll(async () => (await app.call("GET", `${volumes}/${id}`)).body.state).toBe("created");

/** A finished snapshot of a volume. */
async function snapshotOf(app: App, volume: string) {
  await app.call("POST", `${volumes}/${volume}/snapshots`);
  const latest = async () => (await app.call("GET", `${volumes}/${volume}/snapshots`)).body.at(-1);
  await expect.poll(async () => (await latest()).status).toBe("created");
  return latest();
}

describe.runIf(hasEngine)("volumes of the docker runtime", () => {
  test("the data stays through an update, a restart, a larger size and another Machine", async () => {
    const app = await withRuntime("docker");
    const { id: volume } = await app.volume();
    const id = await mounting(app, volume);
    expect((await app.exec(id, "cat", "/data/file")).exit_code).toBe(1);
    await write(app, id, "/data/file", "kept", "640");
    await app.call("POST", `${app.machines}/${id}`, {
      config: { image: "machines-test/app:1", env: { NEW: "yes" }, mounts: [{ volume, path: "/data" }] },
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
    const app = await withRuntime("docker");
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

  test("a copy is consistent while the program writes", async () => {
    const app = await withRuntime("docker");
    const { id: volume } = await app.volume();
    const writing = await mounting(app, volume, { init: { exec: ["/bin/count", "/data"] } });
    await expect.poll(async () => Number(await read(app, writing, "/data/second"))).toBeGreaterThan(1);
    const forks = await Promise.all([1, 2, 3].map(() => app.volume({ source_volume_id: volume })));
    for (const { id: fork } of forks) {
      const reading = await mounting(app, fork);
      const [first, second] = [await read(app, reading, "/data/first"), await read(app, reading, "/data/second")];
      expect([0, 1], `first ${first}, second ${second}`).toContain(Number(first) - Number(second));
    }
    // The program goes on.
    const before = Number(await read(app, writing, "/data/first"));
    await expect.poll(async () => Number(await read(app, writing, "/data/first"))).toBeGreaterThan(before);
  });

  test("a deleted volume and its data go after the time of grace, and snapshots when they expire", async () => {
    const app = await withRuntime("docker");
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

  test("a deleted App leaves no volume in the engine", async () => {
    const app = await withRuntime("docker");
    const { id: volume } = await app.volume();
    await mounting(app, volume);
    await snapshotOf(app, volume);
    await app.call("DELETE", "/apps/web?force=true");
    await expect.poll(() => stored(app)).toEqual([]);
  });

  test("a volume that someone has removed from the engine does not begin again empty", async () => {
    const app = await withRuntime("docker");
    const { id: volume } = await app.volume();
    await isCreated(app, volume);
    await docker.getVolume(nameOf(app, volume)).remove();
    const id = await app.create({ mounts: [{ volume, path: "/data" }] });
    await app.reaches(id, "failed");
    expect((await app.exit(id)).error).toBe(
      `volume ${volume} is missing in the container engine; create a volume from one of its snapshots`,
    );
    expect(await stored(app)).toEqual([]);
  });

  test("after a kill, an interrupted copy is made again, and what the service does not know is kept", async () => {
    const data = mkdtempSync(join(tmpdir(), "machines-volumes-"));
    afterThisTest(() => rmSync(data, { recursive: true, force: true }));
    const first = await withRuntime("docker", { data });
    const { id: volume } = await first.volume();
    const id = await mounting(first, volume);
    await write(first, id, "/data/file", "whole");
    const { id: fork } = await first.volume({ source_volume_id: volume });
    await isCreated(first, fork);
    // As if the service had been killed in the middle of the copy.
    const { store } = first.service.context;
    await store.write(() => store.run("UPDATE volumes SET written = 0 WHERE id = ?", fork));
    await first.close();
    const half = nameOf(first, fork);
    const { Labels } = await docker.getVolume(half).inspect();
    await docker.getVolume(half).remove();
    await docker.createVolume({ Name: half, Labels });
    await docker.createVolume({
      Name: nameOf(first, "vol_unknown"),
      Labels: { ...Labels, "machines-service.volume": "vol_unknown" },
    });
    const [container] = await docker.listContainers({
      filters: { label: [`machines-service.data=${first.dataId()}`] },
    });
    await docker.getContainer(container?.Id ?? "").pause();
    const second = await withRuntime("docker", { data });
    const other = await mounting(second, fork);
    expect(await read(second, other, "/data/file")).toBe("whole");
    await second.reaches(id, "started");
    expect(await read(second, id, "/data/file")).toBe("whole");
    expect(await stored(second)).toEqual([volume, fork, "vol_unknown"].sort());
  });
});
