// The engine on CloudNativePG for a service: `createService({ runtime, postgres: cnpgPostgres(cluster) })`.
import { ClusterError, type Cluster } from "../kubernetes/cluster.ts";
import type { EngineFactory } from "../postgresEngine.ts";
import { CnpgPostgres } from "./cnpgPostgres.ts";
import { operatorGroup } from "./names.ts";
import type { CnpgOptions } from "./objects.ts";

/**
 * An engine that runs each Postgres cluster as a Cluster of a Kubernetes cluster, which is that of the runtime.
 * @throws ClusterError if the operator is not installed.
 */
export function cnpgPostgres(cluster: Cluster, options: CnpgOptions = {}): EngineFactory {
  if (!cluster.has(operatorGroup))
    throw new ClusterError(
      "--postgres cnpg needs the operator CloudNativePG, which the Kubernetes cluster does not have: install it (https://cloudnative-pg.io/documentation/current/installation_upgrade/) and start the service again.",
    );
  return (host) => new CnpgPostgres(cluster, host, options);
}
