// Once per run: a Kubernetes cluster with simulated nodes in five regions, and a real one in another if this computer can run it.
import type { TestProject } from "vitest/node";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { Stop } from "../../tools/lib/process.mjs";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { nodeProblem, nodePrograms } from "../../tools/setup/kubernetesNode.mjs";
import { provideInstalled } from "../support/install.ts";
import { addNodes, addRealNode, realRegion } from "./nodes.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The configuration file of the cluster of the tests. */
    readonly kubeconfig: string;
    /** Whether it has a node that really runs Pods. */
    readonly hasRealNode: boolean;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { found, reason } = await clusterPrograms(process.env);
  if (found === undefined) throw new Stop(`The tests on Kubernetes need a cluster: ${reason}.`);
  const cluster = await startCluster(found);
  try {
    await addNodes(cluster.kubeconfig);
    const uninstall = provideInstalled(project);
    const problem = (await nodeProblem()) ?? (await nodePrograms(process.env)).reason;
    if (problem !== undefined) leaveOut("Pods that really run", problem);
    const node = problem === undefined ? await addRealNode(cluster, realRegion) : undefined;
    project.provide("kubeconfig", cluster.kubeconfig);
    project.provide("hasRealNode", node !== undefined);
    return async () => {
      await uninstall();
      await node?.remove();
      await cluster.remove();
    };
  } catch (error) {
    await cluster.remove();
    throw error;
  }
}
