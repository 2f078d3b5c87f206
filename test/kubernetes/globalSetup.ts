// Once per run: a Kubernetes cluster with simulated nodes in five regions, and a real one in another if this computer can run it. For
// its Pods, an ingress controller is built.
import type { TestProject } from "vitest/node";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { Stop } from "../../tools/lib/process.mjs";
import { controllerProgram } from "../../tools/setup/ingressController.mjs";
import { clusterPrograms, startCluster } from "../../tools/setup/kubernetes.mjs";
import { diskPrograms, startDisks } from "../../tools/setup/kubernetesDisks.mjs";
import { nodeProblem, nodePrograms } from "../../tools/setup/kubernetesNode.mjs";
import { startServices } from "../../tools/setup/kubernetesServices.mjs";
import { provideInstalled } from "../support/install.ts";
import { addNodes, addRealNode, realRegion } from "./nodes.ts";
import { addOperator, type PostgresCluster } from "./operator.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The configuration file of the cluster of the tests. */
    readonly kubeconfig: string;
    /** Whether it has a node that really runs Pods. */
    readonly hasRealNode: boolean;
    /** The program of the ingress controller; undefined without a real node. */
    readonly ingressController: string | undefined;
    /** The cluster of the tests, if the operator of Postgres clusters runs in it; undefined without a real node. */
    readonly postgres: PostgresCluster | undefined;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const parts: { remove(): Promise<void> }[] = [];
  const removeAll = async () => {
    for (const part of parts) await part.remove();
  };
  try {
    const cluster = await startCluster(await built(clusterPrograms));
    parts.unshift(cluster);
    await addNodes(cluster.kubeconfig);
    const disks = await startDisks(cluster, await built(diskPrograms));
    parts.unshift(disks);
    const problem = (await nodeProblem()) ?? (await nodePrograms(process.env)).reason;
    if (problem !== undefined) leaveOut("Pods that really run, and an ingress controller for them", problem);
    const hasRealNode = problem === undefined;
    let folder = "";
    if (hasRealNode) {
      parts.unshift(await startServices(cluster));
      const node = await addRealNode(cluster, realRegion, disks.forNodes);
      ({ folder } = node);
      parts.unshift(node);
    }
    project.provide("kubeconfig", cluster.kubeconfig);
    project.provide("hasRealNode", hasRealNode);
    project.provide("ingressController", hasRealNode ? await ingressController() : undefined);
    const { operator, reason } = hasRealNode ? await addOperator(cluster, folder) : {};
    if (operator) parts.unshift(operator);
    if (reason !== undefined) leaveOut("Postgres clusters by CloudNativePG", reason);
    const { kubeconfig, services, folder: ofCluster } = cluster;
    project.provide("postgres", operator && { kubeconfig, services, folder: ofCluster });
    parts.unshift({ remove: provideInstalled(project) });
    return removeAll;
  } catch (error) {
    await removeAll();
    throw error;
  }
}

/** Programs that the tests need. */
async function built(programs: typeof clusterPrograms): Promise<Record<string, string>> {
  const { found, reason } = await programs(process.env);
  if (found === undefined) throw new Stop(`The tests on Kubernetes need a cluster: ${reason}.`);
  return found;
}

/** The program of the ingress controller; undefined if it cannot be built. */
async function ingressController(): Promise<string | undefined> {
  const { program, reason } = await controllerProgram(process.env);
  if (reason !== undefined) leaveOut("requests through an ingress controller", reason);
  return program;
}
