// The namespaces of a cluster: one for each network of Apps. Pods of other namespaces cannot reach its Machines.
import type { V1Namespace } from "@kubernetes/client-node";
import { Impossible } from "../reconciler/driver.ts";
import type { RuntimeHost } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { ofCluster, type Cluster } from "./cluster.ts";
import { annotations, formerNamespaceOf, kinds, labels, namespaceOf, organizationLabel, selectorOf } from "./names.ts";
import { Watched } from "./watched.ts";

/** The namespaces of a service. */
export class Namespaces {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #watched: Watched<V1Namespace>;
  readonly #steps: Steps;
  /** Those whose policy this run has applied. */
  readonly #ready = new Set<string>();

  /** `isUsed` says whether a namespace has, or will have, Machines or volumes. */
  constructor(cluster: Cluster, host: RuntimeHost, isUsed: (namespace: string) => boolean) {
    this.#cluster = cluster;
    this.#host = host;
    this.#watched = new Watched<V1Namespace>(
      cluster,
      kinds.namespace,
      selectorOf(host.dataId),
      host.log,
      ({ metadata }, isGone) => {
        if (isGone) this.#ready.delete(metadata?.name ?? "");
      },
    );
    this.#steps = new Steps(host, {
      ...ofCluster,
      kind: "namespace",
      step: async (name) => {
        const found = this.#watched.get(name);
        if (!found || found.metadata?.deletionTimestamp !== undefined || isUsed(name)) return false;
        this.#ready.delete(name);
        await cluster.delete(kinds.namespace, found.metadata);
        return false;
      },
    });
  }

  begin(): Promise<void> {
    return this.#watched.begin();
  }

  /** Continues with what was interrupted. */
  lookAtAll(): void {
    for (const { metadata } of this.#watched.all()) this.changed(metadata?.name ?? "");
  }

  async close(): Promise<void> {
    await this.#watched.close();
    await this.#steps.close();
  }

  /** The namespace of a network. One that an earlier version has created keeps its name until it is gone. */
  nameOf(network: string): string {
    const { dataId } = this.#host;
    const former = formerNamespaceOf(dataId, network);
    return this.#networkOf(former) === network ? former : namespaceOf(dataId, network);
  }

  /** The network of a namespace; undefined if there is none. */
  #networkOf(name: string): string | undefined {
    return this.#watched.get(name)?.metadata?.annotations?.[annotations.network];
  }

  /** Whether a namespace exists and is not being deleted. */
  has(name: string): boolean {
    const found = this.#watched.get(name);
    return found !== undefined && found.metadata?.deletionTimestamp === undefined;
  }

  /** A Machine or volume of the namespace is gone. */
  changed(namespace: string): void {
    this.#steps.changed(namespace);
  }

  /**
   * The namespace of a network; it is created if needed.
   * @throws Impossible if it is that of another network.
   */
  async ensure(network: string): Promise<string> {
    const name = this.nameOf(network);
    if (this.#watched.get(name) && this.#networkOf(name) !== network)
      throw new Impossible(`the cluster has a namespace ${name}, which is not that of its App`);
    // One that is being deleted refuses new objects, until it is gone and this creates another.
    if (this.#ready.has(name) && this.#watched.get(name)) return name;
    const managed = { [labels.data]: this.#host.dataId };
    // A network belongs to an organization (lifecycle/appSubject.ts); the Postgres clusters of this one let its Machines in.
    const organization = { [labels.organization]: organizationLabel(network.split("/", 1)[0] ?? "") };
    await this.#cluster.apply({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, labels: { ...managed, ...organization }, annotations: { [annotations.network]: network } },
    });
    await this.#cluster.apply(policyOf(name, managed));
    this.#ready.add(name);
    return name;
  }
}

/**
 * Lets Machines reach each other, and whatever they want outside. From elsewhere, only what a service offers is reached: the cluster's
 * own ways in are in other namespaces, so those that are no network of Apps may connect.
 */
const policyOf = (namespace: string, managed: Record<string, string>) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "machines", namespace, labels: managed },
  spec: {
    podSelector: {},
    policyTypes: ["Ingress"],
    ingress: [
      {
        from: [
          { podSelector: {} },
          { namespaceSelector: { matchExpressions: [{ key: labels.data, operator: "DoesNotExist" }] } },
        ],
      },
    ],
  },
});
