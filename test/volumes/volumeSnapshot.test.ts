import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { delayProfiles } from "../../service/time/delays.ts";
import { ManualClock } from "../../service/index.ts";
import { makeApp, makeVolume, send } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { handled, type Handled } from "../support/handled.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const others = new WeakMap<TestService, Promise<Record<"sibling" | "stranger", string>>>();
/** Volumes of the same App and of another App. */
const around = (service: TestService) => {
  const known = others.get(service) ?? make(service);
  others.set(service, known);
  return known;
};
async function make(service: TestService): Promise<Record<"sibling" | "stranger", string>> {
  const other = await makeApp(service, "snap-other");
  return {
    sibling: `snap-life/${await makeVolume(service, "snap-life", "ams")}`,
    stranger: `${other}/${await makeVolume(service, other, "ams")}`,
  };
}

lifecycle("VolumeSnapshot", {
  writeOnly: ["triggers"],
  survives: "untouched",
  given: async (service) => {
    const app = await makeApp(service, "snap-life");
    return { app, volume: `${app}/${await makeVolume(service, app, "ams")}` };
  },
  changes: async (service) => [
    { set: { app: "elsewhere" }, expect: "replace", diffOnly: true },
    { set: { triggers: { version: "1" } }, expect: "replace" },
    { set: { triggers: { version: "2" } }, expect: "replace" },
    { set: { triggers: undefined }, expect: "replace" },
    { set: { volume: (await around(service)).sibling }, expect: "replace" },
    { set: { app: "snap-other", volume: (await around(service)).stranger }, expect: "replace" },
  ],
});

describe("VolumeSnapshot", () => {
  let service: TestService;
  let snapshot: Handled;
  let volume = "";
  beforeEach(async () => {
    service = await startService({ delays: { ...delayProfiles.none, snapshot: 300 } });
    snapshot = handled("VolumeSnapshot", service);
    await makeApp(service, "web");
    volume = await makeVolume(service, "web", "ams");
  });
  afterEach(() => service.close());

  const take = (from = snapshot) => from.create({ app: "web", volume: `web/${volume}` });
  const list = () => send<{ id: string; status: string }[]>(service, "GET", `/v1/apps/web/volumes/${volume}/snapshots`);
  const sent = (operation: string) =>
    service.requests.filter((request) => request.operation === operation).map(({ status }) => status);

  test("a snapshot is taken and waited for", async () => {
    const { id, state } = await take();
    const [live] = await list();
    expect(id).toBe(`web/${volume}/${live?.id ?? ""}`);
    expect(state).toMatchObject({
      snapshotId: live?.id,
      status: "created",
      size: 0,
      volumeSize: 2 ** 30,
      digest: expect.stringMatching(/^sha256:/) as string,
      retentionDays: 5,
      createdAt: expect.stringMatching(/Z$/) as string,
      expired: false,
    });
  });

  test("our snapshot waits until another unfinished one is written", async () => {
    await send(service, "POST", `/v1/apps/web/volumes/${volume}/snapshots`);
    const [theirs] = await list();
    const { state } = await take();
    expect(sent("volumes.createSnapshot")).toContain(412);
    expect((await list()).map((one) => one.id)).toEqual([theirs?.id, state["snapshotId"]]);
  });

  test("concurrent snapshots of one volume are separate", async () => {
    const found = await Promise.all([take(), take(), take()]);
    expect(new Set(found.map(({ id }) => id)).size).toBe(3);
    expect(await list()).toHaveLength(3);
  });

  test.each([503, "reset"] as const)("a lost answer after a create (%s): the snapshot is found", async (status) => {
    service.fail({ operation: "volumes.createSnapshot", when: "after", status });
    const { state } = await take();
    expect((await list()).map((one) => one.id)).toEqual([state["snapshotId"]]);
  });

  test("a request lost before it was applied is sent again after a read that shows nothing", async () => {
    await service.close();
    service = await startService();
    await makeApp(service, "web");
    volume = await makeVolume(service, "web", "ams");
    service.fail({ operation: "volumes.createSnapshot", when: "before", status: 503 });
    const { state } = await take(handled("VolumeSnapshot", service, { jump: true }));
    expect((await list()).map((one) => one.id)).toEqual([state["snapshotId"]]);
  });

  test("a snapshot that is not written in time is kept, and the next up continues to wait", async () => {
    const impatient = handled("VolumeSnapshot", service, { jump: true, timeoutSeconds: 1 });
    const failed = (await take(impatient).catch((error: unknown) => error)) as Error & {
      id: string;
      properties: Record<string, unknown>;
    };
    expect(failed.message).toMatch(/snapshot vs_\w+ of web\/vol_\w+ was not written within 1s: it is pending/);
    const state = await snapshot.update({ id: failed.id, state: failed.properties }, { app: "web", volume });
    expect(state).toMatchObject({ status: "created", expired: false });
    expect(await list()).toHaveLength(1);
  });

  const interrupted = async () => {
    const impatient = handled("VolumeSnapshot", service, { jump: true, timeoutSeconds: 1 });
    const failed = await take(impatient).catch((error: unknown) => error);
    const { id, properties } = failed as { id: string; properties: Record<string, unknown> };
    return { id, state: properties };
  };

  test("an interrupted snapshot that no longer exists counts as expired", async () => {
    const patient = handled("VolumeSnapshot", service, { jump: true });
    const found = await interrupted();
    service.fail({ operation: "volumes.listSnapshots", list: { keep: 0 } });
    const after = await patient.update(found, { app: "web", volume });
    expect(after).toMatchObject({ snapshotId: found.state["snapshotId"], expired: true });
    expect(after["__context"]).not.toMatchObject({ unfinished: true });
    service.fail({ operation: "volumes.listSnapshots", status: 404, body: { error: "volume not found" } });
    expect(await patient.update(found, { app: "web", volume })).toMatchObject({ expired: true });
  });

  test("a snapshot that vanishes while it is written is waited for 10 s, not until the deadline", async () => {
    service.fail({ operation: "volumes.listSnapshots", nth: 3, list: { keep: 0 }, times: "always" });
    const patient = handled("VolumeSnapshot", service, { jump: true });
    await expect(take(patient)).rejects.toThrow(
      /snapshot vs_\w+ of web\/vol_\w+ no longer exists: it was not complete/,
    );
    expect(sent("volumes.listSnapshots").length).toBeLessThan(30);
  });

  test("a list that omits it briefly does not end the wait", async () => {
    service.fail({ operation: "volumes.listSnapshots", nth: 3, list: { keep: 0 }, times: 2 });
    expect((await take()).state).toMatchObject({ status: "created" });
  });

  test("a snapshot that a list omits is looked up again before it counts as expired", async () => {
    const first = await take();
    await snapshot.read(first);
    const second = await take();
    expect(await snapshot.read(second)).toMatchObject({ expired: false });
    service.fail({ operation: "volumes.listSnapshots", list: { keep: 0 } });
    const another = handled("VolumeSnapshot", service, { jump: true });
    expect(await another.read(second)).toMatchObject({ expired: false });
  });

  test("delete sends nothing and reports that the snapshot expires by itself", async () => {
    const found = await take();
    const before = service.requests.length;
    await snapshot.delete(found);
    expect(service.requests.length).toBe(before);
    expect(snapshot.warnings).toEqual([
      `snapshot ${found.id} cannot be deleted; it is forgotten here and expires by itself 5 days after ${String(found.state["createdAt"])}`,
    ]);
    expect(await list()).toHaveLength(1);
    await snapshot.delete({ ...found, state: { ...found.state, expired: true } });
    expect(snapshot.warnings).toHaveLength(1);
  });

  test("a refresh reads all snapshots of a volume with one request", async () => {
    const found = [await take(), await take(), await take()];
    const before = sent("volumes.listSnapshots").length;
    await Promise.all(found.map((one) => snapshot.read(one)));
    expect(sent("volumes.listSnapshots").length - before).toBe(1);
  });
});

