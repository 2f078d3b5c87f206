// Once per run: a Kubernetes cluster with simulated nodes in five regions, and a real one in another if this computer can run it. For
// its Pods, an ingress controller is built.
import type { TestProject } from "vitest/node";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { Stop } from "../../tools/lib/process.mjs";
import { controllerProgram } from "../../tools/setup/ingressController.mjs";
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
    /** The program of the ingress controller; undefined without a real node. */
    readonly ingressController: string | undefined;
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
    project.provide("ingressController", node && (await ingressController()));
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

/** The program of the ingress controller; undefined if it cannot be built. */
async function ingressController(): Promise<string | undefined> {
  const { program, reason } = await controllerProgram(process.env);
  if (reason !== undefined) leaveOut("requests through an ingress controller", reason);
  return program;
}
