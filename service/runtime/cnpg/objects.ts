// The objects of a Postgres cluster as the engine wants them in a Kubernetes cluster.
import type { KubernetesObject } from "@kubernetes/client-node";
import { organizationLabel, labels, regionLabel, snapshotGroup } from "../kubernetes/names.ts";
import type { Cluster } from "../postgresEngine.ts";
import { connectionsOf, superuser, systemDatabases, visitor } from "../postgres/settings.ts";
import { backupName, nameOf, operatorGroup, operatorKinds, poolerOf, postgresLabels, secretsOf } from "./names.ts";
import { barmanStore, type ObjectStore } from "./objectStore.ts";

/** Where the objects of a cluster are, and whose they are. */
export interface Place {
  readonly dataId: string;
  readonly namespace: string;
  readonly organization: string;
}

/** What comes from the start options. */
export interface CnpgOptions {
  /** A ClusterImageCatalog with the images of servers; by default they are those of the operator's project. */
  readonly catalog?: string | undefined;
  /** Where an archive of all changes and the backups are; by default there is no archive, and backups are VolumeSnapshots. */
  readonly store?: ObjectStore | undefined;
}

/** How the operator takes a backup. */
export type BackupMethod = "barmanObjectStore" | "volumeSnapshot";

/** The backup that a cluster begins with. */
export interface Beginning {
  readonly backup: string;
  /** Its id in the object storage; undefined for VolumeSnapshots. */
  readonly stored?: string | undefined;
  /** The time to restore, in milliseconds since 1970; the end of the backup if left out. */
  readonly time?: number | undefined;
}

/** An object with more members than every object has. */
const object = <T extends KubernetesObject>(of: T): KubernetesObject => of;

const managed = ({ dataId }: Place, id?: string): Record<string, string> => ({
  [postgresLabels.data]: dataId,
  ...(id === undefined ? {} : { [postgresLabels.cluster]: id }),
});

const metadataOf = (place: Place, id: string, name: string) => ({
  name,
  namespace: place.namespace,
  labels: managed(place, id),
});

/** The namespace of an organization's clusters. */
export const namespaceObject = (place: Place): KubernetesObject =>
  object({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: place.namespace,
      labels: { ...managed(place), [labels.organization]: organizationLabel(place.organization) },
    },
  });

/**
 * Who may connect to the servers and poolers of the namespace: they themselves, the Machines of the organization, the operator and the
 * service. The last two are recognized by their labels, in namespaces that are no network, so no Machine can take their place.
 */
export const policyObject = (place: Place): KubernetesObject => {
  const noNetwork = { matchExpressions: [{ key: labels.data, operator: "DoesNotExist" }] };
  const named = (name: string) => ({
    namespaceSelector: noNetwork,
    podSelector: { matchLabels: { "app.kubernetes.io/name": name } },
  });
  const ofOrganization = { [labels.data]: place.dataId, [labels.organization]: organizationLabel(place.organization) };
  const postgres = [{ protocol: "TCP", port: 5432 }];
  return object({
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "postgres", namespace: place.namespace, labels: managed(place) },
    spec: {
      podSelector: {},
      policyTypes: ["Ingress"],
      ingress: [
        { from: [{ podSelector: {} }, named("cloudnative-pg")] },
        {
          from: [{ namespaceSelector: { matchLabels: ofOrganization } }, named("machines-service")],
          ports: postgres,
        },
      ],
    },
  });
};

/** The Secrets of a cluster: the passwords of the service's own roles, and its certificate. */
export function secretObjects(
  place: Place,
  id: string,
  passwords: { readonly superuser: string; readonly visitor: string },
  certificate: { readonly chain: string; readonly root: string; readonly key: string },
): readonly KubernetesObject[] {
  const names = secretsOf(id);
  const secret = (name: string, type: string, stringData: Record<string, string>): KubernetesObject => {
    const metadata = metadataOf(place, id, name);
    // The operator applies a change at once.
    const reload = { "cnpg.io/reload": "true" };
    return object({
      ...{ apiVersion: "v1", kind: "Secret", type, stringData },
      metadata: { ...metadata, labels: { ...metadata.labels, ...reload } },
    });
  };
  const basic = "kubernetes.io/basic-auth";
  return [
    secret(names.superuser, basic, { username: superuser, password: passwords.superuser }),
    secret(names.visitor, basic, { username: visitor, password: passwords.visitor }),
    secret(names.certificate, "kubernetes.io/tls", { "tls.crt": certificate.chain, "tls.key": certificate.key }),
    secret(names.authority, "Opaque", { "ca.crt": certificate.root }),
  ];
}

const closed = systemDatabases.join(",");

/**
 * Who may log in from where, after the rules of the operator for its replicas and poolers. As in a server on this computer, the
 * superuser is kept out of the databases of clients, and clients out of those of the superuser.
 */
const accessRules = [
  `hostssl ${closed} ${superuser} all scram-sha-256`,
  `host all ${superuser} all reject`,
  `host ${closed} all all reject`,
  `hostssl all ${visitor} all scram-sha-256`,
  `host all ${visitor} all reject`,
];

/** The settings of a server: the same as on this computer, except for those that the operator sets itself. */
const parametersOf = ({ cpus, memoryMb }: Cluster): Record<string, string> => ({
  max_connections: String(connectionsOf(memoryMb)),
  // The service can enter databases also when clients have taken all other connections.
  reserved_connections: "2",
  shared_buffers: `${Math.floor(memoryMb / 4)}MB`,
  effective_cache_size: `${Math.floor((memoryMb * 3) / 4)}MB`,
  max_worker_processes: String(Math.max(32, cpus)),
  max_parallel_workers: String(cpus),
  password_encryption: "scram-sha-256",
  timezone: "UTC",
  log_timezone: "UTC",
  // A statement that fails may contain a password.
  log_min_error_statement: "panic",
});

