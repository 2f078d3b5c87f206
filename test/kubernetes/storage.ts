// What a driver does for the volumes of a cluster: it provides a disk for each claim, and completes snapshots.
import {
  ApiextensionsV1Api,
  ApisApi,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  StorageV1Api,
  type V1ObjectMeta,
} from "@kubernetes/client-node";
import { expect } from "vitest";
import { afterThisTest } from "../support/leftovers.ts";

const snapshots = { group: "snapshot.storage.k8s.io", version: "v1", plural: "volumesnapshots" };

const configOf = (kubeconfig: string): KubeConfig => {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  return config;
};

/** Gives a cluster a class of disks that can grow, and snapshots of them. */
export async function addStorage(kubeconfig: string): Promise<void> {
  await configOf(kubeconfig)
    .makeApiClient(StorageV1Api)
    .createStorageClass({
      body: {
        metadata: { name: "disks", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
        provisioner: "tests",
        allowVolumeExpansion: true,
      },
    });
  const { group, version, plural } = snapshots;
  await configOf(kubeconfig)
    .makeApiClient(ApiextensionsV1Api)
    .createCustomResourceDefinition({
      body: {
        metadata: {
          name: `${plural}.${group}`,
          annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter" },
        },
        spec: {
          group,
          scope: "Namespaced",
          names: { plural, singular: "volumesnapshot", kind: "VolumeSnapshot" },
          versions: [
            {
              name: version,
              served: true,
              storage: true,
              subresources: { status: {} },
              schema: {
                openAPIV3Schema: {
                  type: "object",
                  properties: {
                    spec: { type: "object", x_kubernetes_preserve_unknown_fields: true },
                    status: { type: "object", x_kubernetes_preserve_unknown_fields: true },
                  },
                },
              },
            },
          ],
        },
      },
    });
  const apis = configOf(kubeconfig).makeApiClient(ApisApi);
  await expect.poll(async () => (await apis.getAPIVersions()).groups.map(({ name }) => name)).toContain(group);
}

/** Snapshots as the API has them. */
export interface Snapshot {
  readonly metadata: V1ObjectMeta;
  readonly spec: { readonly source: { readonly persistentVolumeClaimName: string } };
  readonly status?: { readonly readyToUse?: boolean };
}

/** Provides disks until the test ends. Snapshots are complete once `complete` is called. */
export function provideDisks(kubeconfig: string) {
  const config = configOf(kubeconfig);
  const core = config.makeApiClient(CoreV1Api);
  const custom = config.makeApiClient(CustomObjectsApi);
  const ended = new AbortController();
  const snapshotsOf = async (): Promise<readonly Snapshot[]> => {
    const found: unknown = await custom.listCustomObjectForAllNamespaces({
      ...snapshots,
      resourcePlural: snapshots.plural,
    });
    return (found as { readonly items: readonly Snapshot[] }).items;
  };
  const provide = async (): Promise<void> => {
    const claims = (await core.listPersistentVolumeClaimForAllNamespaces()).items;
    for (const { metadata, spec, status } of claims) {
      const { name = "", namespace = "", uid = "" } = metadata ?? {};
      if (status?.phase !== "Pending" || spec?.volumeName !== undefined) continue;
      const disk = {
        metadata: { name: `disk-${uid}` },
        spec: {
          capacity: { storage: spec?.resources?.requests?.["storage"] ?? "" },
          accessModes: ["ReadWriteOnce"],
          storageClassName: spec?.storageClassName ?? "",
          persistentVolumeReclaimPolicy: "Retain",
          hostPath: { path: `/disks/${uid}` },
          claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid },
        },
      };
      await core.createPersistentVolume({ body: disk }).catch(() => {});
    }
  };
  const providing = (async () => {
    while (!ended.signal.aborted) {
      await provide().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  afterThisTest(async () => {
    ended.abort();
    await providing;
  });
  return {
    snapshots: snapshotsOf,
    /** Completes all snapshots. */
    async complete(): Promise<void> {
      for (const { metadata } of await snapshotsOf())
        await custom.patchNamespacedCustomObjectStatus(
          {
            ...snapshots,
            namespace: metadata.namespace ?? "",
            name: metadata.name ?? "",
            body: { status: { readyToUse: true, restoreSize: "1Gi" } },
          },
          setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
        );
    },
  };
}
