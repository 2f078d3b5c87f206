// Volumes as claims, and snapshots as those of the cluster.
import { KubeConfig, KubernetesObjectApi, PatchStrategy, type KubernetesObject } from "@kubernetes/client-node";
import { describe, expect, inject, test } from "vitest";
import { labels } from "../../service/runtime/kubernetes/names.ts";
import { image } from "../runtime/image.ts";
import { describeVolumes } from "../runtime/volumeData.ts";
import { onCluster, ownCluster } from "./clusters.ts";
import { realRegion } from "./nodes.ts";
import { addStorage, provideDisks } from "./storage.ts";

type App = Awaited<ReturnType<typeof onCluster>>;

const claimsOf = async (app: App) => (await app.core.listPersistentVolumeClaimForAllNamespaces(app.selector)).items;

const snapshotApi = (): KubernetesObjectApi => {
  const config = new KubeConfig();
  config.loadFromFile(inject("kubeconfig"));
  return KubernetesObjectApi.makeApiClient(config);
};

const snapshotsOf = async (app: App): Promise<KubernetesObject[]> => {
  const { items } = await snapshotApi().list(
    ...(["snapshot.storage.k8s.io/v1", "VolumeSnapshot", undefined, undefined, undefined, undefined] as const),
    ...([undefined, app.selector.labelSelector] as const),
  );
  return items;
};

/** The ids of the volumes and snapshots that the cluster has of a service. */
const stored = async (app: App): Promise<string[]> =>
  [...(await claimsOf(app)), ...(await snapshotsOf(app))]
    .map(({ metadata }) => metadata?.labels?.[labels.volume] ?? "")
    .sort();

/** Keeps the snapshot of a service in the cluster, or no longer, whoever deletes it. */
async function hold(app: App, isHeld: boolean): Promise<void> {
  const held = "example.com/held";
  const [snapshot] = await snapshotsOf(app);
  const { name = "", namespace = "", finalizers = [] } = snapshot?.metadata ?? {};
  const wanted = [...finalizers.filter((one) => one !== held), ...(isHeld ? [held] : [])];
  const change = {
    ...{ apiVersion: "snapshot.storage.k8s.io/v1", kind: "VolumeSnapshot" },
    metadata: { name, namespace, finalizers: wanted },
  };
  await snapshotApi().patch(change, undefined, undefined, undefined, undefined, PatchStrategy.MergePatch);
}

describe.runIf(inject("hasRealNode"))("on a real node, with a driver that copies", () => {
  describeVolumes(async () => {
    const app = await onCluster({ nearest: realRegion });
    return { ...app, create: (config: object = {}) => app.create({ image, ...config }) };
  }, stored);

  test("the cluster gives a volume the size that it was extended to", async () => {
    const app = await onCluster({ nearest: realRegion });
    const { id: volume } = await app.volume({ size_gb: 1 });
    await app.reaches(await app.create({ image, mounts: [{ volume, path: "/data" }] }), "started");
    const capacity = async () => (await claimsOf(app)).map(({ status }) => status?.capacity?.["storage"]);
    expect(await capacity()).toEqual(["1Gi"]);
    await app.call("PUT", `/apps/web/volumes/${volume}/extend`, { size_gb: 2 });
    await expect.poll(capacity).toEqual(["2Gi"]);
  });

  test("a namespace goes with its last snapshot, however late the cluster removes that", async () => {
    const app = await onCluster({ nearest: realRegion });
    const { id: volume } = await app.volume({ size_gb: 1 });
    await app.reaches(await app.create({ image, mounts: [{ volume, path: "/data" }] }), "started");
    await app.call("POST", `/apps/web/volumes/${volume}/snapshots`);
    const snapshots = async () => (await app.call("GET", `/apps/web/volumes/${volume}/snapshots`)).body;
    await expect.poll(async () => (await snapshots())[0]?.status).toBe("created");
    await hold(app, true);
    const [{ id }] = await snapshots();
    await app.call("DELETE", "/apps/web?force=true");
    await expect.poll(() => stored(app)).toEqual([id]);
    await expect.poll(() => app.pods()).toEqual([]);
    await hold(app, false);
    await expect.poll(app.left).toEqual([]);
  });
});

