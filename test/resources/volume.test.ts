import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

lifecycle("Volume", {
  // Empty before the first mount.
  writeOnly: ["fstype"],
  given: async (service) => ({ app: await makeApp(service, "vol-life"), region: "ams", __context: { name: "data" } }),
  changes: async (service) => [
    { set: { snapshotRetention: 10 }, expect: "update" },
    { set: { autoBackupEnabled: false }, expect: "update" },
    { set: { sizeGb: 5 }, expect: "update", then: { sizeGb: 5, currentSizeGb: 5 } },
    { set: { sizeGb: 4 }, expect: "refused" },
    { set: { region: "fra" }, expect: "refused" },
    { set: { allowDataLoss: true }, expect: "no request" },
    { set: { restartOnExtend: true }, expect: "no request" },
    { set: { requireUniqueZone: false }, expect: "no request" },
    { set: { region: "fra" }, expect: "replace" },
    { set: { name: "other" }, expect: "replace" },
    { set: { encrypted: false }, expect: "replace" },
    { set: { fstype: "raw" }, expect: "replace" },
    { set: { app: await anotherApp(service) }, expect: "replace" },
  ],
  steady: { sizeGb: "a volume the platform made larger is left so" },
  drift: [
    {
      meddle: (service, { app, volumeId }) =>
        send(service, "PUT", `/v1/apps/${String(app)}/volumes/${String(volumeId)}`, { snapshot_retention: 44 }),
      shows: { snapshotRetention: 44 },
    },
    {
      meddle: (service, { app, volumeId }) =>
        send(service, "PUT", `/v1/apps/${String(app)}/volumes/${String(volumeId)}`, { auto_backup_enabled: true }),
      shows: { autoBackupEnabled: true },
    },
  ],
});

const others = new WeakMap<TestService, Promise<string>>();
const anotherApp = (service: TestService): Promise<string> => {
  const known = others.get(service) ?? makeApp(service, "vol-other");
  others.set(service, known);
  return known;
};

describe("Volume", () => {
  let service: TestService;
  let volume: Bound;
  beforeAll(async () => {
    service = await startService();
    volume = bind("Volume", service);
    await makeApp(service, "vols");
  });
  afterAll(() => service.close());

  const make = async (inputs: Record<string, unknown>) => {
    const checked = await volume.check({}, { app: "vols", region: "ams", sizeGb: 2, ...inputs });
    expect(checked.failures).toEqual([]);
    return { inputs: checked.inputs, ...(await volume.create(checked.inputs)) };
  };

  test("one that grew outside is no drift, and the next growth goes on from there", async () => {
    const { id, inputs, state } = await make({});
    await send(service, "PUT", `/v1/apps/vols/volumes/${String(state["volumeId"])}/extend`, { size_gb: 7 });
    const found = await volume.read(id, state);
    expect(found?.state).toMatchObject({ sizeGb: 2, currentSizeGb: 7 });
    expect(await volume.diff(id, found?.state ?? {}, inputs)).toBe("same");
    const grown = await volume.check(inputs, { ...inputs, sizeGb: 5 });
    expect(await volume.update(id, found?.state ?? {}, grown.inputs)).toMatchObject({ sizeGb: 5, currentSizeGb: 7 });
  });

  test("restartOnExtend restarts the Machine that mounts it; without it needsRestart says so", async () => {
    for (const restartOnExtend of [false, true]) {
      const { id, inputs, state } = await make({ restartOnExtend });
      const machine = await makeMachine(service, "vols", {
        region: "ams",
        config: { image: "registry.example.com/a:1", mounts: [{ volume: state["volumeId"], path: "/data" }] },
      });
      await send(service, "GET", `/v1/apps/vols/machines/${machine}/wait?state=started`);
      const next = await volume.check(inputs, { ...inputs, sizeGb: 9 });
      expect(await volume.update(id, state, next.inputs)).toMatchObject({
        currentSizeGb: 9,
        needsRestart: !restartOnExtend,
      });
      const events = await send<{ type: string }[]>(service, "GET", `/v1/apps/vols/machines/${machine}/events`);
      expect(events.some(({ type }) => type === "restart")).toBe(restartOnExtend);
      await expect(send(service, "GET", `/v1/apps/vols/machines/${machine}/lease`)).rejects.toThrow(/404/);
    }
  });

  test("delete waits until its Machine has let it go", async () => {
    const { id, state } = await make({});
    const machine = await makeMachine(service, "vols", {
      region: "ams",
      config: { image: "registry.example.com/a:1", mounts: [{ volume: state["volumeId"], path: "/data" }] },
    });
    const deleting = volume.delete(id, state);
    await expect.poll(() => service.requests.some(({ status }) => status === 412)).toBe(true);
    await send(service, "DELETE", `/v1/apps/vols/machines/${machine}?force=true`);
    await deleting;
    expect(await volume.read(id, state)).toBeUndefined();
  });
});