const milli = (cpus: number): string => `${Math.round(cpus * 1000)}m`;

/** As for Machines, a shared CPU requests a sixteenth of a CPU. */
const sharedCpu = 1 / 16;

/** A time as PostgreSQL writes it. The operator would write one of RFC 3339 with a Z, which a server does not know while it starts. */
const targetOf = (time: number): string => new Date(time).toISOString().replace("T", " ").replace("Z", "+00");

/** How a cluster gets its data. The service's own role takes the place of the operator's user for an application. */
export function bootstrapOf({ id }: Cluster, beginning: Beginning | undefined): object {
  const own = { database: superuser, owner: visitor, secret: { name: secretsOf(id).visitor } };
  if (!beginning) return { initdb: { ...own, encoding: "UTF8", localeCType: "C.UTF-8", localeCollate: "C.UTF-8" } };
  const { backup, stored, time } = beginning;
  // Without a target, the operator would restore all changes of the archive.
  const end = time === undefined ? { backupID: stored, targetImmediate: true } : { targetTime: targetOf(time) };
  const recoveryTarget = stored === undefined ? {} : { recoveryTarget: end };
  return { recovery: { ...own, backup: { name: backupName(backup) }, ...recoveryTarget } };
}

/** An archive of all changes, and backups beside it. A replica's backup would be complete before its last changes are archived. */
const archived = ({ dataId }: Place, id: string, store: ObjectStore): object => ({
  target: "primary",
  barmanObjectStore: barmanStore(dataId, id, store),
});

/** The Cluster. */
export function clusterObject(place: Place, cluster: Cluster, bootstrap: object, { catalog, store }: CnpgOptions) {
  const { id, cpus, isShared, memoryMb, replicas, region, version, diskGb } = cluster;
  const names = secretsOf(id);
  const memory = `${memoryMb}Mi`;
  const image =
    catalog === undefined
      ? { imageName: `ghcr.io/cloudnative-pg/postgresql:${version}` }
      : {
          imageCatalogRef: {
            ...{ apiGroup: operatorGroup, kind: "ClusterImageCatalog", name: catalog, major: Number(version) },
          },
        };
  return object({
    apiVersion: operatorKinds.cluster.apiVersion,
    kind: operatorKinds.cluster.kind,
    metadata: metadataOf(place, id, nameOf(id)),
    spec: {
      ...image,
      instances: 1 + replicas,
      inheritedMetadata: { labels: managed(place, id) },
      enableSuperuserAccess: true,
      superuserSecret: { name: names.superuser },
      certificates: { serverTLSSecret: names.certificate, serverCASecret: names.authority },
      bootstrap,
      storage: { size: `${diskGb}Gi` },
      // As a server on this computer stops: transactions that are open do not hold up the end of a server.
      smartShutdownTimeout: 1,
      resources: {
        requests: { cpu: milli(isShared ? cpus * sharedCpu : cpus), memory },
        limits: { cpu: milli(cpus), memory },
      },
      affinity: { nodeSelector: { [regionLabel]: region }, topologyKey: "kubernetes.io/hostname" },
      postgresql: {
        parameters: parametersOf(cluster),
        // With a setting of the extension, the operator would install it in every database itself, as superuser.
        shared_preload_libraries: ["pg_stat_statements"],
        pg_hba: accessRules,
      },
      backup: {
        volumeSnapshot: {
          snapshotOwnerReference: "backup",
          online: true,
          // A copy needs no archive: it begins like a server after a crash.
          onlineConfiguration: { immediateCheckpoint: true, waitForArchive: false },
        },
        ...(store ? archived(place, id, store) : {}),
      },
    },
  });
}

/** The Pooler. */
export const poolerObject = (place: Place, { id, memoryMb, poolMode, region, replicas }: Cluster): KubernetesObject => {
  const most = connectionsOf(memoryMb) - 20;
  const size = poolMode === "session" ? most : Math.ceil(most / 4);
  return object({
    apiVersion: operatorKinds.pooler.apiVersion,
    kind: operatorKinds.pooler.kind,
    metadata: metadataOf(place, id, poolerOf(id)),
    spec: {
      cluster: { name: nameOf(id) },
      instances: 1 + replicas,
      type: "rw",
      serviceTemplate: { metadata: { labels: managed(place, id) } },
      template: {
        metadata: { labels: managed(place, id) },
        spec: { containers: [], nodeSelector: { [regionLabel]: region } },
      },
      pgbouncer: {
        poolMode,
        // As many as the pooler of a server on this computer.
        parameters: { max_client_conn: "1000", default_pool_size: String(size), max_prepared_statements: "200" },
      },
    },
  });
};

/** The Backup with this id. */
export const backupObject = (place: Place, cluster: string, backup: string, method: BackupMethod): KubernetesObject => {
  const metadata = metadataOf(place, cluster, backupName(backup));
  return object({
    apiVersion: operatorKinds.backup.apiVersion,
    kind: operatorKinds.backup.kind,
    metadata: { ...metadata, labels: { ...metadata.labels, [postgresLabels.backup]: backup } },
    spec: { cluster: { name: nameOf(cluster) }, method },
  });
};

/** Why a cluster cannot be backed up where neither is there. */
export const noSnapshots = `backups and copies of clusters need VolumeSnapshots (${snapshotGroup}/v1), which the Kubernetes cluster does not have, or the service's option --postgres-backup`;