describe("a VolumeSnapshot whose retention is over", () => {
  test("a VolumeSnapshot whose retention is over is kept as expired, makes no diff, and can no longer be imported", async () => {
    const clock = new ManualClock();
    const service = await startService({ clock });
    await makeApp(service, "web");
    const volume = await makeVolume(service, "web", "ams");
    const snapshot = handled("VolumeSnapshot", service, { jump: true });
    const taken = await snapshot.create({ app: "web", volume });
    const bound = bind("VolumeSnapshot", service);
    const { inputs } = await bound.check({}, { app: "web", volume });
    expect((await bound.read(taken.id, {}))?.inputs).toEqual({ app: "web", volume });

    clock.advance(6 * 24 * 3600_000);
    const later = handled("VolumeSnapshot", service, { jump: true });
    const expired = { ...taken.state, expired: true };
    expect(await later.read(taken)).toEqual(expired);
    expect(await bound.diff(taken.id, expired, inputs)).toBe("same");
    const next = bind("VolumeSnapshot", service, { requestTimeoutSeconds: "31" });
    await expect(next.read(taken.id, {})).rejects.toThrow(/there is no VolumeSnapshot/);

    // The volume is deleted as well, and its list with it.
    await send(service, "DELETE", `/v1/apps/web/volumes/${volume}`);
    clock.advance(10 * 24 * 3600_000);
    await expect(send(service, "GET", `/v1/apps/web/volumes/${volume}/snapshots`)).rejects.toThrow(/404/);
    expect(await handled("VolumeSnapshot", service, { jump: true }).read(taken)).toEqual(expired);

    // It is gone with its App.
    await makeApp(service, "still-here");
    await send(service, "DELETE", "/v1/apps/web?force=true");
    clock.advance(1000);
    const last = bind("VolumeSnapshot", service, { requestTimeoutSeconds: "32", allowMissingApps: "true" });
    expect(await last.read(taken.id, taken.state)).toBeUndefined();
    await service.close();
  });
});
