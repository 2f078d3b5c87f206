// An existing cluster (docs/interface.md#managed-postgres).
import { z } from "zod";
import { optional } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { attachedNames, clusterInput, summaryFields } from "./details.ts";

const outputs = z.object({
  ...summaryFields,
  organization: optional(z.string(), "Slug of the organization that owns it."),
  cpuKind: optional(z.string(), "`shared` or `performance`."),
  cpus: optional(z.int(), "Number of CPUs."),
  memoryMb: optional(z.int(), "Memory in MB."),
  diskSizeGb: optional(z.int(), "Disk in GB."),
  replicas: optional(z.int(), "Copies of the data beside the primary."),
  pgMajorVersion: optional(z.string(), "Major version of Postgres."),
  postgisEnabled: optional(z.boolean(), "Whether the extension PostGIS may be installed."),
  directHost: optional(z.string(), "Host name of the primary."),
  directPort: optional(z.int(), "Port of the primary."),
  poolerHost: optional(z.string(), "Host name of the connection pool."),
  poolerPort: optional(z.int(), "Port of the connection pool."),
  storageProvisionedBytes: optional(z.int(), "Bytes of disk; absent before it was measured."),
  storageUsedBytes: optional(z.int(), "Bytes in use; absent before it was measured."),
});

export const getPostgresCluster = defineFunction({
  name: "getPostgresCluster",
  summary: "Looks up a Postgres cluster.",
  inputs: z.object({ cluster: clusterInput }),
  outputs,

  async call({ inputs: { cluster }, api }) {
    const { data: live } = await api.postgres.get({ postgresClusterId: cluster });
    const { id, endpoints, attachedApps, organization, storageProvisionedBytes, storageUsedBytes, ...rest } = live;
    const { direct, pooler } = endpoints?.primary ?? {};
    return {
      ...rest,
      clusterId: id,
      organization: organization?.slug,
      attachedApps: attachedNames(attachedApps),
      directHost: direct?.host,
      directPort: direct?.port,
      poolerHost: pooler?.host,
      poolerPort: pooler?.port,
      storageProvisionedBytes: storageProvisionedBytes ?? undefined,
      storageUsedBytes: storageUsedBytes ?? undefined,
    };
  },
});
