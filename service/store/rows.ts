// The rows of each table. Booleans are 0 and 1, times are milliseconds since 1970, `config` and the like are JSON.
import type { MachineState } from "../states/machineStates.ts";
import type { VolumeState } from "../states/volumeStates.ts";

/** An organization. */
export interface OrgRow {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
}

/** An App. */
export interface AppRow {
  readonly number: number;
  readonly id: string;
  readonly org: number;
  readonly name: string;
  readonly role: string | null;
  readonly network: string;
  readonly idempotency_key: string | null;
  readonly deleting: number;
  /** Incremented with every change of its secrets and secret keys. */
  readonly secrets_version: number;
  readonly created_at: number;
}

/** A Machine; also a destroyed one, for a while. */
export interface MachineRow {
  readonly id: string;
  readonly app: string;
  readonly name: string;
  readonly region: string;
  readonly state: MachineState;
  readonly version: string;
  readonly private_ip: string;
  readonly image_ref: string;
  /** JSON; separate from the configuration, because it changes without a new version. */
  readonly metadata: string | null;
  readonly cordoned: number;
  /** Whether it runs after it is created or updated. */
  readonly launch: number;
  /** Number of restarts by its restart policy in the period that begins with `retried_from`. */
  readonly restarts: number;
  readonly retried_from: number;
  /** Number of restarts by its restart policy since it was last started on request. */
  readonly restarted: number;
  readonly cpu_kind: string;
  /** Limit set through the balloon device; null while the configured one applies. */
  readonly memory_limit_mb: number | null;
  /** The App's secrets at the time of this version (store/secretValues.ts); null without any. */
  readonly secret_set: number | null;
  readonly checks: "passing" | "warning" | "critical";
  /** JSON: the result of each check by its name; null if all have the same. */
  readonly check_results: string | null;
  readonly checked_at: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly destroyed_at: number | null;
}

/** Further columns of a Machine's row, for queries over many Machines. */
export interface MachineExtras {
  /** The organization of its App. */
  readonly org: number;
  /** Whether its configuration names Machines that it stands by for. */
  readonly standby: number;
  /** JSON: the part of its configuration that lists of the organization show. */
  readonly brief: string;
  /** Named size of its configuration, like `performance-2x`; null without one. */
  readonly size: string | null;
  /** Whether its configuration has checks: without any, `checks` means nothing. */
  readonly has_checks: number;
  /** Its configured memory. */
  readonly memory_mb: number;
}

/** The columns of a {@link MachineRow}. */
export const machineColumns = `id, app, name, region, state, version, private_ip, cordoned, launch, restarts, retried_from, restarted,
  cpu_kind, memory_limit_mb, secret_set, checks, check_results, checked_at, created_at, updated_at, destroyed_at, image_ref, metadata`;

/** A version of a Machine. */
export interface VersionRow {
  readonly machine: string;
  readonly version: string;
  /** Number of characters of the following columns. */
  readonly size: number;
  /** JSON: the metadata that the version was created with. */
  readonly metadata: string | null;
  /** JSON, without the metadata. */
  readonly config: string;
}

/** An event of a Machine. */
export interface EventRow {
  readonly machine: string;
  readonly id: string;
  readonly type: string;
  readonly status: MachineState;
  readonly source: "user" | "flyd";
  readonly timestamp: number;
  readonly request: string | null;
  readonly version: string;
  /** Whether the Machine changed its state. */
  readonly moved: number;
}

/** A lease; it counts only until `expires_at`. */
export interface LeaseRow {
  readonly machine: string;
  readonly nonce: string;
  readonly owner: string;
  readonly description: string;
  readonly version: string;
  readonly expires_at: number;
}

/** A volume. */
export interface VolumeRow {
  readonly id: string;
  readonly app: string;
  /** The organization of its App. */
  readonly org: number;
  readonly name: string;
  readonly state: VolumeState;
  readonly region: string;
  readonly zone: string;
  readonly size_gb: number;
  readonly encrypted: number;
  readonly fstype: string;
  /** Whether it was ever mounted; before that it has no file system. */
  readonly mounted: number;
  readonly snapshot_retention: number;
  readonly auto_backup: number;
  readonly machine: string | null;
  /** Id of the volume or snapshot that it is a copy of. */
  readonly source: string | null;
  readonly written: Written;
  readonly created_at: number;
  readonly updated_at: number;
}

/** Whether the runtime has written the contents: 0 not yet, 1 completely, null if the runtime keeps none. */
export type Written = 0 | 1 | null;

