// Once per run: a Kubernetes cluster with simulated nodes in five regions, and a real one in another if this computer can run it.
import type { TestProject } from "vitest/node";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { Stop } from "../../tools/lib/process.mjs";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { nodeProblem, nodePrograms, startNode } from "../../tools/setup/kubernetesNode.mjs";
import { image, nextImage } from "../runtime/image.ts";
import { archiveOfImage, configOfImage } from "../runtime/imageArchive.ts";
import { provideInstalled } from "../support/install.ts";
import { addNodes, realRegion } from "./nodes.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The configuration file of the cluster of the tests. */
    readonly kubeconfig: string;
    /** Whether it has a node that really runs Pods. */
    readonly hasRealNode: boolean;
  }
}

type Cluster = Awaited<ReturnType<typeof startCluster>>;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { found, reason } = await clusterPrograms(process.env);
  if (found === undefined) throw new Stop(`The tests on Kubernetes need a cluster: ${reason}.`);
  const cluster = await startCluster(found);
  try {
    await addNodes(cluster.kubeconfig);
    const uninstall = provideInstalled(project);
    const node = await realNode(cluster);
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

/** A node that runs the image of the tests; undefined if this computer cannot have one. */
async function realNode(cluster: Cluster) {
  const problem = await nodeProblem();
  const { found, reason } = problem === undefined ? await nodePrograms(process.env) : { reason: problem };
  if (found === undefined) {
    leaveOut("Pods that really run", reason ?? "the node cannot be built");
    return undefined;
  }
  const labels = { "topology.kubernetes.io/region": realRegion };
  const node = await startNode(cluster, { found, labels, featureGates: { ContainerStopSignals: true } });
  const archive = await archiveOfImage();
  for (const name of [image, nextImage]) await node.importImage(name, archive, configOfImage(name));
  return node;
}
