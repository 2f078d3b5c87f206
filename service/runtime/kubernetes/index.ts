// The Kubernetes runtime for a service: `createService({ runtime: await kubernetesRuntime() })`.
import { setTimeout as sleep } from "node:timers/promises";
import { untilSure } from "../fence.ts";
import { Reconciler } from "../reconciler/reconciler.ts";
import { RegionalRuntime } from "../regionalRuntime.ts";
import type { Log, Runtime, RuntimeFactory, RuntimeHost } from "../runtime.ts";
import { newPause } from "../steps.ts";
import { Cluster, ClusterError, reasonOf } from "./cluster.ts";
import { Lease, type LeaseOptions } from "./lease.ts";
import { certificateGroup } from "./names.ts";
import { KubernetesDriver, type KubernetesOptions } from "./kubernetesDriver.ts";

export { Cluster, ClusterError };
export { holderOf } from "./lease.ts";

/** A cluster that has some regions. */
export interface RegionalCluster {
  readonly regions: readonly string[];
  /** Its configuration, with the context to use. */
  readonly kubeconfig: string;
}

/** Options of the runtime. */
export interface KubernetesRuntimeOptions extends Omit<KubernetesOptions, "onlyRegion"> {
  /** The lease to hold while the service acts. Default: none. */
  readonly lease?: LeaseOptions;
  /** The cluster of all regions. Default: that of `KUBECONFIG`. */
  readonly cluster?: Cluster;
  /** The clusters of the regions, instead. */
  readonly clusters?: readonly RegionalCluster[] | undefined;
}

/**
 * Connects to Kubernetes clusters, and returns a runtime that runs each Machine as a Pod of one. With `lease`, it waits until it
 * holds this lease in each cluster that answers, and gives it back when the service is closed. Others are connected when they answer.
 * @throws ClusterError if no cluster answers.
 */
export async function kubernetesRuntime({
  lease,
  cluster,
  clusters,
  ...options
}: KubernetesRuntimeOptions = {}): Promise<RuntimeFactory> {
  if (!clusters) {
    const connection = new Connection(cluster ?? Cluster.of(), lease);
    await connection.cluster.connect();
    if (options.clusterIssuer !== undefined && !connection.cluster.has(certificateGroup))
      throw new ClusterError(
        "--certificates cert-manager needs cert-manager, which the cluster does not have (cert-manager.io/v1)",
      );
    // Only now: a service that cannot start must not take the lease.
    await connection.open();
    return (host) => connection.runtime(host, options);
  }
  const outlasting = lease && { ...lease, outlastsOutages: true };
  const connections = clusters.map(({ regions, kubeconfig }) => ({
    regions,
    connection: new Connection(Cluster.of(kubeconfig), outlasting),
  }));
  const opened = await Promise.allSettled(connections.map(({ connection }) => connection.open()));
  const [failed] = opened.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  if (opened.every(({ status }) => status === "rejected")) throw failed;
  return (host) =>
    new RegionalRuntime(
      host,
      connections.map(({ regions, connection }) => ({
        regions,
        runtime: (part) =>
          connection.runtime(part, { ...options, onlyRegion: regions.length === 1 ? regions[0] : undefined }),
      })),
    );
}

/** The connection to a cluster. */
class Connection {
  readonly cluster: Cluster;
  readonly #wanted: LeaseOptions | undefined;
  #opened: Promise<Lease | undefined> | undefined;

  constructor(cluster: Cluster, wanted: LeaseOptions | undefined) {
    this.cluster = cluster;
    this.#wanted = wanted;
  }

  /**
   * Connects once, and waits for the lease.
   * @throws ClusterError if the cluster does not answer.
   */
  open(): Promise<Lease | undefined> {
    this.#opened ??= this.#open();
    this.#opened.catch(() => (this.#opened = undefined));
    return this.#opened;
  }

  async #open(): Promise<Lease | undefined> {
    const [cluster, wanted] = [this.cluster, this.#wanted];
    await cluster.connect();
    return (
      wanted &&
      (await Lease.take(cluster, wanted).catch((error: unknown) => {
        throw new ClusterError(
          `the lease ${wanted.name} of the Kubernetes cluster cannot be taken: ${reasonOf(error)}`,
        );
      }))
    );
  }

  runtime(host: RuntimeHost, options: KubernetesOptions): Runtime {
    const cluster = this.cluster;
    const connected = (closed: AbortSignal): Promise<Lease | undefined> => this.#untilOpen(closed, host.log);
    return new Reconciler(host, (reports) => {
      cluster.fence.unsure = untilSure(host, reports.closed, new ClusterError("the service closes"));
      return new KubernetesDriver(cluster, host, reports, options, connected);
    });
  }

  /** Connects as soon as the cluster answers. */
  async #untilOpen(closed: AbortSignal, log: Log): Promise<Lease | undefined> {
    const pause = newPause();
    while (!closed.aborted)
      try {
        return await this.open();
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, "a Kubernetes cluster does not answer; it is tried again");
        await sleep(pause(), undefined, { signal: closed }).catch(() => {});
      }
    return undefined;
  }
}
