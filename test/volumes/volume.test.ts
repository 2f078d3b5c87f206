import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { messageOf } from "../../provider/client/errors.ts";
import { withoutUndefined } from "../../provider/core/values.ts";
import { delayProfiles } from "../../service/time/delays.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { gate } from "../support/gate.ts";
import { handled, type Handled } from "../support/handled.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { failures, refresh as refreshAll, up, type Host, type Report } from "../support/modelEngine.ts";
import { emptyStack, type Declared } from "../support/modelStack.ts";
import { withSimulation, type Simulation } from "../support/simulation.ts";
import { startService, type TestService } from "../support/startService.ts";

lifecycle("Volume", {
  // Empty before the first mount.
  writeOnly: ["fstype", "snapshotId", "sourceVolumeId"],
  sent: ["fstype", "snapshotId", "sourceVolumeId"],
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
    { set: { uniqueZoneAppWide: true }, expect: "no request" },
    { set: { compute: { cpus: 2 } }, expect: "no request" },
    { set: { computeImage: "registry.example.com/a:1" }, expect: "no request" },
    { set: { finalSnapshot: true }, expect: "no request" },
    { set: { snapshotId: (await aSource(service)).snapshot }, expect: "replace" },
    { set: { snapshotId: undefined, snapshotRetention: 11 }, expect: "update", then: { snapshotRetention: 11 } },
    { set: { sourceVolumeId: (await aSource(service)).volume }, expect: "replace" },
    { set: { app: await anotherApp(service) }, expect: "replace" },
  ],
  steady: { sizeGb: "a volume that the platform extended keeps its size" },
  drift: [
    {
      interfere: (service, { app, volumeId }) =>
        send(service, "PUT", `/v1/apps/${String(app)}/volumes/${String(volumeId)}`, { snapshot_retention: 44 }),
      shows: { snapshotRetention: 44 },
    },
    {
      interfere: (service, { app, volumeId }) =>
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

const sources = new WeakMap<TestService, Promise<{ volume: string; snapshot: string }>>();
/** A volume with a snapshot, with the ids that a program uses. */
const aSource = (service: TestService) => {
  const known = sources.get(service) ?? makeSource(service);
  sources.set(service, known);
  return known;
};
async function makeSource(service: TestService): Promise<{ volume: string; snapshot: string }> {
  const app = await makeApp(service, "vol-source");
  const volume = `${app}/${await makeVolume(service, app, "ams")}`;
  return { volume, snapshot: `${volume}/${await snapshotOf(service, volume)}` };
}

/** Creates a snapshot and returns its id. */
async function snapshotOf(service: TestService, volume: string): Promise<string> {
  const path = `/v1/apps/${volume.replace("/", "/volumes/")}/snapshots`;
  await send(service, "POST", path);
  const [{ id } = { id: "" }] = (await send<{ id: string }[]>(service, "GET", path)).slice(-1);
  return id;
}

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
    const program = withoutUndefined({ app: "vols", region: "ams", sizeGb: 2, ...inputs });
    const checked = await volume.check({}, program);
    expect(checked.failures).toEqual([]);
    return { inputs: checked.inputs, ...(await volume.create(checked.inputs)) };
  };

  test("a volume extended outside shows no drift, and the next extension starts from its new size", async () => {
    const { id, inputs, state } = await make({});
    await send(service, "PUT", `/v1/apps/vols/volumes/${String(state["volumeId"])}/extend`, { size_gb: 7 });
    const found = await volume.read(id, state);
    expect(found?.state).toMatchObject({ sizeGb: 2, currentSizeGb: 7 });
    expect(await volume.diff(id, found?.state ?? {}, inputs)).toBe("same");
    const grown = await volume.check(inputs, { ...inputs, sizeGb: 5 });
    expect(await volume.update(id, found?.state ?? {}, grown.inputs)).toMatchObject({ sizeGb: 5, currentSizeGb: 7 });
  });

  test("restartOnExtend restarts the Machine that mounts it; otherwise needsRestart is set", async () => {
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

  describe("an extension that its Machine does not see yet", () => {
    const grown = async () => {
      const made = await make({});
      const machine = await makeMachine(service, "vols", {
        region: "ams",
        config: { image: "registry.example.com/a:1", mounts: [{ volume: made.state["volumeId"], path: "/data" }] },
      });
      const at = `/v1/apps/vols/machines/${machine}`;
      await send(service, "GET", `${at}/wait?state=started`);
      const inputs = { ...made.inputs, sizeGb: 9 };
      const state = await volume.update(made.id, made.state, inputs);
      expect(state).toMatchObject({
        needsRestart: true,
        startBeforeGrowth: expect.stringMatching(/^\w{26}$/) as string,
      });
      const restarts = async () =>
        (await send<{ type: string; source: string }[]>(service, "GET", `${at}/events`)).filter(
          ({ type, source }) => type === "restart" && source === "user",
        ).length;
      return { id: made.id, inputs, state, at, restarts };
    };
    const read = async (id: string, state: Record<string, unknown>) =>
      (await handled("Volume", service, { jump: true }).read({ id, state })) ?? {};
    const restarted = async (at: string) => {
      await send(service, "POST", `${at}/restart`);
      await send(service, "GET", `${at}/wait?state=started`);
    };

    test("an extension that its Machine does not see yet remains until the Machine was restarted by anyone; then no later change restarts it", async () => {
      const { id, inputs, state, at, restarts } = await grown();
      expect(await read(id, state)).toEqual(state);
      await restarted(at);
      const seen = await read(id, state);
      expect(seen).toMatchObject({ needsRestart: false });
      expect(seen).not.toHaveProperty("startBeforeGrowth");
      const next = { ...inputs, snapshotRetention: 20, restartOnExtend: true };
      const after = await volume.update(id, state, next);
      expect(after).toMatchObject({ needsRestart: false });
      expect(after).not.toHaveProperty("startBeforeGrowth");
      expect(await restarts()).toBe(1);
    });

    test("an extension that its Machine does not see yet does not restart the Machine with another change, unless the restart was interrupted", async () => {
      const { id, inputs, state, restarts } = await grown();
      const next = { ...inputs, snapshotRetention: 20, restartOnExtend: true };
      const kept = await volume.update(id, state, next);
      expect(kept).toMatchObject({ needsRestart: true, startBeforeGrowth: state["startBeforeGrowth"] });
      expect(await restarts()).toBe(0);
      const direct = handled("Volume", service);
      const begun = { ...kept, __context: { unfinished: true } };
      const program = { app: "vols", name: String(state["name"]), region: "ams", sizeGb: 9, restartOnExtend: true };
      expect(await direct.update({ id, state: begun }, program)).toMatchObject({ needsRestart: false });
      expect(await restarts()).toBe(1);
    });

    test("an extension that its Machine does not see yet ends when the Machine is stopped or unmounts it, and costs no request when there is none", async () => {
      const { id, state, at } = await grown();
      await send(service, "POST", `${at}/stop`);
      await send(service, "GET", `${at}/wait?state=stopped`);
      expect(await read(id, state)).toMatchObject({ needsRestart: false });
      await send(service, "DELETE", `${at}?force=true`);
      await expect.poll(async () => (await read(id, state))["attachedMachineId"]).toBeUndefined();
      expect(await read(id, state)).toMatchObject({ needsRestart: false });
      const asked = () => service.requests.filter(({ operation }) => operation?.startsWith("machines.")).length;
      const before = asked();
      await read(id, { ...state, needsRestart: false });
      expect(asked()).toBe(before);
    });

    test("an unseen extension that an older version recorded ends with the next start", async () => {
      const { id, state, at } = await grown();
      const { startBeforeGrowth: _, ...older } = state;
      const found = await read(id, older);
      expect(found).toEqual(state);
      await restarted(at);
      expect(await read(id, found)).toMatchObject({ needsRestart: false });
    });
  });

  test("a copy has its source's size, or the larger requested one; the program sets its encryption", async () => {
    const source = await make({ sizeGb: 4 });
    const snapshot = await snapshotOf(service, source.id);
    for (const origin of [{ sourceVolumeId: source.id }, { snapshotId: `${source.id}/${snapshot}` }]) {
      const same = await make({ ...origin, sizeGb: undefined, region: "fra", encrypted: false });
      expect(same.state).toMatchObject({ ...origin, currentSizeGb: 4, region: "fra", encrypted: false });
      expect(await volume.diff(same.id, same.state, same.inputs)).toBe("same");
      expect((await make({ ...origin, sizeGb: 6 })).state).toMatchObject({ sizeGb: 6, currentSizeGb: 6 });
    }
  });

  test("a fork can go into another region, name or App, as the refusal suggests", async () => {
    await makeApp(service, "vols-elsewhere");
    const source = await make({});
    const { state } = await make({ app: "vols-elsewhere", region: "lhr", name: "moved", sourceVolumeId: source.id });
    expect(state).toMatchObject({ app: "vols-elsewhere", region: "lhr", name: "moved" });
  });

  test("snapshotId and sourceVolumeId exclude each other", async () => {
    const { failures } = await volume.check({}, { app: "vols", snapshotId: "vs_1", sourceVolumeId: "vol_1" });
    expect(failures).toEqual([
      "sourceVolumeId: cannot be combined with snapshotId: a volume is created from one of them",
    ]);
  });

  test("importing a fork whose program names its source is refused, with the advice to omit the source", async () => {
    const source = await make({});
    const { id, inputs } = await make({ sourceVolumeId: source.id });
    const imported = { state: {}, inputs: {}, ...(await volume.read(id, {})) };
    const said = await volume.check(imported.inputs, inputs);
    await expect(volume.diff(id, imported.state, said.inputs)).rejects.toThrow(
      /^sourceVolumeId: .*leave it out if the volume was created from it: its source cannot be read/,
    );
    const { sourceVolumeId: _, ...without } = inputs;
    const { inputs: next } = await volume.check(imported.inputs, without);
    expect(await volume.diff(id, imported.state, next)).toBe("same");
  });

  test("the source can be removed from the program and restored without a request; another one is refused", async () => {
    const source = await make({});
    const made = await make({ sourceVolumeId: source.id });
    const without = await volume.check(made.inputs, { app: "vols", region: "ams", sizeGb: 2 });
    expect(without.failures).toEqual([]);
    expect(await volume.diff(made.id, made.state, without.inputs)).toBe("same");
    const longer = await volume.check(without.inputs, { app: "vols", region: "ams", sizeGb: 2, snapshotRetention: 9 });
    const state = await volume.update(made.id, made.state, longer.inputs);
    expect(await volume.diff(made.id, state, { ...longer.inputs, sourceVolumeId: source.id })).toBe("same");
    const other = await volume.check(made.inputs, { ...made.inputs, sourceVolumeId: "vols/vol_other" });
    expect(other.failures).toEqual([
      expect.stringMatching(/^sourceVolumeId: .*destroys its data; leave it out .*; otherwise, to keep the data/),
    ]);
  });

  test("adding a source to an existing volume is refused, also after an import (R9)", async () => {
    const { id, inputs, state } = await make({});
    const next = await volume.check(inputs, { ...inputs, snapshotId: "vols/vol_1/vs_1" });
    await expect(volume.diff(id, state, next.inputs)).rejects.toThrow(/snapshotId: .*allowDataLoss/);
    const imported = await volume.read(id, {});
    await expect(volume.diff(id, imported?.state ?? {}, next.inputs)).rejects.toThrow(/snapshotId: .*allowDataLoss/);
  });

  test.each([
    [
      "region",
      "fra",
      /stop its Machine, create a second Volume with the new region and with sourceVolumeId set to the id/,
    ],
    ["encrypted", false, /create a second Volume with the new encrypted and with sourceVolumeId/],
    ["fstype", "raw", /create a second Volume with a Machine of its own and copy the files/],
  ])("the refusal of another %s says how to keep the data", async (name, value, recipe) => {
    const { id, inputs, state } = await make({});
    const { failures } = await volume.check(inputs, { ...inputs, [name]: value });
    expect(failures).toEqual([expect.stringMatching(recipe)]);
    expect(failures[0]).toMatch(/Otherwise keep the old value, or set allowDataLoss: true to allow the data loss$/);
    if (name !== "region") return;
    // The diff refuses one that the service chose, with the same message.
    const context = { left: ["region"] };
    await expect(volume.diff(id, { ...state, __context: context }, { ...inputs, region: "fra" })).rejects.toThrow(
      recipe,
    );
  });

  test("an allowed replacement may be smaller; otherwise a volume never shrinks", async () => {
    const source = await make({});
    const declared = { __context: { owner: "shrinks" } };
    const { id, inputs, state } = await make({ sizeGb: 5, sourceVolumeId: source.id, ...declared });
    const sameSource = String(source.state["volumeId"]);
    const smaller = { ...inputs, sizeGb: 2 };
    const shrinks =
      /^sizeGb: got 2, which is less than the 5 GB .* copy the data to it \(https:.*volumes\.md#growing\)/;
    const allowed = await volume.check(inputs, { ...smaller, region: "fra", allowDataLoss: true });
    expect(allowed.failures).toEqual([]);
    expect(await volume.diff(id, state, allowed.inputs)).toBe("replace");
    for (const more of [{}, { allowDataLoss: true }, { allowDataLoss: true, sourceVolumeId: sameSource }]) {
      const next = await volume.check(inputs, { ...smaller, ...more });
      expect(next.failures).toEqual([]);
      await expect(volume.diff(id, state, next.inputs), JSON.stringify(more)).rejects.toThrow(shrinks);
    }
  });

  describe("an extension that fails", () => {
    const refused = { operation: "volumes.extend", status: 422, body: { error: "quota" } } as const;
    const failedUpdate = async (
      made: { id: string; state: Record<string, unknown> },
      next: Record<string, unknown>,
    ) => {
      const failure = await volume.update(made.id, made.state, next).catch((error: unknown) => error);
      return (failure as { properties: Record<string, unknown> }).properties;
    };

    test("an extension that was refused keeps the requested size from before, also over another one; a larger size of the platform does not count as requested", async () => {
      const made = await make({});
      await send(service, "PUT", `/v1/apps/vols/volumes/${String(made.state["volumeId"])}/extend`, { size_gb: 7 });
      service.fail({ ...refused, times: 2 });
      const once = await failedUpdate(made, { ...made.inputs, sizeGb: 500 });
      expect(once).toMatchObject({ sizeGb: 2, currentSizeGb: 7 });
      const twice = await failedUpdate({ id: made.id, state: once }, { ...made.inputs, sizeGb: 400 });
      expect(twice).toMatchObject({ sizeGb: 2, currentSizeGb: 7 });
      expect(await volume.update(made.id, twice, made.inputs)).toMatchObject({ sizeGb: 2, currentSizeGb: 7 });
    });

    test("an extension that was refused lets a state of an earlier version return to the live size", async () => {
      const { id, inputs, state } = await make({});
      service.fail(refused);
      const earlier = { ...state, sizeGb: 500, __context: { unfinished: true } };
      const stuck = await failedUpdate({ id, state: earlier }, { ...inputs, sizeGb: 500 });
      expect(stuck).toMatchObject({ sizeGb: 2, currentSizeGb: 2 });
    });

    test("an extension that was accepted counts as requested, although its end was not seen", async () => {
      const { id, inputs, state } = await make({ __context: { owner: "accepted" } });
      // The first read is that before the extension.
      service.fail({ operation: "volumes.get", status: 403, nth: 2 });
      const failed = await failedUpdate({ id, state }, { ...inputs, sizeGb: 9 });
      expect(failed).toMatchObject({ sizeGb: 9, currentSizeGb: 2 });
      await volume.check({ ...inputs, sizeGb: 9 }, inputs);
      await expect(volume.diff(id, failed, inputs)).rejects.toThrow(/got 2, which is less than the 9 GB/);
      expect(await volume.update(id, failed, { ...inputs, sizeGb: 9 })).toMatchObject({ currentSizeGb: 9 });
    });

    test("an extension whose answer was lost may still take effect: the smaller size stays allowed, and shows no drift", async () => {
      const { id, inputs, state } = await make({});
      service.fail({ operation: "volumes.extend", status: 503, when: "before", times: 3 });
      const failed = await failedUpdate({ id, state }, { ...inputs, sizeGb: 9 });
      expect(failed).toMatchObject({ sizeGb: 2, currentSizeGb: 2 });
      await send(service, "PUT", `/v1/apps/vols/volumes/${String(state["volumeId"])}/extend`, { size_gb: 9 });
      const reverted = await volume.update(id, failed, inputs);
      expect(reverted).toMatchObject({ sizeGb: 2, currentSizeGb: 9 });
      expect(await volume.diff(id, reverted, inputs)).toBe("same");
      expect(await volume.update(id, failed, { ...inputs, sizeGb: 9 })).toMatchObject({ sizeGb: 9, currentSizeGb: 9 });
    });

    const app: Declared = { type: "App", name: "shop", inputs: { name: "shop" } };
    const data = (more: object): Declared => ({
      ...{ type: "Volume", name: "data" },
      inputs: { app: { $of: "shop", get: "id" }, region: "ams", ...more },
    });
    /** A stack, and its `up` with the volume, which returns the errors. */
    const story = (simulation: Simulation) => {
      const stack = emptyStack();
      const during = async (work: (host: Host) => Promise<Report>) => {
        const process = simulation.start();
        const report = await process.run(() => work(process));
        if (report === "died") throw new Error("the process died");
        return failures(report).map(({ error }) => messageOf(error));
      };
      return {
        state: () => stack.resources.find(({ type }) => type === "Volume")?.state,
        refresh: () => during((host) => refreshAll(stack, host)),
        up: (...volumes: readonly Declared[]) => during((host) => up(stack, [app, ...volumes], host)),
      };
    };

    test.each([false, true])(
      "an extension that was refused can be taken back in the program, and is sent again if it is not (refresh: %s)",
      async (isRefreshed) => {
        await withSimulation("extension", async (simulation) => {
          const stack = story(simulation);
          const refuseOnce = async () => {
            simulation.service.fail(refused);
            expect(await stack.up(data({ sizeGb: 500 }))).toEqual([expect.stringMatching(/422: quota/)]);
            if (isRefreshed) expect(await stack.refresh()).toEqual([]);
          };
          expect(await stack.up(data({ sizeGb: 1 }))).toEqual([]);
          await refuseOnce();
          expect(await stack.up(data({ sizeGb: 1 }))).toEqual([]);
          expect(stack.state()).toMatchObject({ sizeGb: 1, currentSizeGb: 1 });
          await refuseOnce();
          expect(await stack.up(data({ sizeGb: 500 }))).toEqual([]);
          expect(stack.state()).toMatchObject({ sizeGb: 500, currentSizeGb: 500 });
          expect(await stack.up(data({ sizeGb: 1 }))).toEqual([expect.stringMatching(/less than the 500 GB/)]);
        });
      },
    );

    test("an extension of a new copy that was refused can be taken back in the program", async () => {
      await withSimulation("copy", async (simulation) => {
        const stack = story(simulation);
        const source = { ...data({ sizeGb: 2 }), name: "source" };
        const copy = (sizeGb: number) => data({ sizeGb, sourceVolumeId: { $of: "source", get: "id" } });
        expect(await stack.up(source)).toEqual([]);
        simulation.service.fail(refused);
        expect(await stack.up(source, copy(500))).toEqual([expect.stringMatching(/422: quota/)]);
        expect(await stack.up(source, copy(2))).toEqual([]);
        expect(await stack.up(source, copy(4))).toEqual([]);
      });
    });
  });

  test("placement inputs are sent at creation", async () => {
    const direct = handled("Volume", service, { jump: true });
    const placed = { uniqueZoneAppWide: true, requireUniqueZone: true, computeImage: "registry.example.com/a:1" };
    const compute = { cpuKind: "performance", cpus: 2, memoryMb: 4096 };
    await direct.create({ app: "vols", name: "data", region: "ams", ...placed, compute });
    expect(direct.bodies).toEqual([
      expect.objectContaining({
        unique_zone_app_wide: true,
        require_unique_zone: true,
        compute_image: "registry.example.com/a:1",
        compute: { cpu_kind: "performance", cpus: 2, memory_mb: 4096 },
      }),
    ]);
    const zones = [];
    for (const name of ["one", "two", "three"])
      zones.push((await make({ name, uniqueZoneAppWide: true })).state["zone"]);
    expect(new Set(zones).size).toBe(3);
  });

  const idsOf = async (app: string) =>
    (await send<{ id: string }[]>(service, "GET", `/v1/apps/${app}/volumes`)).map(({ id }) => id);

  test.each([503, "reset"] as const)("a lost answer after a create (%s): the volume is found", async (status) => {
    const app = await makeApp(service, `vols-lost-${status}`);
    await makeVolume(service, app, "ams");
    const before = await idsOf(app);
    const direct = handled("Volume", service, { jump: true });
    const source = await make({ sizeGb: 4 });
    for (const origin of [{}, { sourceVolumeId: source.id, sizeGb: 6 }]) {
      service.fail({ operation: "volumes.create", when: "after", status });
      const { id } = await direct.create({ app, name: "data", region: "ams", sizeGb: 2, ...origin });
      const fresh = (await idsOf(app)).filter((one) => !before.includes(one));
      expect(fresh.map((one) => `${app}/${one}`)).toEqual([id]);
      before.push(...fresh);
    }
  });

  test("if others created the same at the same time, none is adopted, and the error lists them", async () => {
    const app = await makeApp(service, "vols-twice");
    const { opened, open } = gate();
    service.fail({ operation: "volumes.create", when: "after", status: 503, until: () => opened });
    const creating = handled("Volume", service).create({ app, name: "data", region: "ams", sizeGb: 2 });
    creating.catch(() => undefined);
    await expect.poll(() => idsOf(app)).toHaveLength(1);
    for (const other of [{}, { name: "other" }, { region: "fra" }, { size_gb: 3 }, { encrypted: false }])
      await send(service, "POST", `/v1/apps/${app}/volumes`, { name: "data", region: "ams", size_gb: 2, ...other });
    open();
    const [ours, theirs] = await idsOf(app);
    await expect(creating).rejects.toThrow(`${ours ?? ""}, ${theirs ?? ""}. It is unknown which of them is ours`);
  });

  test("delete waits until its Machine has released it", async () => {
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

describe("a Volume and its snapshots", () => {
  let service: TestService;
  let volume: Handled;
  beforeEach(async () => {
    service = await startService({ delays: { ...delayProfiles.none, snapshot: 300 } });
    volume = handled("Volume", service);
    await makeApp(service, "vols");
  });
  afterEach(() => service.close());

  const make = (inputs: Record<string, unknown> = {}) =>
    volume.create({ app: "vols", region: "ams", sizeGb: 2, __context: { name: "data" }, ...inputs });
  const snapshots = (id: string) =>
    send<{ id: string; status: string }[]>(service, "GET", `/v1/apps/${id.replace("/", "/volumes/")}/snapshots`);
  const sent = (operation: string) =>
    service.requests.filter((request) => request.operation === operation).map(({ status }) => status);

  test("a restore from an unfinished snapshot waits for the snapshot", async () => {
    const source = await make();
    const snapshotId = await snapshotOf(service, source.id);
    const { state } = await make({ snapshotId });
    expect(state).toMatchObject({ snapshotId, currentSizeGb: 2 });
    expect(sent("volumes.create")).toEqual(expect.arrayContaining([412]));
    const impatient = handled("Volume", service, { jump: true, timeoutSeconds: 1 });
    service.fail({ operation: "volumes.create", status: 412, times: "always", body: { error: "being written" } });
    await expect(impatient.create({ app: "vols", name: "late", snapshotId })).rejects.toThrow(/412.*being written/);
  });

  test("finalSnapshot takes one before the deletion, after any unfinished one, and reports its id", async () => {
    const { id, state } = await make({ finalSnapshot: true });
    const first = await snapshotOf(service, id);
    await volume.delete({ id, state });
    const [before, last, ...more] = await snapshots(id);
    expect([before?.id, last?.status, more]).toEqual([first, "created", []]);
    expect(sent("volumes.createSnapshot").filter((status) => status === 412)).not.toEqual([]);
    expect(volume.warnings).toEqual([
      `volume ${id} is deleted; its final snapshot ${id}/${last?.id ?? ""} is kept for 5 days`,
    ]);
    expect(await volume.read({ id, state })).toBeUndefined();
    const again = sent("volumes.createSnapshot").length;
    await volume.delete({ id, state });
    expect(sent("volumes.createSnapshot"), "a volume that is being deleted needs no other").toHaveLength(again);
  });

  test("no snapshot is taken without finalSnapshot", async () => {
    const { id, state } = await make();
    await volume.delete({ id, state });
    expect(await snapshots(id)).toEqual([]);
  });

  test("the volume is kept if the final snapshot fails", async () => {
    const { id, state } = await make({ finalSnapshot: true });
    service.fail({ operation: "volumes.createSnapshot", status: 400, body: { error: "no room for snapshots" } });
    await expect(volume.delete({ id, state })).rejects.toThrow(
      /was not deleted, because its final snapshot failed: .*no room for snapshots.*set finalSnapshot: false/,
    );
    expect(await volume.read({ id, state })).toBeDefined();
    expect(sent("volumes.delete")).toEqual([]);
  });

  test("the final snapshot waits until no Machine writes to the volume", async () => {
    const { id, state } = await make({ finalSnapshot: true });
    const machine = await makeMachine(service, "vols", {
      region: "ams",
      config: { image: "registry.example.com/a:1", mounts: [{ volume: state["volumeId"], path: "/data" }] },
    });
    const looked = sent("volumes.get").length;
    const deleting = volume.delete({ id, state });
    await expect.poll(() => sent("volumes.get").length).toBeGreaterThan(looked + 1);
    expect(sent("volumes.createSnapshot")).toEqual([]);
    await send(service, "DELETE", `/v1/apps/vols/machines/${machine}?force=true`);
    await deleting;
    expect(await snapshots(id)).toHaveLength(1);
    const held = await make({ finalSnapshot: true });
    await makeMachine(service, "vols", {
      region: "ams",
      config: { image: "registry.example.com/a:1", mounts: [{ volume: held.state["volumeId"], path: "/data" }] },
    });
    await expect(handled("Volume", service, { jump: true, timeoutSeconds: 1 }).delete(held)).rejects.toThrow(
      /was not deleted within 1s: Machine \w+ still mounts it/,
    );
    expect(await snapshots(held.id)).toEqual([]);
  });

  test.each([503, "reset"] as const)("a final snapshot whose answer was lost (%s) is found", async (status) => {
    const { id, state } = await make({ finalSnapshot: true });
    service.fail({ operation: "volumes.createSnapshot", when: "after", status });
    await volume.delete({ id, state });
    expect(await snapshots(id)).toHaveLength(1);
    // A reset request is not counted.
    expect(sent("volumes.createSnapshot").length).toBeLessThan(2);
  });

  test("a copy that could not be extended is kept, and the next up extends it", async () => {
    const source = await make();
    service.fail({ operation: "volumes.extend", status: 400, body: { error: "not now" } });
    const failed = await make({ sourceVolumeId: source.id, sizeGb: 5 }).catch((error: unknown) => error);
    const { id, properties } = failed as { id: string; properties: Record<string, unknown> };
    expect(properties).toMatchObject({ currentSizeGb: 2, __context: { unfinished: true } });
    const program = { app: "vols", name: "data", region: "ams", sourceVolumeId: source.id, sizeGb: 5 };
    expect(await volume.update({ id, state: properties }, program)).toMatchObject({ currentSizeGb: 5 });
  });
});
