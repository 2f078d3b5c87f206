// How requests reach Machines in a cluster. An App has a Service; each Machine has an EndpointSlice of it, which is ready while the
// Machine is started, not cordoned, and its checks pass. The hostnames of an App lead to the Service by an Ingress.
import { isDeepStrictEqual } from "node:util";
import type { V1EndpointSlice, V1Ingress, V1Service } from "@kubernetes/client-node";
import { numbersOf } from "../ports.ts";
import type { Reports, Routes as OwnRoutes } from "../reconciler/driver.ts";
import type { AppSubject, HostnameCertificate, RuntimeHost, Subject } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { ofCluster, type Cluster } from "./cluster.ts";
import { annotations, hashOf, kinds, labels, machineLabels, serviceName, selectorOf, type Kind } from "./names.ts";
import type { Namespaces } from "./namespaces.ts";
import type { PodOf } from "./podStatus.ts";
import { Watched } from "./watched.ts";

/** A public port of a service. */
interface PublicPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: "TCP" | "UDP";
  /** The port of the Machine. */
  readonly internal: number;
  readonly isHttp: boolean;
}

/** The public ports of a Machine. */
function portsOf({ config }: Subject): PublicPort[] {
  const ports = new Map<string, PublicPort>();
  for (const service of config.services ?? [])
    for (const entry of service.ports ?? [])
      for (const port of numbersOf(entry)) {
        const name = `${service.protocol}-${port}`;
        const protocol = service.protocol === "udp" ? "UDP" : "TCP";
        const isHttp = entry.handlers?.includes("http") === true;
        if (!ports.has(name)) ports.set(name, { name, port, protocol, internal: service.internal_port, isHttp });
      }
  return [...ports.values()];
}

/** Whether an address gets requests. Both are set: some controllers read only the second, and take its absence for a yes. */
const conditionsOf = (isReady: boolean) => ({ ready: isReady, serving: isReady });

/** Machines have no TLS. Traefik would expect it behind port 443. */
const speaksHttp = { "traefik.ingress.kubernetes.io/service.serversscheme": "http" };

const isOpen = (slice: V1EndpointSlice | undefined): boolean => slice?.endpoints?.[0]?.conditions?.ready === true;

/** The fields of an EndpointSlice that follow from the Machine. */
const offerOf = ({ addressType, endpoints, ports }: V1EndpointSlice) => ({
  addressType,
  endpoints: endpoints?.map(({ addresses, conditions }) => ({ addresses, conditions: { ...conditions } })),
  ports: ports?.map(({ name, port, protocol }) => ({ name, port, protocol })),
});

/** The class of those who want no Ingress, because proxies of their own serve the hostnames. */
const noIngress = "none";

/** How a cluster routes. */
export interface RoutesOptions {
  readonly ingressClass: string | undefined;
  /** Milliseconds until those who send requests follow a withdrawal. */
  readonly drainMs: number;
  /** Whether the Pod of a Machine is being ended, perhaps by others, such as `kubectl drain`. */
  readonly isEnding: (machine: string) => boolean;
  /** What else follows from the hostnames and Machines of an App. */
  readonly appChanged: (app: string) => void;
  /** What else follows if an App is gone; the id may be of something else. */
  readonly gone: (id: string) => void;
  /** What else follows from whether a Machine gets requests. */
  readonly machineChanged: (machine: Subject) => void;
}

/** The Services, EndpointSlices and Ingresses of a service. */
export class Routes implements OwnRoutes<PodOf> {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #namespaces: Namespaces;
  readonly #reports: Reports;
  readonly #options: RoutesOptions;
  readonly #slices: Watched<V1EndpointSlice>;
  readonly #services: Watched<V1Service>;
  readonly #ingresses: Watched<V1Ingress>;
  readonly #apps: Steps;
  /** When Machines were withdrawn from requests. */
  readonly #withdrawn = new Map<string, number>();

