// How an ACME authority reaches this service: for each open challenge, an Ingress leads one path of the hostname to it.
import { isIP, isIPv6 } from "node:net";
import type { V1Ingress } from "@kubernetes/client-node";
import { withResolvers, type Resolvers } from "../../withResolvers.ts";
import { challengeFolder, type ChallengeRoutes } from "../certificateIssuer.ts";
import type { RuntimeHost } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { ofCluster, type Cluster } from "./cluster.ts";
import { hashOf, kinds, labels, selectorOf } from "./names.ts";
import { Watched } from "./watched.ts";

/** Where the cluster reaches this service; `proxies` if those answer an authority (proxy/serviceLink.ts). */
export type ChallengeTarget = ChallengePlace | "proxies";

/** An address of this service. */
export interface ChallengePlace {
  /** A Service in the namespace of this service, or an IP address outside of the cluster. */
  readonly host: string;
  readonly port: number;
}

/** Proxies ask the service for each answer, so nothing has to be opened. */
export const throughProxies: ChallengeRoutes = { open: () => Promise.resolve(() => {}) };

interface Open {
  readonly hostname: string;
  readonly token: string;
  /** Resolves once the cluster has all objects. */
  readonly applied: Resolvers;
}

/** The Ingresses of open challenges. They are in the namespace of this service, where the Service is that they lead to. */
export class Challenges implements ChallengeRoutes {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #target: ChallengePlace | undefined;
  readonly #ingressClass: string | undefined;
  readonly #ingresses: Watched<V1Ingress>;
  readonly #steps: Steps;
  /** By the names of their Ingresses. */
  readonly #open = new Map<string, Open>();

  constructor(
    cluster: Cluster,
    host: RuntimeHost,
    target: ChallengePlace | undefined,
    ingressClass: string | undefined,
  ) {
    this.#cluster = cluster;
    this.#host = host;
    this.#target = target;
    this.#ingressClass = ingressClass;
    const selector = `${selectorOf(host.dataId)},${labels.challenge}`;
    this.#ingresses = new Watched<V1Ingress>(cluster, kinds.ingress, selector, host.log, ({ metadata }) =>
      this.#steps.changed(metadata?.name ?? ""),
    );
    this.#steps = new Steps(host, { ...ofCluster, kind: "challenge", step: (name) => this.#step(name) });
  }

  begin(): Promise<void> {
    return this.#ingresses.begin();
  }

  /** Removes what an earlier run has left: its challenges are no longer open. */
  lookAtAll(): void {
    for (const { metadata } of this.#ingresses.all()) this.#steps.changed(metadata?.name ?? "");
  }

  async close(): Promise<void> {
    await this.#ingresses.close();
    await this.#steps.close();
  }

  async open(hostname: string, token: string, signal: AbortSignal): Promise<() => void> {
    const name = `acme-${hashOf(token)}`;
    const applied = withResolvers();
    const close = (): void => {
      this.#open.delete(name);
      this.#steps.changed(name);
    };
    const abort = (): void => applied.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    this.#open.set(name, { hostname, token, applied });
    this.#steps.changed(name);
    try {
      await applied.promise;
      return close;
    } catch (error) {
      close();
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  async #step(name: string): Promise<boolean> {
    const open = this.#open.get(name);
    const found = this.#ingresses.all().find(({ metadata }) => metadata?.name === name);
    if (!open) {
      if (found) await this.#cluster.delete(kinds.ingress, found.metadata);
      return false;
    }
    if (!found) await this.#cluster.apply(this.#ingressOf(name, open));
    else {
      await this.#reachOutside(name, found);
      open.applied.resolve();
    }
    return false;
  }

  /** A Service inside of the cluster that leads to the address of this service outside. The cluster deletes it with its Ingress. */
  async #reachOutside(name: string, { metadata }: V1Ingress): Promise<void> {
    const { host = "", port = 0 } = this.#target ?? {};
    if (isIP(host) === 0) return;
    const { namespace, labels: marks = {}, uid = "" } = metadata ?? {};
    const ownerReferences = [{ apiVersion: kinds.ingress.apiVersion, kind: kinds.ingress.kind, name, uid }];
    const owned = { name, namespace, ownerReferences };
    await this.#cluster.apply({
      apiVersion: "v1",
      kind: "Service",
      metadata: { ...owned, labels: marks },
      spec: { ports: [{ name: "http", port, protocol: "TCP" }] },
    } as object);
    await this.#cluster.apply({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        ...owned,
        labels: {
          ...marks,
          "kubernetes.io/service-name": name,
          "endpointslice.kubernetes.io/managed-by": "machines-service",
        },
      },
      addressType: isIPv6(host) ? "IPv6" : "IPv4",
      endpoints: [{ addresses: [host], conditions: { ready: true, serving: true } }],
      ports: [{ name: "http", port, protocol: "TCP" }],
    } as object);
  }

  #ingressOf(name: string, { hostname, token }: Open): V1Ingress {
    const { host = "", port: number = 0 } = this.#target ?? {};
    const service = { name: isIP(host) === 0 ? host : name, port: { number } };
    const paths = [{ path: challengeFolder + token, pathType: "Exact", backend: { service } }];
    return {
      apiVersion: kinds.ingress.apiVersion,
      kind: kinds.ingress.kind,
      metadata: {
        name,
        namespace: this.#cluster.namespace,
        labels: { [labels.data]: this.#host.dataId, [labels.challenge]: "true" },
      },
      spec: {
        ...(this.#ingressClass === undefined ? {} : { ingressClassName: this.#ingressClass }),
        rules: [{ host: hostname, http: { paths } }],
      },
    };
  }
}
