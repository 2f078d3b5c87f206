// Every metric of the service: its name, its type, what it says, and its labels. docs/watching.md lists them from here.

/** A metric. */
export interface Described {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Its labels, without `le` of a histogram. */
  readonly labels: readonly string[];
}

const metric =
  (type: Described["type"]) =>
  (name: string, help: string, ...labels: readonly string[]): Described => ({ name, type, help, labels });
const counter = metric("counter");
const gauge = metric("gauge");
const histogram = metric("histogram");

/** Of the service itself. */
export const serviceMetrics = {
  build: gauge(
    "machines_service_build_info",
    "Always 1; its labels say which version runs, and what runs the Machines and the Postgres clusters.",
    ...["version", "runtime", "postgres"],
  ),
  requests: counter(
    "machines_service_requests_total",
    "Requests answered, by operation and status.",
    "operation",
    "status",
  ),
  durations: histogram("machines_service_request_duration_seconds", "Time from a request to its answer.", "operation"),
  machines: gauge(
    "machines_service_machines",
    "Machines by state; destroyed ones for as long as they are kept.",
    "state",
  ),
  waits: gauge("machines_service_waits", "Requests that are held until something happens."),
  storeBytes: gauge("machines_service_store_bytes", "Size of the store."),
  limited: counter("machines_service_rate_limited_total", "Requests refused because there were too many."),
  faults: counter("machines_service_faults_total", "Requests that met a fault on purpose."),
};

/** Of Apps and their Machines. */
export const appMetrics = {
  machines: gauge(
    "machines_service_app_machines",
    "Machines of an App by state, without destroyed ones.",
    "app",
    "state",
  ),
  checks: gauge(
    "machines_service_app_checks",
    "Started Machines of an App that have checks, by their worst result: passing, warning or critical.",
    ...["app", "status"],
  ),
  restarts: counter(
    "machines_service_app_restarts_total",
    "Machines of an App that the restart policy has started again.",
    "app",
  ),
};

/** Of the proxy, with Machines that are containers. */
export const proxyMetrics = {
  requests: counter(
    "machines_service_proxy_requests_total",
    "Requests to an App at the proxy, by class of the status; cut if the client left before the answer.",
    ...["app", "status"],
  ),
  durations: histogram(
    "machines_service_proxy_request_duration_seconds",
    "Time from a request at the proxy to the end of its answer, without event streams and WebSockets.",
    "app",
  ),
  connections: gauge("machines_service_proxy_connections", "Open connections of clients of the proxy."),
  mostConnections: gauge("machines_service_proxy_max_connections", "Connections of clients that the proxy accepts."),
};

/** Of the certificates of hostnames. */
export const certificateMetrics = {
  states: gauge(
    "machines_service_certificates",
    "Hostnames with a requested or uploaded certificate, by its state: valid, expired, or waiting for its validation.",
    "state",
  ),
  expires: gauge(
    "machines_service_certificate_expiration_timestamp_seconds",
    "When the certificate of a hostname ends, since 1970.",
    ...["app", "hostname"],
  ),
  renewal: gauge(
    "machines_service_certificate_renewal_timestamp_seconds",
    "When the certificate of a hostname is renewed, since 1970; uploaded ones are not.",
    ...["app", "hostname"],
  ),
};

/** Of Postgres clusters. */
export const clusterMetrics = {
  clusters: gauge("machines_service_clusters", "Postgres clusters by status, without deleted ones.", "status"),
  up: gauge(
    "machines_service_cluster_up",
    "1 if a cluster is ready and its server answered when it was last measured, 0 if not or if it has failed.",
    "cluster",
  ),
  used: gauge("machines_service_cluster_storage_bytes", "Size of the data of a cluster.", "cluster"),
  disk: gauge("machines_service_cluster_disk_bytes", "Size of the disk of a cluster.", "cluster"),
  connections: gauge("machines_service_cluster_connections", "Connections of clients to a cluster.", "cluster"),
  mostConnections: gauge(
    "machines_service_cluster_max_connections",
    "Connections of clients that a cluster accepts.",
    "cluster",
  ),
  slow: gauge(
    "machines_service_cluster_slow_queries",
    "Queries of a cluster that have run for more than a second.",
    "cluster",
  ),
};

/** Of the backups of the service, if its options name a repository. */
export const backupMetrics = {
  lastComplete: gauge(
    "machines_service_backup_last_complete_timestamp_seconds",
    "The moment of the last complete backup, since 1970; 0 if there is none.",
  ),
  interval: gauge("machines_service_backup_interval_seconds", "Time from one backup to the next."),
  result: gauge(
    "machines_service_backup_last_result",
    "1 for the result of the last backup: complete, incomplete or failed.",
    "result",
  ),
  duration: gauge("machines_service_backup_last_duration_seconds", "How long the last backup took."),
  added: gauge(
    "machines_service_backup_last_added_bytes",
    "Bytes that the repository has grown by with the last backup.",
  ),
  log: gauge(
    "machines_service_backup_log_timestamp_seconds",
    "The moment until which the logs of the Postgres clusters are stored, since 1970; 0 if none is.",
  ),
};

/** Of quotas, which only the operator sets. */
export const quotaMetrics = {
  limit: gauge(
    "machines_service_quota_limit",
    "Limit of an organization, or of its App if that is named: machines, memory in MB, volumes, volume-gb, clusters, or requests per second.",
    ...["org", "app", "resource"],
  ),
  used: gauge(
    "machines_service_quota_used",
    "What is used of a quota; requests are only counted for a moment.",
    ...["org", "app", "resource"],
  ),
};

/** Of the process; every member has them. */
export const processMetrics = {
  lag: histogram(
    "machines_service_event_loop_lag_seconds",
    "How much later than planned the event loop runs a timer, ten times a second.",
  ),
  diskFree: gauge(
    "machines_service_data_disk_free_bytes",
    "Free space of the file system with the data folder, for this user.",
  ),
  diskSize: gauge("machines_service_data_disk_size_bytes", "Size of the file system with the data folder."),
  cpu: counter("process_cpu_seconds_total", "Processor time of the process."),
  memory: gauge("process_resident_memory_bytes", "Memory of the process."),
  started: gauge("process_start_time_seconds", "When the process started, since 1970."),
};

/** Of each of several members. */
export const membersMetrics = {
  members: gauge("machines_service_members", "Members that were seen in the last three seconds, by role.", "role"),
  leads: gauge("machines_service_member_leads", "1 if this member leads."),
  leaderships: counter("machines_service_leaderships_total", "Leaderships so far: each takeover adds one."),
  entry: gauge("machines_service_member_entry", "The last entry of the log that this member has."),
  behind: gauge("machines_service_member_behind", "Entries of the log that this member does not have yet."),
  replaced: counter(
    "machines_service_member_copies_replaced_total",
    "Copies that did not fit the log, and were replaced.",
  ),
  logBytes: gauge("machines_service_log_bytes", "Size of the log in its database."),
  snapshots: gauge("machines_service_log_snapshots", "Snapshots in the log."),
};

/** All metrics, with what they are about. */
export const catalogue: Readonly<Record<string, Readonly<Record<string, Described>>>> = {
  "the service": serviceMetrics,
  "Apps and Machines": appMetrics,
  "the proxy": proxyMetrics,
  certificates: certificateMetrics,
  "Postgres clusters": clusterMetrics,
  backups: backupMetrics,
  quotas: quotaMetrics,
  "the process": processMetrics,
  "several members": membersMetrics,
};
