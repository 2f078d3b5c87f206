// How the objects of a service are named and labelled in a cluster.
import { createHash } from "node:crypto";
import type { Subject, VolumeSubject } from "../runtime.ts";

/** The name under which the service owns fields of objects, for server-side apply. */
export const fieldManager = "machines-service";

/** The labels by which the runtime recognizes what it created. */
export const labels = {
  data: "machines-service/data",
  machine: "machines-service/machine",
  version: "machines-service/version",
  app: "machines-service/app",
  volume: "machines-service/volume",
  /** The organization of a namespace. */
  organization: "machines-service/organization",
  /** The fleet of a Machine, as a hash: names of fleets can be longer than labels. */
  fleet: "machines-service/fleet",
  /** Set of an Ingress for an ACME authority. */
  challenge: "machines-service/challenge",
} as const;

/** Its annotations. */
export const annotations = {
  /** The start that a Pod was created for. */
  start: "machines-service/start",
  /** The network of a namespace. */
  network: "machines-service/network",
  /** Id of the App of a Service or an Ingress. */
  app: "machines-service/app-id",
  /** Changes with the hostnames and certificates of an Ingress. */
  routes: "machines-service/routes",
  /** Secrets that an Ingress does not name any more, and that are to be deleted; separated by spaces. */
  leaving: "machines-service/leaving",
  /** The hostname of a Certificate, after the id of its App and a slash. */
  hostname: "machines-service/hostname",
  /** The revision of a Certificate that is in the store. */
  stored: "machines-service/stored",
} as const;

/** A kind of objects. */
export interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
  /** Its path in the API, in all namespaces or in its own one. */
  readonly path: string;
  readonly namespace?: string;
}

/** A kind by its group with its version, its name and the plural of it. */
export const kind = (group: string, name: string, plural: string): Kind => ({
  apiVersion: group,
  kind: name,
  path: `/${group === "v1" ? "api" : "apis"}/${group}/${plural}`,
});

/** The group of snapshots of volumes. */
export const snapshotGroup = "snapshot.storage.k8s.io";

/** The group of cert-manager. */
export const certificateGroup = "cert-manager.io";

/** The Certificates of a namespace. Reading those of others takes rights that the service does not need. */
export const certificatesIn = (namespace: string): Kind => ({
  ...{ apiVersion: `${certificateGroup}/v1`, kind: "Certificate", namespace },
  path: `/apis/${certificateGroup}/v1/namespaces/${namespace}/certificates`,
});

/** The namespace of Certificates: it has no other Secrets, because the service may read those in it. */
export const certificateNamespace = (own: string): string => `${own}-certificates`;

/** The kinds of objects that the runtime reads and writes. */
export const kinds = {
  pod: kind("v1", "Pod", "pods"),
  node: kind("v1", "Node", "nodes"),
  secret: kind("v1", "Secret", "secrets"),
  namespace: kind("v1", "Namespace", "namespaces"),
  service: kind("v1", "Service", "services"),
  claim: kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
  snapshot: kind(`${snapshotGroup}/v1`, "VolumeSnapshot", "volumesnapshots"),
  slice: kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
  ingress: kind("networking.k8s.io/v1", "Ingress", "ingresses"),
  budget: kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
  podMetrics: kind("metrics.k8s.io/v1beta1", "PodMetrics", "pods"),
} as const;

/** The annotation of a claim that says for which node its volume is made. */
export const nodeAnnotation = "volume.kubernetes.io/selected-node";

/** The label of nodes that says their region. */
export const regionLabel = "topology.kubernetes.io/region";

/** A short text that identifies another one. */
export const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** The namespace of a network. Owners choose the names of networks, so the hash is long: two with the same hash cannot be searched for. */
export const namespaceOf = (dataId: string, network: string): string =>
  `machines-${dataId.slice(0, 8)}-${createHash("sha256").update(`${dataId}/${network}`).digest("hex").slice(0, 32)}`;

/** The name that earlier versions have given. Two networks can share one: its annotation says whose it is. */
export const formerNamespaceOf = (dataId: string, network: string): string =>
  `machines-${dataId.slice(0, 8)}-${createHash("sha256").update(network).digest("hex").slice(0, 8)}`;

/** An organization as a label: its name may have other characters. */
export const organizationLabel = (slug: string): string => createHash("sha256").update(slug).digest("hex").slice(0, 16);

/** The selector of everything that belongs to the data of a service. */
export const selectorOf = (dataId: string): string => `${labels.data}=${dataId}`;

/** The value of the label of a fleet; undefined without one. */
export const fleetLabel = ({ fleet }: Pick<Subject, "fleet">): string | undefined =>
  fleet === undefined ? undefined : hashOf(fleet);

/** ASSUMED: a Service has the name of its App, or `app-` before a name that begins with a digit, as Services cannot. */
export const serviceName = (app: string): string => (/^[a-z]/.test(app) ? app : `app-${app}`);

/** The labels of everything that belongs to a Machine. */
export const machineLabels = (dataId: string, { id, app, version }: Subject): Record<string, string> => ({
  [labels.data]: dataId,
  [labels.machine]: id,
  [labels.app]: app,
  [labels.version]: version,
});

/** The name of a volume or snapshot: ids have underscores, which names in a cluster cannot have. */
export const volumeName = ({ id }: Pick<VolumeSubject, "id">): string => id.toLowerCase().replaceAll("_", "-");
