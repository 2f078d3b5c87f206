// Machines that the cluster ends for reasons of its own: evictions, as `kubectl drain` asks for them, and lost nodes.
import { PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { expect, inject, test } from "vitest";
import type { KubernetesOptions } from "../../service/runtime/kubernetes/kubernetesDriver.ts";
import { labels, regionLabel } from "../../service/runtime/kubernetes/names.ts";
import { delayProfiles } from "../../service/time/delays.ts";
import { image } from "../runtime/image.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { evict, onCluster } from "./clusters.ts";
import { realRegion } from "./nodes.ts";

type App = Awaited<ReturnType<typeof onCluster>>;

/** The least number of healthy Pods of a budget that lets none be evicted. */
const closed = 1_000_000;

const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);

/** The budgets of an App: their names, and how many Pods each requires. */
async function budgets({ policy, selector }: App): Promise<Record<string, unknown>> {
  const { items } = await policy.listPodDisruptionBudgetForAllNamespaces(selector);
  return Object.fromEntries(items.map(({ metadata, spec }) => [metadata?.name, spec?.minAvailable]));
}

/** Simulated nodes of a region of their own. */
async function ownNodes(app: App, region: string, count: number): Promise<readonly string[]> {
  const room = { cpu: "64", memory: "256Gi", pods: "250" };
  const names = Array.from({ length: count }, (_, i) => `${region}-own-${i}`);
  for (const name of names) {
    const marks = { [regionLabel]: region, "kubernetes.io/hostname": name, type: "kwok" };
    const status = { allocatable: room, capacity: room };
    await app.core.createNode({ body: { metadata: { name, labels: marks }, status } });
    afterThisTest(async () => void (await app.core.deleteNode({ name }).catch(() => {})));
    // A new node takes nothing before it is ready.
    await expect.poll(async () => (await app.core.readNode({ name })).spec?.taints ?? []).toEqual([]);
  }
  return names;
}

const nodeOf = async (app: App, id: string) => (await app.pods(id))[0]?.spec?.nodeName;

test("an App with several Machines has a budget, which knows restarts that are due later, and is repaired", async () => {
  const app = await onCluster();
  const ids = [await app.create(), await app.create(), await app.create()];
  for (const id of ids) await app.reaches(id, "started");
  await expect.poll(() => budgets(app)).toEqual({ web: 2 });
  const [first = ""] = ids;
  await app.post(first, "stop");
  await app.reaches(first, "stopped");
  await expect.poll(() => budgets(app)).toEqual({ web: 1 });
  await app.post(first, "start");
  await expect.poll(() => budgets(app)).toEqual({ web: 2 });
  // Others change it.
  const { namespace } = app;
  await app.policy.patchNamespacedPodDisruptionBudget(
    { name: "web", namespace, body: { spec: { minAvailable: 0 } } },
    merge,
  );
  await expect.poll(() => budgets(app)).toEqual({ web: 2 });
  await app.policy.deleteNamespacedPodDisruptionBudget({ name: "web", namespace });
  await expect.poll(() => budgets(app)).toEqual({ web: 2 });
  for (const id of ids.slice(1)) await app.call("DELETE", `${app.machines}/${id}?force=true`);
  await expect.poll(() => budgets(app)).toEqual({});
});

test("a Machine that waits for its next start counts as not available, so that no other is evicted", async () => {
  // Its next start is due much later.
  const app = await onCluster({ delays: { ...delayProfiles.none, retry: 3600_000 } });
  const ids = [await app.create(), await app.create()];
  for (const id of ids) await app.reaches(id, "started");
  await expect.poll(() => budgets(app)).toEqual({ web: 1 });
  const [crashed = "", other = ""] = ids;
  // It is no eviction, so it counts as a crash.
  await app.core.deleteNamespacedPod({ name: crashed, namespace: app.namespace });
  await app.reaches(crashed, "stopped");
  await expect.poll(() => budgets(app)).toEqual({ web: closed });
  await expect.poll(() => evict(app, other, app.namespace)).toBe(false);
  // Without a next start it is none of those that are to run.
  await app.post(crashed, "stop");
  await expect.poll(() => budgets(app)).toEqual({});
  await app.post(crashed, "start");
  await app.reaches(crashed, "started");
  await expect.poll(() => evict(app, other, app.namespace)).toBe(true);
});

test("a fleet has a budget of its own", async () => {
  const app = await onCluster();
  for (const fleet of ["front", "front", "back", "back", undefined, undefined])
    await app.reaches(await app.create(fleet === undefined ? {} : { metadata: { "pulumi-fleet": fleet } }), "started");
  await expect.poll(async () => Object.values(await budgets(app))).toEqual([1, 1, 1]);
  const [pod] = (await app.pods()).filter(({ metadata }) => metadata?.labels?.[labels.fleet] !== undefined);
  expect(Object.keys(await budgets(app))).toContain(`web-${pod?.metadata?.labels?.[labels.fleet]}`);
});

