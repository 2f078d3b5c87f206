// Volumes of the Docker runtime hold real data, which nothing loses.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import type Dockerode from "dockerode";
import { Containers } from "../../service/runtime/docker/containers.ts";
import { connectEngine } from "../../service/runtime/docker/engine.ts";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { VolumeContents } from "../../service/runtime/docker/volumeContents.ts";
import { instead } from "../support/instead.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { image } from "./image.ts";
import { docker, hasEngine, withRuntime } from "./runtimes.ts";
import { describeVolumes, isCreated, mounting, read, write } from "./volumeData.ts";

type App = Awaited<ReturnType<typeof withRuntime>>;

/** The engine's volumes of a service: ids of volumes and snapshots. */
async function stored(app: App): Promise<string[]> {
  const { Volumes } = await docker.listVolumes({ filters: { label: [`machines-service.data=${app.dataId()}`] } });
  return (Volumes ?? []).map(({ Labels }) => Labels["machines-service.volume"] ?? "").sort();
}

const nameOf = (app: App, id: string): string => `machines-${app.dataId().slice(0, 8)}-${id}`;

describe.runIf(hasEngine)("volumes of the docker runtime", () => {
  describeVolumes(() => withRuntime("docker"), stored);

  test("a deleted volume goes although an ended container of an earlier version mounts it; a running one stays", async () => {
    const app = await withRuntime("docker");
    const { id: volume } = await app.volume();
    const id = await mounting(app, volume);
    await app.call("POST", `${app.machines}/${id}`, { config: { image } });
    await app.reaches(id, "started");
    const filters = { volume: [nameOf(app, volume)] };
    const mountedBy = () => docker.listContainers({ all: true, filters });
    expect(await mountedBy()).toMatchObject([{ State: "exited" }]);
    const other = await docker.createContainer({
      Image: image,
      Labels: { "machines-service.data": app.dataId() },
      HostConfig: { Binds: [`${nameOf(app, volume)}:/data`] },
    });
    await other.start();
    expect((await app.call("DELETE", `/apps/web/volumes/${volume}`)).status).toBe(200);
    app.service.context.clock.advance(25 * 3600_000);
    await expect.poll(mountedBy).toMatchObject([{ Id: other.id, State: "running" }]);
    expect(await stored(app)).toEqual([volume]);
    await other.kill();
    await expect.poll(() => stored(app)).toEqual([]);
    expect(await mountedBy()).toEqual([]);
    expect(await app.state(id)).toBe("started");
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
    // The program continues.
    const before = Number(await read(app, writing, "/data/first"));
    await expect.poll(async () => Number(await read(app, writing, "/data/first"))).toBeGreaterThan(before);
  });

  test("a copy that the engine refuses ends at once, and leaves no container", async () => {
    const app = await withRuntime("docker");
    const engine = await connectEngine();
    const containers = new Containers(engine, app.dataId());
    const { signal } = new AbortController();
    // More than the connections in between hold.
    const archive = Readable.from([await tarOf([{ name: "file", contents: Buffer.alloc(16 * 2 ** 20) }])]);
    await new VolumeContents(engine.docker, app.dataId(), containers).write("vol_large", archive, signal);
    let created = 0;
    // It reads the source, and has no space for what writes the copy.
    const full = instead(engine.docker, {
      createContainer: (options: Dockerode.ContainerCreateOptions) =>
        ++created === 2 ? Promise.reject(new Error("no space left on device")) : engine.docker.createContainer(options),
    });
    const copy = new VolumeContents(full, app.dataId(), containers).copy("vol_large", "vol_copy", signal);
    await expect(copy).rejects.toThrow("no space left on device");
    const filters = { label: ["machines-service.copy=vol_copy"] };
    expect(await docker.listContainers({ all: true, filters })).toEqual([]);
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

  test("after a kill, an interrupted copy is created again, and volumes that the service does not know are kept", async () => {
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