/** A snapshot of a volume, which may no longer exist. */
export interface SnapshotRow {
  readonly id: string;
  readonly volume: string;
  readonly app: string;
  readonly status: "pending" | "created";
  readonly digest: string;
  readonly size_gb: number;
  readonly retention_days: number;
  readonly written: Written;
  /** Size of its contents, if the runtime keeps them. */
  readonly bytes: number;
  readonly created_at: number;
}

/** An IP address of an App. */
export interface IpRow {
  readonly number: number;
  readonly app: string;
  readonly ip: string;
  readonly type: string;
  readonly region: string;
  readonly service_name: string | null;
  readonly network: string | null;
  readonly network_org: string | null;
  readonly created_at: number;
}

/** The certificate of one of the service's own names. */
export interface OwnCertificateRow {
  readonly name: string;
  /** In PEM; null until one was issued. */
  readonly chain: string | null;
  /** Sealed. */
  readonly key: Uint8Array | null;
  /** Name of the issuer. */
  readonly issued_by: string | null;
  readonly issued_at: number | null;
  readonly expires_at: number | null;
  /** When it was first requested. */
  readonly added_at: number;
  /** Refusals since the last certificate. */
  readonly failures: number;
  /** No request is made before; null after a certificate. */
  readonly again_at: number | null;
  /** Until when the authority has limited the requests. */
  readonly limited_until: number | null;
  /** Why the last request was refused. */
  readonly problem: string | null;
}

/** A hostname of an App with its certificates of both kinds. */
export interface HostnameRow {
  readonly app: string;
  readonly hostname: string;
  /** Part of the DNS records that prove the ownership of the hostname. */
  readonly owner_code: string;
  /** Since when the hostname belongs to the App; null while it does not. It belongs to one App at a time. */
  readonly owned_at: number | null;
  readonly acme_requested: number;
  readonly acme_status: string | null;
  readonly acme_created_at: number | null;
  readonly issued_at: number | null;
  readonly expires_at: number | null;
  /** The issued certificate and its intermediates, in PEM; null if the issuer is a simulation. */
  readonly issued_chain: string | null;
  /** Sealed. */
  readonly issued_key: Uint8Array | null;
  /** Name of the issuer. */
  readonly issued_by: string | null;
  /** What the issuer keeps of a request that is not finished. */
  readonly acme_order: string | null;
  readonly custom_chain: string | null;
  /** Sealed. */
  readonly custom_key: Uint8Array | null;
  readonly custom_status: string | null;
  readonly custom_created_at: number | null;
  readonly custom_expires_at: number | null;
  readonly custom_issuer: string | null;
  readonly custom_type: string | null;
  readonly dns_seen: number;
  readonly ownership_seen: number;
  /** JSON: times of the failed attempts to issue in the last hour. */
  readonly attempts: string;
  readonly rate_limited_until: number | null;
  /** JSON. */
  readonly problems: string;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A secret; its value is sealed. */
export interface SecretRow {
  readonly app: string;
  readonly name: string;
  readonly value: Uint8Array;
  readonly digest: string;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A secret key; its value is sealed. */
export interface SecretKeyRow {
  readonly app: string;
  readonly name: string;
  readonly type: string;
  readonly value: Uint8Array;
  readonly public_key: Uint8Array | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A Postgres cluster, also a deleted one. */
export interface ClusterRow {
  readonly id: string;
  readonly number: number;
  readonly org: number;
  readonly name: string;
  readonly region: string;
  readonly plan: string;
  readonly status: "creating" | "initializing" | "ready" | "deleting" | "deleted" | "failed";
  readonly disk_size_gb: number;
  readonly pg_major_version: string;
  readonly pool_mode: string;
  readonly postgis_enabled: number;
  /** JSON; null until it is ready. */
  readonly endpoints: string | null;
  readonly storage_used_bytes: number | null;
  readonly created_at: number;
  readonly deleted_at: number | null;
  /** JSON: the data that it began with; null if it began empty. */
  readonly source: string | null;
}

/** A user of a cluster; the password is sealed. */
export interface DatabaseUserRow {
  readonly cluster: string;
  readonly name: string;
  readonly role: string;
  readonly password: Uint8Array;
  readonly created_at: number;
}

/** A backup of a cluster. */
export interface BackupRow {
  readonly id: string;
  readonly number: number;
  readonly cluster: string;
  readonly type: string;
  readonly status: "running" | "completed" | "failed";
  readonly size_bytes: number | null;
  /** JSON: the databases, extensions and users as they were; passwords sealed. */
  readonly contents: string;
  readonly started_at: number;
  readonly finished_at: number | null;
}
