// The nodes of a cluster: simulated ones, and real ones.
import { KubeConfig, CoreV1Api } from "@kubernetes/client-node";
import { regionLabel } from "../../service/runtime/kubernetes/names.ts";
import { nodePrograms, startNode } from "../../tools/setup/kubernetesNode.mjs";
import { image, nextImage } from "../runtime/image.ts";
import { archiveOfImage, configOfImage } from "../runtime/imageArchive.ts";
import { archiveOfShells, hasShells } from "../runtime/shellFiles.ts";
import { archiveOfService, configOfService, serviceImage } from "./serviceImage.ts";

/** The regions that have nodes. */
export const regions = ["ams", "iad", "sin", "syd", "gru"] as const;

/** The region of the real node in the cluster of the tests. */
export const realRegion = "fra";

/** An image with real shells, which the real node has. */
export const shellsOnNode = "machines-test/shells:1";

/** Adds nodes to a cluster: some in each region. */
export async function addNodes(kubeconfig: string, perRegion = 3): Promise<void> {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const core = config.makeApiClient(CoreV1Api);
  const room = { cpu: "64", memory: "256Gi", pods: "250" };
  for (const region of regions)
    for (let i = 0; i < perRegion; i++) {
      const name = `${region}-${i}`;
      const labels = { [regionLabel]: region, "kubernetes.io/hostname": name, type: "kwok" };
      await core.createNode({ body: { metadata: { name, labels }, status: { allocatable: room, capacity: room } } });
    }
}

/** Adds a node that runs the image of the tests. Each real node of this computer needs a name of its own, of 127.0.0.0/8. */
export async function addRealNode(
  cluster: { readonly kubeconfig: string; readonly services: string },
  region: string,
  disks: string[],
  name = "127.0.0.1",
) {
  const { found = {} } = await nodePrograms(process.env);
  const featureGates = { ContainerStopSignals: true };
  const node = await startNode(cluster, { found, name, labels: { [regionLabel]: region }, featureGates, disks });
  const archive = await archiveOfImage();
  for (const each of [image, nextImage]) await node.importImage(each, archive, configOfImage(each));
  await node.importImage(serviceImage, await archiveOfService(), configOfService);
  if (hasShells)
    await node.importImage(shellsOnNode, await archiveOfShells(), {
      ...{ Cmd: ["/bin/sleep", "1000000"], Env: ["PATH=/bin"], WorkingDir: "/work" },
    });
  return node;
}
