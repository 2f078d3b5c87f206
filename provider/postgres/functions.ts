// The functions about Postgres clusters.
import { z } from "zod";
import { camelSchema } from "../../api/case.ts";
import { databaseName } from "../../api/names.ts";
import { postgres } from "../../api/postgres.ts";
import { duration, named, optional, required } from "../../api/schema.ts";
import { defineFunction, listFunction } from "../core/function.ts";
import { idOrName } from "../core/ids.ts";
import { ofOrganization } from "../shared/fields.ts";
import { credentialsOf, directUri, firstDatabase, firstUser, poolerUri } from "./credentials.ts";

const reference = { format: "reference" } as const;

const ofCluster = { cluster: required(z.string(), "The cluster: the `id` of a PostgresCluster.", reference) };

/** A type of the interface as programs see it, with its own name. */
const detailsOf = <S extends z.ZodType>(typeName: string, schema: S) => camelSchema(schema).meta({ typeName });

// docs/interface.md#managed-postgres
const attachedNames = (apps: readonly { readonly name?: string | undefined }[] | undefined): string[] =>
  (apps ?? []).flatMap(({ name }) => (name === undefined ? [] : [name]));

const summaryFields = {
  clusterId: required(z.string(), "Identifier."),
  name: required(z.string(), "Name."),
  region: optional(z.string(), "Region."),
  plan: optional(z.string(), "Size."),
  status: optional(z.string(), "`creating`, `initializing`, `ready`, `deleting`, `deleted` or `failed`."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  attachedApps: required(z.array(z.string()), "Names of the Apps it is attached to."),
};

export const getPostgresCluster = defineFunction({
  name: "getPostgresCluster",
  summary: "Looks up a Postgres cluster.",
  inputs: z.object(ofCluster),
  outputs: z.object({
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
  }),

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

const clusterSummary = z.object({
  ...summaryFields,
  deletedAt: optional(z.string(), "RFC 3339 time of deletion."),
});

export const getPostgresClusters = listFunction({
  name: "getPostgresClusters",
  summary: "Lists the Postgres clusters of an organization.",
  inputs: {
    ...ofOrganization,
    includeDeleted: z.boolean().default(false).describe("Whether deleted clusters are listed too."),
  },
  items: ["clusters", "The clusters.", named("PostgresClusterSummary", clusterSummary)],
  async list({ organization, includeDeleted }, api) {
    const orgSlug = organization ?? api.config.organization;
    const { data } = await api.postgres.list({ orgSlug, includeDeleted: includeDeleted || undefined });
    return data.map(({ id, attachedApps, ...rest }) => ({
      ...rest,
      clusterId: id,
      attachedApps: attachedNames(attachedApps),
    }));
  },
});

// docs/interface.md#users-and-credentials
export const getPostgresCredentials = defineFunction({
  name: "getPostgresCredentials",
  summary: "Shows how to connect to a Postgres cluster as one of its users.",
  inputs: z.object({
    ...ofCluster,
    user: optional(
      z.string(),
      "The user: the `id` of a PostgresUser, or a name; the cluster's first user when left out.",
      reference,
    ),
    database: optional(
      z.string(),
      "Database the URIs name: the `id` of a PostgresDatabase, or a name; the cluster's first database when left out.",
      reference,
    ),
  }),
  outputs: z.object({
    username: required(z.string(), "Name of the user."),
    password: required(z.string(), "The password.", { secret: true }),
    directUri: optional(z.string(), "URI to connect with straight to the primary.", { secret: true }),
    poolerUri: optional(z.string(), "URI to connect with through the connection pool.", { secret: true }),
  }),

  async call({ inputs: { cluster, user = firstUser, database = firstDatabase }, api }) {
    const [found, { data: live }] = await Promise.all([
      credentialsOf(api, cluster, user),
      api.postgres.get({ postgresClusterId: cluster }),
    ]);
    const { username, password } = found;
    return {
      username,
      password,
      directUri: directUri(live, found, database),
      poolerUri: poolerUri(live, found, database),
    };
  },
});

export const getPostgresUsers = listFunction({
  name: "getPostgresUsers",
  summary: "Lists the users of a Postgres cluster.",
  inputs: ofCluster,
  items: ["users", "The users.", detailsOf("PostgresUserDetails", postgres.listUsers.answer.shape.data.element)],
  list: async ({ cluster }, api) => (await api.postgres.listUsers({ postgresClusterId: cluster })).data,
});

// docs/interface.md#databases
export const getPostgresDatabases = listFunction({
  name: "getPostgresDatabases",
  summary: "Lists the databases of a Postgres cluster.",
  inputs: ofCluster,
  items: [
    "databases",
    "The databases.",
    detailsOf("PostgresDatabaseDetails", postgres.listDatabases.answer.shape.data.element),
  ],
  list: async ({ cluster }, api) => (await api.postgres.listDatabases({ postgresClusterId: cluster })).data,
});

// docs/interface.md#extensions
export const getPostgresExtensions = listFunction({
  name: "getPostgresExtensions",
  summary: "Lists the extensions a database could have, and those it has.",
  inputs: {
    ...ofCluster,
    database: required(
      idOrName(databaseName, "a PostgresDatabase"),
      "The database: the `id` of a PostgresDatabase, or a name.",
      reference,
    ),
  },
  items: [
    "extensions",
    "The extensions.",
    detailsOf("PostgresExtensionDetails", postgres.listExtensions.answer.shape.data.element),
  ],
  list: async ({ cluster, database }, api) =>
    (await api.postgres.listExtensions({ postgresClusterId: cluster, database })).data,
});

// docs/interface.md#backups
export const getPostgresBackups = listFunction({
  name: "getPostgresBackups",
  summary: "Lists the backups of a Postgres cluster.",
  inputs: ofCluster,
  items: [
    "backups",
    "The backups, newest first.",
    detailsOf("PostgresBackupDetails", postgres.listBackups.answer.shape.data.element),
  ],
  list: async ({ cluster }, api) => (await api.postgres.listBackups({ postgresClusterId: cluster })).data,
});

// docs/interface.md#queries
export const getPostgresActiveQueries = listFunction({
  name: "getPostgresActiveQueries",
  summary: "Lists the queries that run in a Postgres cluster now.",
  inputs: {
    ...ofCluster,
    database: optional(
      z.string(),
      "Only queries in this database: the `id` of a PostgresDatabase, or a name.",
      reference,
    ),
  },
  items: [
    "queries",
    "The queries.",
    detailsOf("PostgresActiveQuery", postgres.activeQueries.answer.shape.data.element),
  ],
  list: async ({ cluster, database }, api) =>
    (await api.postgres.activeQueries({ postgresClusterId: cluster, database })).data,
});

export const getPostgresSlowQueries = listFunction({
  name: "getPostgresSlowQueries",
  summary: "Lists the queries of a Postgres cluster that took longest lately, the slowest first.",
  inputs: {
    ...ofCluster,
    range: optional(duration(), "How far to look back, for example `24h`; 24 hours when left out."),
  },
  items: ["queries", "The queries.", detailsOf("PostgresSlowQuery", postgres.slowQueries.answer.shape.data.element)],
  list: async ({ cluster, range }, api) => (await api.postgres.slowQueries({ postgresClusterId: cluster, range })).data,
});
