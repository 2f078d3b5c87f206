// Once per run: a Kubernetes cluster with nodes in five regions.
import type { TestProject } from "vitest/node";
import { Stop } from "../../tools/lib/process.mjs";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { addNodes } from "./nodes.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The configuration file of the cluster of the tests. */
    readonly kubeconfig: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { found, reason } = await clusterPrograms(process.env);
  if (found === undefined) throw new Stop(`The tests on Kubernetes need a cluster: ${reason}.`);
  const cluster = await startCluster(found);
  await addNodes(cluster.kubeconfig);
  project.provide("kubeconfig", cluster.kubeconfig);
  return () => cluster.remove();
}
