// Managed Postgres clusters (docs/interface.md#managed-postgres). Answers are inside `data`.
import { z } from "zod";
import {
  appNameParam,
  clusterIdParam,
  databaseName,
  databaseParam,
  extensionParam,
  userName,
  userParam,
} from "./names.ts";
import { operations } from "./operation.ts";
import { duration, needed, optional, required } from "./schema.ts";

const plans = ["basic", "starter", "launch", "scale", "Performance"] as const;
/** Sizes on offer; matched without case. */
export const postgresPlan = z.enum(plans).meta({ format: "caseless", open: plans });
/** Major versions. The platform has the first two; a service on whose computer only 18 is installed has that. */
export const postgresVersion = z.enum(["16", "17", "18"]);
/** Roles of a user. */
export const postgresRole = z.enum(["schema_admin", "writer", "reader"]);
/** Kinds of backups. */
export const postgresBackupType = z.enum(["full", "incr", "diff"]);

const data = <S extends z.ZodType>(schema: S) => z.object({ data: required(schema, "The answer.") });

const endpoint = z.object({
  host: optional(z.string(), "Host name."),
  port: optional(z.int(), "Port."),
});

const attachedApps = z.array(z.object({ name: optional(z.string(), "Name of the App.") }));

/** A cluster. */
export const postgresCluster = z.object({
  id: required(z.string(), "Identifier."),
  name: required(z.string(), "Name, unique in the organization."),
  region: optional(z.string(), "Region."),
  plan: optional(z.string(), "Size: `basic`, `starter`, `launch`, `scale` or `Performance`."),
  status: optional(z.string(), "`creating`, `initializing`, `ready`, `deleting`, `deleted` or `failed`."),
  organization: optional(
    z.object({ name: optional(z.string(), "Display name."), slug: optional(z.string(), "Slug.") }),
    "Organization that owns it.",
  ),
  cpu_kind: optional(z.string(), "`shared` or `performance`."),
  cpus: optional(z.int(), "CPUs."),
  memory_mb: optional(z.int(), "Memory in MB."),
  disk_size_gb: optional(z.int(), "Disk in GB."),
  replicas: optional(z.int(), "Copies of the data beside the primary."),
  pg_major_version: optional(z.string(), "Major version of Postgres."),
  postgis_enabled: optional(z.boolean(), "Whether PostGIS may be enabled."),
  endpoints: optional(
    z.object({
      primary: optional(
        z.object({
          direct: optional(endpoint, "Straight to the primary."),
          pooler: optional(endpoint, "Through the connection pool."),
        }),
        "Where the primary listens.",
      ),
    }),
    "Where it listens; filled when it is ready.",
  ),
  primary_available: optional(
    z.boolean(),
    "Whether the primary answers; false while it fails or is replaced. Only of a ready cluster whose servers are real.",
  ),
  primary_since: optional(z.string(), "RFC 3339 time at which this server became the primary, if others can."),
  attached_apps: optional(attachedApps, "Apps that are attached."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  storage_provisioned_bytes: optional(z.int().nullable(), "Bytes of disk, or null before it was measured."),
  storage_used_bytes: optional(z.int().nullable(), "Bytes in use, or null before it was measured."),
});

/** A cluster in a list. */
export const postgresClusterSummary = z.object({
  id: required(z.string(), "Identifier."),
  name: required(z.string(), "Name."),
  region: optional(z.string(), "Region."),
  plan: optional(z.string(), "Size."),
  status: optional(z.string(), "As in the cluster."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  deleted_at: optional(z.string(), "RFC 3339 time of deletion."),
  attached_apps: optional(attachedApps, "Apps that are attached."),
});

const poolMode = z.enum(["session", "transaction"]);

/** Body of a request that creates a cluster. */
export const createPostgresCluster = z.object({
  org_slug: needed(z.string(), "Slug of the organization; `personal` is the caller's own. Required."),
  region: needed(z.string(), "Region; it must offer Postgres. Required."),
  plan: needed(z.string(), "Size: `basic`, `starter`, `launch`, `scale` or `Performance`, in any case. Required."),
  name: optional(z.string(), "Name, unique in the organization; generated when left out."),
  disk_size_gb: optional(z.int().min(10).max(1000), "Disk in GB, 10 to 1000.", { wireDefault: 10 }),
  pg_major_version: optional(
    postgresVersion,
    "Major version of Postgres: 16 or 17. A service whose clusters are servers may also have 18.",
    { wireDefault: "16" },
  ),
  pool_mode: optional(poolMode, "When the pool reuses a connection: `session` or `transaction`.", {
    wireDefault: "session",
  }),
  postgis_enabled: optional(z.boolean(), "Whether PostGIS may be enabled later.", { wireDefault: false }),
});

const attachment = z.object({
  app_name: required(z.string(), "App."),
  postgres_cluster_id: required(z.string(), "Cluster."),
  attached_at: optional(z.string(), "RFC 3339 time of the attachment."),
});

const database = z.object({ name: required(z.string(), "Name of the database.") });

const extension = z.object({
  name: required(z.string(), "Name of the extension."),
  default_version: optional(z.string(), "Version that would be installed."),
  description: optional(z.string(), "What it does."),
  system: optional(z.boolean(), "Whether it belongs to the platform and cannot be removed."),
  installed: optional(
    z
      .object({ schema: optional(z.string(), "Schema it is in."), version: optional(z.string(), "Its version.") })
      .nullable(),
    "Where it is installed, or null.",
  ),
});

const user = z.object({
  username: required(z.string(), "Name of the user."),
  role: required(z.string(), "`schema_admin`, `writer` or `reader`."),
});

const credentials = z.object({
  username: required(z.string(), "Name of the user."),
  password: required(z.string(), "The password.", { secret: true }),
});

const backup = z.object({
  id: required(z.string(), "Identifier."),
  type: optional(z.string(), "`full`, `incr` or `diff`."),
  status: optional(z.string(), "`running`, `completed` or `failed`."),
  size_bytes: optional(z.int().nullable(), "Stored bytes, or null while it runs."),
  started_at: optional(z.string().nullable(), "RFC 3339 time it began."),
  finished_at: optional(z.string().nullable(), "RFC 3339 time it ended, or null while it runs."),
});

/** A running query. ASSUMED: the fields of a query; only that queries are an array is known. */
const runningQuery = z.object({
  pid: required(z.int(), "Process id within Postgres."),
  database: optional(z.string(), "Database it runs in."),
  username: optional(z.string(), "User it runs for."),
  state: optional(z.string(), "State of its connection, for example `active`."),
  query: required(z.string(), "Its text."),
  started_at: optional(z.string(), "RFC 3339 time it began."),
});

const slowQuery = z.object({
  query: required(z.string(), "Its text, without its values."),
  calls: required(z.int(), "How often it ran."),
  total_ms: required(z.number(), "Milliseconds of all runs together."),
  mean_ms: required(z.number(), "Milliseconds of one run."),
});

const path = "/v1/postgres";
const one = `${path}/{postgres_cluster_id}`;
const clusterParams = z.object({ postgres_cluster_id: clusterIdParam });
const databaseParams = clusterParams.extend({ database: databaseParam });
const userParams = clusterParams.extend({ username: userParam });
const missing = "no such cluster";
const gone = "the cluster is deleted or being deleted";
const notReady = "the cluster is not ready";
export const postgres = operations("postgres", {
  list: {
    method: "GET",
    path,
    source: "docs/interface.md#managed-postgres",
    summary: "Lists the clusters of an organization.",
    params: z.object({}),
    query: z.object({
      org_slug: required(z.string(), "Slug of the organization; `personal` is the caller's own."),
      include_deleted: optional(z.boolean(), "Whether deleted clusters are listed too."),
    }),
    status: 200,
    answer: data(z.array(postgresClusterSummary)),
    failures: {
      400: "org_slug missing",
      403: "another organization",
      404: "no such organization",
      422: "include_deleted is neither true nor false",
    },
    repeat: "read",
  },
  create: {
    method: "POST",
    path,
    source: "docs/interface.md#managed-postgres",
    summary: "Creates a cluster; provisioned asynchronously.",
    params: z.object({}),
    body: createPostgresCluster,
    status: 201,
    answer: data(postgresCluster),
    failures: {
      400: "org_slug missing, or it cannot be created",
      403: "another organization",
      404: "no such organization",
      422: "bad field",
    },
    repeat: "once",
  },
  get: {
    method: "GET",
    path: one,
    source: "docs/interface.md#managed-postgres, docs/interface.md#cluster-states",
    summary: "Shows a cluster.",
    params: clusterParams,
    status: 200,
    answer: data(postgresCluster),
    failures: { 404: missing, 410: gone },
    repeat: "read",
  },
  delete: {
    method: "DELETE",
    path: one,
    source: "docs/interface.md#cluster-states",
    summary: "Marks a cluster for deletion; finished asynchronously.",
    params: clusterParams,
    status: 202,
    failures: { 404: missing, 410: gone },
    repeat: "repeatable",
  },
  attach: {
    method: "POST",
    path: `${one}/attachments`,
    source: "docs/interface.md#attachments",
    summary: "Attaches a cluster to an App. It only records this and sets nothing on the App.",
    params: clusterParams,
    body: z.object({ app_name: needed(z.string(), "App to attach to. Required.") }),
    status: 201,
    otherSuccesses: { 200: "it is attached already" },
    answer: data(attachment),
    failures: { 400: "bad field", 404: "no such cluster or App", 410: gone, 422: "app_name missing" },
    repeat: "repeatable",
  },
  detach: {
    method: "DELETE",
    path: `${one}/attachments/{app_name}`,
    source: "docs/interface.md#attachments",
    summary: "Detaches a cluster from an App.",
    params: clusterParams.extend({ app_name: appNameParam }),
    status: 204,
    failures: { 404: "no such cluster, App or attachment", 410: gone },
    repeat: "repeatable",
  },
  listDatabases: {
    method: "GET",
    path: `${one}/databases`,
    source: "docs/interface.md#databases",
    summary: "Lists the databases of a cluster.",
    params: clusterParams,
    status: 200,
    answer: data(z.array(database)),
    failures: { 404: missing, 410: gone, 503: notReady },
    repeat: "read",
  },
  createDatabase: {
    method: "POST",
    path: `${one}/databases`,
    source: "docs/interface.md#databases",
    summary: "Creates a database.",
    params: clusterParams,
    body: z.object({ name: needed(databaseName, "Name, up to 63 letters, digits, `-` and `_`. Required.") }),
    status: 201,
    answer: data(database),
    failures: {
      400: "name reserved or malformed",
      404: missing,
      409: "it exists",
      410: gone,
      422: "name missing",
      503: notReady,
    },
    repeat: "once",
  },
  deleteDatabase: {
    method: "DELETE",
    path: `${one}/databases/{database}`,
    source: "docs/interface.md#databases",
    summary: "Deletes a database with its contents.",
    params: databaseParams,
    status: 200,
    answer: data(database),
    failures: { 400: "name reserved or malformed", 404: "no such cluster or database", 410: gone, 503: notReady },
    repeat: "repeatable",
  },
  listExtensions: {
    method: "GET",
    path: `${one}/databases/{database}/extensions`,
    source: "docs/interface.md#extensions",
    summary: "Lists the available and installed extensions of a database.",
    params: databaseParams,
    status: 200,
    answer: data(z.array(extension)),
    failures: { 404: "no such cluster or database", 410: gone, 503: notReady },
    repeat: "read",
  },
  installExtension: {
    method: "POST",
    path: `${one}/databases/{database}/extensions`,
    source: "docs/interface.md#extensions",
    summary: "Installs an extension in a database.",
    params: databaseParams,
    body: z.object({
      name: needed(z.string(), "Name of the extension. Required."),
      schema: optional(databaseName, "Schema to install it in.", { wireDefault: "public" }),
      create_schema: optional(z.boolean(), "Whether that schema is created if it does not exist."),
    }),
    status: 204,
    failures: {
      400: "bad field",
      404: "no such cluster or database",
      409: "PostGIS is not enabled for the cluster, or the extension is installed",
      410: gone,
      422: "unknown extension or schema",
      503: notReady,
    },
    repeat: "once",
  },
  removeExtension: {
    method: "DELETE",
    path: `${one}/databases/{database}/extensions/{extension}`,
    source: "docs/interface.md#extensions",
    summary: "Removes an extension from a database.",
    params: databaseParams.extend({ extension: extensionParam }),
    query: z.object({ force: optional(z.boolean(), "Whether objects that depend on it are removed too.") }),
    status: 204,
    failures: {
      400: "it belongs to the platform",
      404: "no such cluster or database, or it is not installed",
      410: gone,
      503: notReady,
    },
    repeat: "repeatable",
  },
  listUsers: {
    method: "GET",
    path: `${one}/users`,
    source: "docs/interface.md#users-and-credentials",
    summary: "Lists the users of a cluster.",
    params: clusterParams,
    status: 200,
    answer: data(z.array(user)),
    failures: { 404: missing, 410: gone, 503: notReady },
    repeat: "read",
  },
  createUser: {
    method: "POST",
    path: `${one}/users`,
    source: "docs/interface.md#users-and-credentials",
    summary: "Creates a user with a generated password.",
    params: clusterParams,
    body: z.object({
      username: needed(userName, "Name, up to 63 lowercase letters, digits, `-` and `_`. Required."),
      role: needed(postgresRole, "`schema_admin`, `writer` or `reader`. Required."),
    }),
    status: 201,
    answer: data(user),
    failures: {
      400: "name reserved or malformed",
      404: missing,
      409: "it exists",
      410: gone,
      422: "field missing, or no such role",
      503: notReady,
    },
    repeat: "once",
  },
  updateUser: {
    method: "PATCH",
    path: `${one}/users/{username}`,
    source: "docs/interface.md#users-and-credentials",
    summary: "Changes the role of a user.",
    params: userParams,
    body: z.object({ role: needed(postgresRole, "`schema_admin`, `writer` or `reader`. Required.") }),
    status: 204,
    failures: {
      400: "the user is the platform's",
      404: "no such cluster or user",
      410: gone,
      422: "no such role",
      503: notReady,
    },
    repeat: "repeatable",
  },
  deleteUser: {
    method: "DELETE",
    path: `${one}/users/{username}`,
    source: "docs/interface.md#users-and-credentials",
    summary: "Deletes a user.",
    params: userParams,
    status: 204,
    failures: { 400: "the user is the platform's", 404: "no such cluster or user", 410: gone, 503: notReady },
    repeat: "repeatable",
  },
  credentials: {
    method: "GET",
    path: `${one}/users/{username}/credentials`,
    source: "docs/interface.md#users-and-credentials",
    summary: "Shows the password of a user.",
    params: userParams,
    status: 200,
    answer: data(credentials),
    failures: { 400: "bad name", 404: "no such cluster or user", 410: gone, 503: notReady },
    repeat: "read",
  },
  rotatePassword: {
    method: "POST",
    path: `${one}/users/{username}/rotate_password`,
    source: "docs/interface.md#users-and-credentials",
    summary: "Sets a new password for a user.",
    params: userParams,
    body: z.object({ kill_sessions: optional(z.boolean(), "Whether its open sessions are ended.") }),
    bodyOptional: true,
    status: 200,
    answer: data(credentials),
    failures: { 400: "bad field", 404: "no such cluster or user", 410: gone, 422: "bad field", 503: notReady },
    repeat: "once",
  },
  activeQueries: {
    method: "GET",
    path: `${one}/queries/active`,
    source: "docs/interface.md#queries",
    summary: "Lists the running queries.",
    params: clusterParams,
    query: z.object({ database: optional(z.string(), "Only queries in this database.") }),
    status: 200,
    answer: data(z.array(runningQuery)),
    failures: { 404: "no such cluster or database", 410: gone, 422: "bad field", 503: notReady },
    repeat: "read",
  },
  slowQueries: {
    method: "GET",
    path: `${one}/queries/slow`,
    source: "docs/interface.md#queries",
    summary: "Lists the slowest recent queries, slowest first.",
    params: clusterParams,
    query: z.object({
      range: optional(duration(), 'How far to look back, for example `"24h"`.', { wireDefault: "24h" }),
    }),
    status: 200,
    answer: data(z.array(slowQuery)),
    failures: { 404: missing, 410: gone, 422: "range is no duration", 503: notReady },
    repeat: "read",
  },
  listBackups: {
    method: "GET",
    path: `${one}/backups`,
    source: "docs/interface.md#backups",
    summary: "Lists the backups of a cluster, newest first.",
    params: clusterParams,
    status: 200,
    answer: data(z.array(backup)),
    failures: { 404: missing, 410: gone, 503: notReady },
    repeat: "read",
  },
  createBackup: {
    method: "POST",
    path: `${one}/backups`,
    source: "docs/interface.md#backups",
    summary: "Starts a backup.",
    params: clusterParams,
    body: z.object({ type: needed(postgresBackupType, "`full`, `incr` or `diff`. Required.") }),
    status: 202,
    answer: data(backup),
    failures: { 404: missing, 409: "one is running", 410: gone, 422: "no such type", 503: notReady },
    repeat: "once",
  },
  restore: {
    method: "POST",
    path: `${one}/restore`,
    source: "docs/interface.md#backups",
    summary: "Creates a cluster from a backup or a point in time.",
    params: clusterParams,
    body: z.object({
      backup_id: optional(z.string(), "Backup to restore; either this or `pitr_time`."),
      pitr_time: optional(z.iso.datetime({ offset: true }), "RFC 3339 time with offset to restore to."),
      name: optional(z.string(), "Name of the new cluster; generated when left out."),
    }),
    status: 201,
    answer: data(postgresCluster),
    failures: { 404: "no such cluster or backup", 410: gone, 422: "bad field", 503: notReady },
    repeat: "once",
  },
  fork: {
    method: "POST",
    path: `${one}/fork`,
    source: "docs/interface.md#backups",
    summary: "Creates a cluster with a copy of this one's data.",
    params: clusterParams,
    body: z.object({ name: optional(z.string(), "Name of the new cluster; the source's with `-fork` when left out.") }),
    bodyOptional: true,
    status: 201,
    answer: data(postgresCluster),
    failures: { 404: missing, 409: notReady, 410: gone, 422: "bad name" },
    repeat: "once",
  },
});
