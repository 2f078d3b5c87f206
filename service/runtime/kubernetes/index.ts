// The Kubernetes runtime for a service: `createService({ runtime: await kubernetesRuntime() })`.
import { Reconciler } from "../reconciler/reconciler.ts";
import type { RuntimeFactory } from "../runtime.ts";
import { Cluster, ClusterError, reasonOf } from "./cluster.ts";
import { Lease, type LeaseOptions } from "./lease.ts";
import { KubernetesDriver, type KubernetesOptions } from "./kubernetesDriver.ts";

export { ClusterError };
export { holderOf } from "./lease.ts";

/**
 * Connects to a Kubernetes cluster, and returns a runtime that runs each Machine as a Pod of it. With `lease`, it waits until it
 * holds this lease, which it gives back when the service is closed.
 * @throws ClusterError if no cluster answers.
 */
export async function kubernetesRuntime({
  lease: wanted,
  ...options
}: KubernetesOptions & { readonly lease?: LeaseOptions } = {}): Promise<RuntimeFactory> {
  const cluster = await Cluster.connect();
  const lease =
    wanted &&
    (await Lease.take(cluster, wanted).catch((error: unknown) => {
      throw new ClusterError(`the lease ${wanted.name} of the Kubernetes cluster cannot be taken: ${reasonOf(error)}`);
    }));
  return (host) => {
    cluster.fence.unsure = () => host.unsure;
    return new Reconciler(host, (reports) => new KubernetesDriver(cluster, host, reports, options, lease));
  };
}
