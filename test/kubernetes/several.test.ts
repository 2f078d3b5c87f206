// Regions with clusters of their own: one that is down harms no other, and nothing is lost or left in it.
import { CoordinationV1Api, KubeConfig } from "@kubernetes/client-node";
import { expect, inject, test } from "vitest";
import type { LeaseOptions } from "../../service/runtime/kubernetes/lease.ts";
import { labels } from "../../service/runtime/kubernetes/names.ts";
import { folder } from "../service/command.ts";
import { clientsOf, onCluster, ownCluster } from "./clusters.ts";

const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];

type Other = Awaited<ReturnType<typeof ownCluster>>;

/** A service with the cluster of the tests for `ams`, and another one for `iad`. */
async function onTwo(other: Other, { lease, ...more }: { readonly data?: string; readonly lease?: LeaseOptions } = {}) {
  const clusters = [
    { regions: ["ams"], kubeconfig: inject("kubeconfig") },
    { regions: ["iad"], kubeconfig: other.kubeconfig },
  ];
  const app = await onCluster({ runtime: { clusters, ...(lease ? { lease } : {}) }, ...more });
  const { core } = clientsOf(other.kubeconfig);
  const named = (items: readonly { metadata?: { labels?: Record<string, string> } }[], label: string) =>
    items.map(({ metadata }) => metadata?.labels?.[label]);
  const podsThere = async () => (await core.listPodForAllNamespaces(app.selector)).items;
  return {
    ...app,
    podsThere,
    /** The Machines that have a Pod in the cluster of `iad`. */
    there: async () => named(await podsThere(), labels.machine),
    /** The Machines that have a Pod in the cluster of `ams`. */
    here: async () => named(await app.pods(), labels.machine),
    /** The volumes that the cluster of `iad` has. */
    volumesThere: async () =>
      named((await core.listPersistentVolumeClaimForAllNamespaces(app.selector)).items, labels.volume),
  };
}

const down = (other: Other) => other.ask("kube-apiserver", "kill");

async function up(other: Other): Promise<void> {
  other.ask("kube-apiserver", "start");
  await other.untilReady();
}

test("each Machine runs in the cluster of its region, of which all nodes are in that region", async () => {
  const other = await ownCluster();
  const app = await onTwo(other);
  const [ams, iad] = [await app.create({ services }), await app.create({ services }, { region: "iad" })];
  for (const id of [ams, iad]) await app.reaches(id, "started");
  expect([await app.here(), await app.there()]).toEqual([[ams], [iad]]);
  const refused = await app.call("POST", app.machines, { config: { image: "nginx" }, region: "sin" });
  expect(refused).toMatchObject({ status: 422, body: { error: "could not find a candidate host" } });
  await app.call("DELETE", "/apps/web?force=true");
  await expect.poll(async () => [await app.here(), await app.there(), await app.left()]).toEqual([[], [], []]);
});

test("a volume stays in its cluster, and a copy in another one is refused", async () => {
  const other = await ownCluster();
  const app = await onTwo(other);
  const { id } = await app.volume({ size_gb: 1, region: "iad" });
  await expect.poll(app.volumesThere).toEqual([id]);
  const copy = { name: "data", region: "ams", source_volume_id: id };
  expect(await app.call("POST", "/apps/web/volumes", copy)).toMatchObject({
    status: 400,
    body: {
      error: `invalid source_volume_id, got "${id}", the cluster of region ams cannot copy a volume of region iad`,
    },
  });
});

test("while a cluster is down, other regions work, and what was asked of it is done afterwards", async () => {
  const other = await ownCluster();
  const app = await onTwo(other);
  const { id: volume } = await app.volume({ size_gb: 1, region: "iad" });
  const [kept, stopped] = [
    await app.create({ services }, { region: "iad" }),
    await app.create({ services }, { region: "iad" }),
  ];
  for (const id of [kept, stopped]) await app.reaches(id, "started");
  await expect.poll(app.volumesThere).toEqual([volume]);
  down(other);
  await app.post(stopped, "stop");
  await app.call("DELETE", `/apps/web/volumes/${volume}`);
  const ams = await app.create({ services });
  await app.reaches(ams, "started");
  await app.post(ams, "stop");
  await app.reaches(ams, "stopped");
  expect(await app.state(kept)).toBe("started");
  expect(await app.state(stopped)).toBe("stopping");
  await up(other);
  await app.reaches(stopped, "stopped");
  expect(await app.there()).toEqual([kept]);
});

test("a service starts while one of its clusters is down, and continues there once it is up", async () => {
  const other = await ownCluster();
  const data = folder();
  const before = await onTwo(other, { data });
  const iad = await before.create({ services }, { region: "iad" });
  await before.reaches(iad, "started");
  const first = (await before.podsThere())[0]?.metadata?.uid;
  expect(first).toBeDefined();
  await before.close();
  down(other);
  const app = await onTwo(other, { data });
  const ams = await app.create({ services });
  await app.reaches(ams, "started");
  await app.post(iad, "restart");
  await up(other);
  // The simulation of the nodes does not always find the cluster again, so the Pod need not run.
  await expect
    .poll(async () => {
      const uids = (await app.podsThere()).map(({ metadata }) => metadata?.uid);
      return uids.length === 1 && uids[0] !== first;
    })
    .toBe(true);
  expect([await app.here(), await app.there()]).toEqual([[ams], [iad]]);
});

test("the lease of a cluster outlasts an outage in which it cannot be renewed, and is held in the others", async () => {
  const other = await ownCluster();
  const lost: string[] = [];
  const lease = { name: "several", holder: "here", lost: (reason: string) => void lost.push(reason) };
  const app = await onTwo(other, { lease });
  const renewed = async (kubeconfig: string): Promise<number> => {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const held = { name: lease.name, namespace: "default" };
    const { spec } = await config.makeApiClient(CoordinationV1Api).readNamespacedLease(held);
    return Date.parse(JSON.parse(JSON.stringify(spec?.renewTime ?? "")));
  };
  const begun = await renewed(other.kubeconfig);
  down(other);
  // A service with one cluster gives up after ten seconds.
  await expect.poll(() => renewed(inject("kubeconfig")), { interval: 500 }).toBeGreaterThan(begun + 12_000);
  await up(other);
  await expect.poll(() => renewed(other.kubeconfig), { interval: 500 }).toBeGreaterThan(begun);
  const id = await app.create({ services }, { region: "iad" });
  await expect.poll(app.there).toEqual([id]);
  expect(lost).toEqual([]);
});

test("a service whose clusters are all down does not start", async () => {
  const other = await ownCluster();
  down(other);
  const clusters = [{ regions: ["iad"], kubeconfig: other.kubeconfig }];
  await expect(onCluster({ runtime: { clusters } })).rejects.toThrow(/^no Kubernetes cluster answers at https:/);
});