test("a volume is a claim, and outlives its Machine", async () => {
  const app = await onCluster();
  const { id: volume } = await app.volume({ size_gb: 1 });
  const machine = await app.create({ mounts: [{ volume, path: "/data" }] });
  await app.reaches(machine, "started");
  const [pod] = await app.pods(machine);
  expect(pod?.spec?.containers[0]?.volumeMounts?.map(({ mountPath }) => mountPath)).toEqual(["/data"]);
  const sizes = async () => (await claimsOf(app)).map(({ spec }) => spec?.resources?.requests?.["storage"]);
  await app.call("DELETE", `${app.machines}/${machine}?force=true`);
  await app.reaches(machine, "destroyed");
  expect(await sizes()).toEqual(["1Gi"]);
  await app.call("DELETE", `/apps/web/volumes/${volume}`);
  // Like on the platform, it is kept for a day.
  expect(await sizes()).toEqual(["1Gi"]);
});

test("a claim that others delete is not replaced by an empty one", async () => {
  const app = await onCluster();
  const { id: volume } = await app.volume({ size_gb: 1 });
  const config = { mounts: [{ volume, path: "/data" }], restart: { policy: "no" } };
  const machine = await app.create(config, { skip_launch: true });
  await app.reaches(machine, "stopped");
  const [{ metadata } = {}] = await claimsOf(app);
  await app.core.deleteNamespacedPersistentVolumeClaim({
    name: metadata?.name ?? "",
    namespace: metadata?.namespace ?? "",
  });
  await expect.poll(() => claimsOf(app)).toEqual([]);
  await app.post(machine, "start");
  await app.reaches(machine, "failed");
  expect((await app.exit(machine)).error).toBe(
    `volume ${volume} is missing in the cluster; create a volume from one of its snapshots`,
  );
  expect(await claimsOf(app)).toEqual([]);
});

test("without VolumeSnapshots, copies are refused by name", async () => {
  const app = await onCluster({ kubeconfig: (await ownCluster()).kubeconfig });
  const { id: volume } = await app.volume({ size_gb: 1 });
  const snapshot = await app.call("POST", `/apps/web/volumes/${volume}/snapshots`);
  expect(snapshot).toMatchObject({ status: 400, body: { error: expect.stringMatching(/VolumeSnapshots/) } });
  const fork = await app.call("POST", "/apps/web/volumes", { name: "data", source_volume_id: volume });
  expect(fork).toMatchObject({
    status: 400,
    body: { error: expect.stringMatching(/^invalid source_volume_id, .*VolumeSnapshots/) },
  });
});

test("the cluster extends volumes and copies them, and no snapshot is removed before its copy is complete", async () => {
  const { kubeconfig } = await ownCluster();
  await addStorage(kubeconfig);
  const disks = provideDisks(kubeconfig);
  const app = await onCluster({ kubeconfig });
  const { id: volume } = await app.volume({ size_gb: 1 });
  await app.reaches(await app.create({ mounts: [{ volume, path: "/data" }] }), "started");
  await app.call("PUT", `/apps/web/volumes/${volume}/extend`, { size_gb: 2 });
  await expect
    .poll(async () => (await claimsOf(app)).map(({ spec }) => spec?.resources?.requests?.["storage"]))
    .toEqual(["2Gi"]);
  await app.call("POST", `/apps/web/volumes/${volume}/snapshots`);
  const snapshot = async () => (await app.call("GET", `/apps/web/volumes/${volume}/snapshots`)).body[0];
  await expect.poll(disks.snapshots).toHaveLength(1);
  expect((await snapshot()).status).toBe("pending");
  await disks.complete();
  await expect.poll(async () => (await snapshot()).status).toBe("created");
  const { id: restored } = await app.volume({ snapshot_id: (await snapshot()).id });
  const { id: fork } = await app.volume({ source_volume_id: volume });
  // The fork waits for a snapshot of its own.
  await expect.poll(disks.snapshots).toHaveLength(2);
  await disks.complete();
  for (const copy of [restored, fork]) {
    await app.reaches(await app.create({ mounts: [{ volume: copy, path: "/data" }] }), "started");
    expect((await app.call("GET", `/apps/web/volumes/${copy}`)).body.state).toBe("created");
  }
  const names = (await claimsOf(app)).flatMap(({ spec }) => spec?.dataSource?.name ?? []);
  expect(names).toHaveLength(2);
  // The snapshot of the fork is no longer needed.
  await expect.poll(disks.snapshots).toHaveLength(1);
});
