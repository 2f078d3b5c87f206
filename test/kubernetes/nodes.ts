// The simulated nodes of a cluster.
import { KubeConfig, CoreV1Api } from "@kubernetes/client-node";
import { regionLabel } from "../../service/runtime/kubernetes/names.ts";

/** The regions that have nodes. */
export const regions = ["ams", "iad", "sin", "syd", "gru"] as const;

/** The region of the node that really runs Pods. */
export const realRegion = "fra";

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
