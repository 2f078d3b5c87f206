// A service whose Machines are Pods of the tests' cluster.
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import {
  ApiException,
  CoreV1Api,
  DiscoveryV1Api,
  KubeConfig,
  NetworkingV1Api,
  PolicyV1Api,
  StorageV1Api,
} from "@kubernetes/client-node";
import { expect, inject } from "vitest";
import type { ServiceOptions } from "../../service/index.ts";
import { kubernetesRuntime, type KubernetesRuntimeOptions } from "../../service/runtime/kubernetes/index.ts";

import { labels, namespaceOf, selectorOf } from "../../service/runtime/kubernetes/names.ts";
import { onRuntime } from "../runtime/runtimes.ts";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { addNodes } from "./nodes.ts";
import { afterThisTest } from "../support/leftovers.ts";

/** The clients of a cluster. */
export function clientsOf(kubeconfig: string) {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  return {
    core: config.makeApiClient(CoreV1Api),
    discovery: config.makeApiClient(DiscoveryV1Api),
    networking: config.makeApiClient(NetworkingV1Api),
    storage: config.makeApiClient(StorageV1Api),
    policy: config.makeApiClient(PolicyV1Api),
  };
}

/** Has a Pod evicted, as `kubectl drain` does it; false if a budget does not allow that now. */
export async function evict(
  { core }: Pick<ReturnType<typeof clientsOf>, "core">,
  name: string,
  namespace: string,
): Promise<boolean> {
  try {
    await core.createNamespacedPodEviction({ name, namespace, body: { metadata: { name, namespace } } });
    return true;
  } catch (error) {
    if (error instanceof ApiException && error.code === 429) return false;
    throw error;
  }
}

/** A cluster of this test alone, with simulated nodes. */
export async function ownCluster() {
  const { found } = await clusterPrograms(process.env);
  const cluster = await startCluster(found ?? {});
  afterThisTest(() => cluster.remove());
  await addNodes(cluster.kubeconfig, 1);
  return { ...cluster, ...outagesOf(cluster) };
}

/** Ends a cluster's API server with its etcd, and restores them from a backup. */
export function outagesOf(cluster: Awaited<ReturnType<typeof startCluster>>) {
  const [data, backup] = [`${cluster.folder}/etcd`, `${cluster.folder}/backup`];
  const ask = (what: "kill" | "start", ...names: string[]) => names.forEach((name) => cluster.ask(name, what));
  // etcd locks its file while it runs.
  const isLocked = () => spawnSync("flock", ["--nonblock", `${data}/member/snap/db`, "true"]).status !== 0;
  async function down(): Promise<void> {
    ask("kill", "kube-apiserver", "etcd");
    await expect.poll(isLocked).toBe(false);
  }
  async function up(): Promise<void> {
    ask("start", "etcd", "kube-apiserver");
    await cluster.untilReady();
  }
  return {
    /** Ends the API server. */
    down,
    /** Starts it again. */
    up,
    /** Keeps what etcd has now; the API server is not there meanwhile. */
    async backUp(): Promise<void> {
      await down();
      cpSync(data, backup, { recursive: true });
      await up();
    },
    /** Gives etcd what it had at the backup, and restarts the other programs, as Kubernetes asks for after a restore. */
    async restore(): Promise<void> {
      await down();
      rmSync(data, { recursive: true });
      cpSync(backup, data, { recursive: true });
      await up();
      const others = ["kube-scheduler", "kube-controller-manager", "kwok"];
      ask("kill", ...others);
      ask("start", ...others);
    },
  };
}

/** A service with an App `web` on a cluster. What it leaves there is removed after the test. */
export async function onCluster({
  kubeconfig = inject("kubeconfig"),
  runtime,
  ...options
}: Omit<ServiceOptions, "runtime"> & {
  readonly kubeconfig?: string;
  readonly runtime?: KubernetesRuntimeOptions;
} = {}) {
  process.env["KUBECONFIG"] = kubeconfig;
  const clients = clientsOf(kubeconfig);
  const app = await onRuntime({ runtime: await kubernetesRuntime(runtime), ...options });
  const dataId = app.dataId();
  const selector = { labelSelector: selectorOf(dataId) };
  afterThisTest(async () => {
    const { items } = await clients.core.listNamespace(selector);
    for (const { metadata } of items)
      if (metadata?.deletionTimestamp === undefined)
        await clients.core.deleteNamespace({ name: metadata?.name ?? "" }).catch(() => {});
  });
  return {
    ...app,
    ...clients,
    selector,
    /** The namespace of the network of the App `web`. */
    namespace: namespaceOf(dataId, "personal/default"),
    create: (config: object = {}, more: object = {}) => app.create({ image: "example/app:1", ...config }, more),
    /** The Pods of a Machine, or all. */
    pods: async (machine?: string) => {
      const { items } = await clients.core.listPodForAllNamespaces(selector);
      return items.filter(({ metadata }) => machine === undefined || metadata?.labels?.[labels.machine] === machine);
    },
    /** Everything that is left in the cluster, as `Kind name`. */
    left: async (): Promise<string[]> => {
      const { core, discovery, networking, policy } = clients;
      const lists = await Promise.all([
        core.listPodForAllNamespaces(selector),
        core.listSecretForAllNamespaces(selector),
        core.listServiceForAllNamespaces(selector),
        core.listPersistentVolumeClaimForAllNamespaces(selector),
        core.listNamespace(selector),
        discovery.listEndpointSliceForAllNamespaces(selector),
        networking.listIngressForAllNamespaces(selector),
        networking.listNetworkPolicyForAllNamespaces(selector),
        policy.listPodDisruptionBudgetForAllNamespaces(selector),
      ]);
      return lists.flatMap(({ kind, items }) => items.map(({ metadata }) => `${kind} ${metadata?.name}`));
    },
  };
}