test("a drained node leaves all Machines but one at any time, and they start elsewhere without counting as crashes", async () => {
  const app = await onCluster({ nearest: "lhr" });
  const [full = "", other = ""] = await ownNodes(app, "lhr", 2);
  const count = 4;
  await app.core.patchNode({ name: other, body: { spec: { unschedulable: true } } }, merge);
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await app.create({ restart: { policy: "on-failure", max_retries: 1 } }));
  for (const id of ids) await app.reaches(id, "started");
  await app.core.patchNode({ name: other, body: { spec: { unschedulable: false } } }, merge);
  await app.core.patchNode({ name: full, body: { spec: { unschedulable: true } } }, merge);
  await expect.poll(() => budgets(app)).toEqual({ web: count - 1 });
  const running = async () =>
    (await app.pods()).filter(
      ({ metadata, status }) =>
        metadata?.deletionTimestamp === undefined &&
        status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
    ).length;
  // As `kubectl drain`: it asks for every Pod of the node, again and again.
  const left = async () => {
    const pods = (await app.pods()).filter(({ spec }) => spec?.nodeName === full);
    for (const { metadata } of pods) {
      const isEvicted = await evict(app, metadata?.name ?? "", metadata?.namespace ?? "").catch(() => false);
      if (isEvicted) expect(await running()).toBeGreaterThanOrEqual(count - 1);
    }
    return pods.length;
  };
  await expect.poll(left).toBe(0);
  for (const id of ids) {
    await app.reaches(id, "started");
    await expect.poll(() => nodeOf(app, id)).toBe(other);
    const exit = await app.exit(id);
    expect(exit).toMatchObject({ requested_stop: false, restarting: true });
    const { events } = await app.get(id);
    // Its restarts are all left.
    expect(events.map(({ type }: { type: string }) => type)).not.toContain("restart");
  }
});

test("a Machine of a lost node is reported, and starts elsewhere; one with a volume waits for its node", async () => {
  const runtime: KubernetesOptions = { lostNodeMs: 0 };
  const app = await onCluster({ runtime, nearest: "cdg" });
  const [lost = "", other = ""] = await ownNodes(app, "cdg", 2);
  await app.core.patchNode({ name: other, body: { spec: { unschedulable: true } } }, merge);
  const { body: volume } = await app.call("POST", "/apps/web/volumes", { name: "data", region: "cdg", size_gb: 1 });
  // A volume of any node, of the class that claims get.
  const classes = (await app.storage.listStorageClass()).items;
  const usual = classes.find(({ metadata }) => metadata?.annotations?.["storageclass.kubernetes.io/is-default-class"]);
  const name = `volume-${app.dataId().slice(0, 8)}`;
  const hostPath = { path: "/tmp/nothing" };
  await app.core.createPersistentVolume({
    body: {
      metadata: { name },
      spec: {
        ...{ accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" }, hostPath },
        claimRef: { name: volume.id.toLowerCase().replaceAll("_", "-"), namespace: app.namespace },
        ...(usual?.metadata?.name === undefined ? {} : { storageClassName: usual.metadata.name }),
      },
    },
  });
  afterThisTest(async () => void (await app.core.deletePersistentVolume({ name })));
  const free = await app.create();
  const bound = await app.create({ mounts: [{ volume: volume.id, path: "/data" }] });
  for (const id of [free, bound]) await app.reaches(id, "started");
  expect(await nodeOf(app, free)).toBe(lost);
  await app.core.patchNode({ name: other, body: { spec: { unschedulable: false } } }, merge);
  // No one reports for the node any more.
  await app.core.patchNode({ name: lost, body: { metadata: { labels: { type: null } } } }, merge);
  const ready = { type: "Ready", status: "Unknown", reason: "NodeStatusUnknown", lastTransitionTime: new Date() };
  await app.core.patchNodeStatus(
    { name: lost, body: { status: { conditions: [ready] } } },
    setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch),
  );
  await expect.poll(async () => (await app.get(bound)).host_status).toBe("unreachable");
  await expect.poll(() => nodeOf(app, free)).toBe(other);
  await app.reaches(free, "started");
  expect((await app.exit(free)).error).toBe(`its node ${lost} is lost`);
  expect((await app.get(free)).host_status).toBe("ok");
  expect(await app.get(bound)).toMatchObject({ state: "started", host_status: "unreachable" });
  // The node is back.
  await app.core.patchNode({ name: lost, body: { metadata: { labels: { type: "kwok" } } } }, merge);
  await expect.poll(async () => (await app.get(bound)).host_status).toBe("ok");
});

test.runIf(inject("hasRealNode"))("a rolling eviction of real Pods leaves all but one serving", async () => {
  const app = await onCluster({ nearest: realRegion });
  const services = [
    {
      protocol: "tcp",
      internal_port: 8080,
      ports: [{ port: 80, handlers: ["http"] }],
      checks: [{ type: "http", path: "/", interval: "1s" }],
    },
  ];
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push(await app.create({ image, services }));
  const serving = async () => {
    const { items } = await app.discovery.listEndpointSliceForAllNamespaces(app.selector);
    return items.filter(({ endpoints }) => endpoints?.[0]?.conditions?.ready).length;
  };
  await expect.poll(serving).toBe(3);
  await expect.poll(() => budgets(app)).toEqual({ web: 2 });
  const uids = async () => (await app.pods()).map(({ metadata }) => metadata?.uid ?? "");
  const before = await uids();
  const left = async () => {
    for (const { metadata } of (await app.pods()).filter((pod) => before.includes(pod.metadata?.uid ?? "")))
      await evict(app, metadata?.name ?? "", metadata?.namespace ?? "").catch(() => false);
    // A Pod that is Ready for the cluster, and whose checks do not pass yet, is not available.
    expect(await serving()).toBeGreaterThanOrEqual(2);
    return (await uids()).filter((uid) => before.includes(uid)).length;
  };
  await expect.poll(left).toBe(0);
  await expect.poll(serving).toBe(3);
});
