// What the functions return about volumes and their snapshots.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(callings)("functions about volumes, $name binding", ({ start }) => {
  let service: TestService;
  let calling: Calling;
  let [data, spare, machine] = ["", "", ""];

  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    await makeApp(service, "db");
    data = await makeVolume(service, "db", "ams");
    spare = await makeVolume(service, "db", "fra");
    const mounts = [{ volume: data, path: "/data" }];
    machine = await makeMachine(service, "db", {
      region: "ams",
      config: { image: "registry.example.com/a:1", mounts },
    });
  });
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  test("getVolume finds a volume by its id or its bare id", async () => {
    const { answer } = await calling.call("getVolume", { app: "db", volume: `db/${data}` });
    expect(answer).toMatchObject({
      id: `db/${data}`,
      app: "db",
      volumeId: data,
      name: "data",
      region: "ams",
      sizeGb: 1,
      encrypted: true,
      snapshotRetention: 5,
      attachedMachineId: machine,
    });
    const free = await calling.call("getVolume", { app: "db", volume: spare });
    expect(free.answer).not.toHaveProperty("attachedMachineId");
  });

  test("getVolumes lists all volumes of an App", async () => {
    const { answer } = await calling.call("getVolumes", { app: "db" });
    expect((answer["volumes"] as { id: string }[]).map(({ id }) => id).sort()).toEqual(
      [`db/${data}`, `db/${spare}`].sort(),
    );
  });

  test("getVolumeSnapshots lists snapshots with ids that import accepts", async () => {
    const args = { app: "db", volume: data };
    expect((await calling.call("getVolumeSnapshots", args)).answer).toEqual({ snapshots: [] });
    await send(service, "POST", `/v1/apps/db/volumes/${data}/snapshots`);
    const { answer } = await calling.call("getVolumeSnapshots", args);
    const [snapshot] = answer["snapshots"] as { id: string; snapshotId: string }[];
    expect(snapshot).toMatchObject({ id: `db/${data}/${snapshot?.snapshotId}`, retentionDays: 5 });
    expect(snapshot?.snapshotId).toMatch(/^vs_/);
  });

  test.each(["getVolume", "getVolumeSnapshots"])("%s of a missing object returns the service's 404", async (name) => {
    await expect(calling.call(name, { app: "nowhere", volume: data })).rejects.toThrow(
      /answered 404: .*app not found/i,
    );
    await expect(calling.call(name, { app: "db", volume: "vol_none" })).rejects.toThrow(/answered 404: .*volume/i);
  });

  test("getVolumes in an App that does not exist returns the service's 404", async () => {
    await expect(calling.call("getVolumes", { app: "nowhere" })).rejects.toThrow(/volumes.list answered 404/);
  });
});