  constructor(cluster: Cluster, host: RuntimeHost, reports: Reports, namespaces: Namespaces, options: RoutesOptions) {
    this.#cluster = cluster;
    this.#host = host;
    this.#reports = reports;
    this.#namespaces = namespaces;
    this.#options = options;
    const watched = <T extends V1EndpointSlice | V1Service | V1Ingress>(
      kind: Kind,
      label: string,
      seen: (id: string) => void,
    ): Watched<T> =>
      new Watched<T>(cluster, kind, selectorOf(host.dataId), host.log, ({ metadata }) => {
        const id = metadata?.labels?.[label] ?? metadata?.annotations?.[label];
        if (id !== undefined) seen(id);
      });
    const app = (id: string): void => this.#apps.changed(id);
    this.#slices = watched(kinds.slice, labels.machine, (machine) => reports.changed(machine));
    this.#services = watched(kinds.service, annotations.app, app);
    this.#ingresses = watched(kinds.ingress, annotations.app, app);
    this.#apps = new Steps(host, {
      ...ofCluster,
      kind: "app",
      step: async (id) => {
        await this.#step(id);
        return false;
      },
    });
  }

  async begin(): Promise<void> {
    await Promise.all([this.#slices.begin(), this.#services.begin(), this.#ingresses.begin()]);
  }

  /** Looks at all Apps that have a route. */
  lookAtAll(): void {
    for (const { metadata } of [...this.#services.all(), ...this.#ingresses.all()])
      this.#apps.changed(metadata?.annotations?.[annotations.app] ?? "");
  }

  async close(): Promise<void> {
    await Promise.all([this.#slices.close(), this.#services.close(), this.#ingresses.close()]);
    await this.#apps.close();
  }

  /** The Machines or the certificates of an App have changed. */
  appChanged(id: string): void {
    this.#apps.changed(id);
    this.#options.appChanged(id);
  }

  gone(id: string): void {
    // The Machines of a deleted App no longer lead to it, so nothing else would remove what it had.
    if ([...this.#services.all(), ...this.#ingresses.all()].some(isOfApp(id))) this.#apps.changed(id);
    this.#options.gone(id);
  }

  async offer(machine: Subject, { pod }: PodOf, isServing: boolean): Promise<void> {
    const isReady = isServing && !this.#options.isEnding(machine.id);
    this.#options.machineChanged(machine);
    const ports = portsOf(machine);
    const ip = pod.status?.podIP;
    const { name = "", namespace = "", uid = "" } = pod.metadata ?? {};
    if (ports.length === 0 || ip === undefined) return;
    const slice: V1EndpointSlice = {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name,
        namespace,
        labels: {
          ...machineLabels(this.#host.dataId, machine),
          "kubernetes.io/service-name": serviceName(machine.app),
          "endpointslice.kubernetes.io/managed-by": "machines-service",
        },
        // The cluster deletes it with the Pod.
        ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid }],
      },
      addressType: ip.includes(":") ? "IPv6" : "IPv4",
      endpoints: [{ addresses: [ip], conditions: conditionsOf(isReady) }],
      ports: ports.map((port) => ({ name: port.name, port: port.internal, protocol: port.protocol })),
    };
    const before = this.#slices.get(name, namespace);
    const isSame =
      before?.metadata?.ownerReferences?.[0]?.uid === uid && isDeepStrictEqual(offerOf(before), offerOf(slice));
    if (isSame) return;
    await this.#cluster.apply(slice);
    if (!isReady && isOpen(before)) this.#withdrawn.set(machine.id, this.#host.clock.elapsed());
    this.#apps.changed(machine.appId);
  }

  async withdraw(machine: Subject): Promise<void> {
    this.#options.machineChanged(machine);
    const { id, network } = machine;
    const namespace = this.#namespaces.nameOf(network);
    const slice = this.#slices.get(id, namespace);
    if (!slice || !isOpen(slice)) return;
    const { name = "", labels: marks = {}, ownerReferences = [] } = slice.metadata ?? {};
    await this.#cluster.apply({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name, namespace, labels: marks, ownerReferences },
      addressType: slice.addressType,
      endpoints: slice.endpoints?.map(({ addresses }) => ({ addresses, conditions: conditionsOf(false) })),
      ports: slice.ports ?? [],
    } as V1EndpointSlice);
    this.#withdrawn.set(id, this.#host.clock.elapsed());
  }

  drainMs(id: string): number {
    const left =
      (this.#withdrawn.get(id) ?? Number.NEGATIVE_INFINITY) + this.#options.drainMs - this.#host.clock.elapsed();
    return left > 0 && this.#isRelieved(id) ? left : 0;
  }

  /** Whether another Machine of the App takes the requests. Without one, waiting would only make them fail for longer. */
  #isRelieved(id: string): boolean {
    const app = this.#host.app(this.#host.subject(id)?.appId ?? "");
    return (app?.machines ?? []).some((each) => {
      // A large App may be stopped as a whole: only what serves is read.
      const other = each !== id && this.#reports.isServing(each) ? this.#host.subject(each) : undefined;
      if (other === undefined || (other.config.services ?? []).length === 0) return false;
      return other.state === "started" && !other.isCordoned && !this.#options.isEnding(each);
    });
  }

  /** A Machine is gone. */
  forget(machine: string): void {
    this.#withdrawn.delete(machine);
  }

  async #step(id: string): Promise<void> {
    const app = this.#host.app(id);
    const machines = app?.machines.flatMap((one) => this.#host.subject(one) ?? []) ?? [];
    const ports = new Map(machines.flatMap(portsOf).map((port) => [port.name, port]));
    if (!app || ports.size === 0) return this.#remove(id);
    const namespace = this.#namespaces.nameOf(app.network);
    // Its namespace is created with its first Machine, which leads back here.
    if (!this.#namespaces.has(namespace)) return;
    const name = serviceName(app.name);
    const metadata = {
      name,
      namespace,
      labels: { [labels.data]: this.#host.dataId, [labels.app]: app.name },
      annotations: { [annotations.app]: id },
    };
    const list = [...ports.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const wanted = list.map(({ name: portName, port, protocol }) => ({ name: portName, port, protocol }));
    const before = this.#services.get(name, namespace);
    const had = before?.spec?.ports?.map(({ name: portName, port, protocol }) => ({ name: portName, port, protocol }));
    if (
      // A deleted App of the same name may have left it.
      !isOfApp(id)(before) ||
      !isDeepStrictEqual(
        had?.sort((a, b) => ((a.name ?? "") < (b.name ?? "") ? -1 : 1)),
        wanted,
      )
    )
      await this.#cluster.apply({
        apiVersion: "v1",
        kind: "Service",
        metadata: { ...metadata, annotations: { ...metadata.annotations, ...speaksHttp } },
        spec: { ports: wanted },
      } as V1Service);
    await this.#route(id, app, metadata, list);
  }

  /** Leads the hostnames of an App to its Service. */
  async #route(id: string, app: AppSubject, metadata: Metadata, ports: readonly PublicPort[]): Promise<void> {
    const { name, namespace } = metadata;
    const web = ports.find(({ port, isHttp }) => isHttp && port === 443) ?? ports.find(({ isHttp }) => isHttp);
    const certificates = web && this.#options.ingressClass !== noIngress ? app.certificates : [];
    const before = this.#ingresses.get(name, namespace);
    if (!web || certificates.length === 0) {
      if (before) await this.#removeIngress(before);
      return;
    }
    const ingressClassName = this.#options.ingressClass;
    const hosts = certificates.map(({ hostname, chain }) => [hostname, chain]);
    const described = hashOf(JSON.stringify([web.port, hosts, ingressClassName]));
    if (isOfApp(id)(before) && before?.metadata?.annotations?.[annotations.routes] === described) return;
    const kept = certificates.map(({ hostname }) => tlsName(hostname));
    const left = before === undefined ? [] : secretsOf(before).filter((secret) => !kept.includes(secret));
    for (const certificate of certificates) await this.#cluster.apply(tlsSecret(certificate, metadata));
    const path = { path: "/", pathType: "Prefix", backend: { service: { name, port: { number: web.port } } } };
    const apply = (own: Metadata["annotations"]): Promise<void> =>
      this.#cluster.apply({
        apiVersion: "networking.k8s.io/v1",
        kind: "Ingress",
        metadata: { ...metadata, annotations: { ...metadata.annotations, ...own } },
        spec: {
          ...(ingressClassName === undefined ? {} : { ingressClassName }),
          tls: certificates.map(({ hostname }) => ({ hosts: [hostname], secretName: tlsName(hostname) })),
          rules: certificates.map(({ hostname }) => ({ host: hostname, http: { paths: [path] } })),
        },
      } as V1Ingress);
    if (left.length > 0) {
      // Without a Secret that an Ingress names, a controller may serve none of its hostnames. So the Ingress comes first, and notes what is
      // left to delete.
      await apply({ [annotations.leaving]: left.join(" ") });
      for (const secret of left) await this.#cluster.delete(kinds.secret, { name: secret, namespace });
    }
    await apply({ [annotations.routes]: described });
  }

  async #remove(id: string): Promise<void> {
    const isOwn = isOfApp(id);
    for (const ingress of this.#ingresses.all().filter(isOwn)) await this.#removeIngress(ingress);
    for (const { metadata } of this.#services.all().filter(isOwn)) await this.#cluster.delete(kinds.service, metadata);
  }

  async #removeIngress(ingress: V1Ingress): Promise<void> {
    const { metadata } = ingress;
    const { namespace = "" } = metadata ?? {};
    for (const name of secretsOf(ingress)) await this.#cluster.delete(kinds.secret, { name, namespace });
    await this.#cluster.delete(kinds.ingress, metadata);
  }
}

/** Whether an object is of the App with this id: one of the same name may have been deleted. */
const isOfApp =
  (id: string) =>
  (object: V1Service | V1Ingress | undefined): boolean =>
    object?.metadata?.annotations?.[annotations.app] === id;

/** The Secrets of an Ingress: those that it names, and those that it named and that are to be deleted. */
const secretsOf = ({ metadata, spec }: V1Ingress): string[] => [
  ...(spec?.tls ?? []).flatMap(({ secretName }) => secretName ?? []),
  ...(metadata?.annotations?.[annotations.leaving]?.split(" ") ?? []),
];

interface Metadata {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

const tlsName = (hostname: string): string => `tls-${hashOf(hostname)}`;

const tlsSecret = ({ hostname, chain, key }: HostnameCertificate, { namespace, labels: marks }: Metadata) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: tlsName(hostname), namespace, labels: marks },
  type: "kubernetes.io/tls",
  data: { "tls.crt": Buffer.from(chain).toString("base64"), "tls.key": Buffer.from(key()).toString("base64") },
});
