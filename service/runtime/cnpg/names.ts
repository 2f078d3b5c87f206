// How the objects of Postgres clusters are named and labelled in a Kubernetes cluster.
import { createHash } from "node:crypto";
import type { Endpoint, Endpoints } from "../postgresEngine.ts";
import { kind } from "../kubernetes/names.ts";

/** The group of the operator's kinds. */
export const operatorGroup = "postgresql.cnpg.io";

const version = `${operatorGroup}/v1`;

/** The kinds of the operator that the engine reads and writes. */
export const operatorKinds = {
  cluster: kind(version, "Cluster", "clusters"),
  pooler: kind(version, "Pooler", "poolers"),
  backup: kind(version, "Backup", "backups"),
} as const;

/**
 * The labels by which the engine recognizes what it created. They are others than those of Machines: the runtime removes what has
 * its label and is of no Machine, App or volume.
 */
export const postgresLabels = {
  data: "machines-service/postgres",
  cluster: "machines-service/postgres-cluster",
  backup: "machines-service/postgres-backup",
} as const;

/** The namespace for the clusters of an organization. A copy can only read the backups of its own namespace. */
export const namespaceOf = (dataId: string, organization: string): string =>
  `machines-${dataId.slice(0, 8)}-postgres-${createHash("sha256").update(organization).digest("hex").slice(0, 8)}`;

/** The name of a cluster: the names of its Services begin with it, and those begin with a letter. */
export const nameOf = (id: string): string => `pg-${id}`;

/** The Service that leads to the primary of a cluster. */
export const primaryOf = (id: string): string => `${nameOf(id)}-rw`;

/** The name of the pooler of a cluster, and of its Service. */
export const poolerOf = (id: string): string => `${nameOf(id)}-pooler-rw`;

/** The names of the Secrets of a cluster. The service writes them, and cannot read them. */
export const secretsOf = (id: string) => ({
  superuser: `${nameOf(id)}-machines-superuser`,
  visitor: `${nameOf(id)}-machines-visitor`,
  certificate: `${nameOf(id)}-machines-certificate`,
  authority: `${nameOf(id)}-machines-authority`,
});

/** The name of a backup; ids may have characters that names in a cluster cannot have. */
export const backupName = (id: string): string => `backup-${id.toLowerCase().replaceAll("_", "-")}`;

const port = 5432;

/** The host name of a Service for Pods of any namespace. */
const hostOf = (service: string, namespace: string): string => `${service}.${namespace}.svc`;

/** The addresses of a cluster for Machines: they lead to the primary, whichever server that is. */
export function endpointsOf(id: string, namespace: string): Endpoints {
  const at = (service: string): Endpoint => ({ host: hostOf(service, namespace), port });
  return { primary: { direct: at(primaryOf(id)), pooler: at(poolerOf(id)) } };
}

/** All names by which a cluster is reached, for its certificate; the first is that of the service itself. */
export function hostsOf(id: string, namespace: string): readonly [string, ...string[]] {
  const name = nameOf(id);
  const services = [poolerOf(id), `${name}-r`, `${name}-ro`];
  const forms = (service: string): readonly string[] => [
    hostOf(service, namespace),
    `${service}.${namespace}`,
    service,
    `${hostOf(service, namespace)}.cluster.local`,
  ];
  return [hostOf(`${name}-rw`, namespace), ...forms(`${name}-rw`).slice(1), ...services.flatMap(forms)];
}
