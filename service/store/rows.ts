// What a row of each table holds. Booleans are 0 and 1, times are milliseconds since 1970, `config` and the like are JSON.
import type { MachineState } from "../lifecycle/machineStates.ts";
import type { VolumeState } from "../lifecycle/volumeStates.ts";

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
  readonly created_at: number;
}

/** A Machine, also a destroyed one for a while. */
export interface MachineRow {
  readonly id: string;
  readonly app: string;
  readonly name: string;
  readonly region: string;
  readonly state: MachineState;
  readonly version: string;
  readonly private_ip: string;
  readonly image_ref: string;
  /** Without `metadata`, which has a life of its own. */
  readonly config: string;
  readonly metadata: string | null;
  readonly cordoned: number;
  /** Whether it is meant to run once it has settled. */
  readonly launch: number;
  /** Times it was started again by its restart policy. */
  readonly restarts: number;
  readonly checks: "passing" | "warning" | "critical";
  readonly checked_at: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly destroyed_at: number | null;
}

/** Something that happened to a Machine. */
export interface EventRow {
  readonly machine: string;
  readonly id: string;
  readonly type: string;
  readonly status: MachineState;
  readonly source: "user" | "flyd";
  readonly timestamp: number;
  readonly request: string | null;
  readonly version: string;
  /** Whether it brought the Machine into another state. */
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
  readonly name: string;
  readonly state: VolumeState;
  readonly region: string;
  readonly zone: string;
  readonly size_gb: number;
  readonly encrypted: number;
  readonly fstype: string;
  /** Whether it ever was mounted; before that it has no file system. */
  readonly mounted: number;
  readonly snapshot_retention: number;
  readonly auto_backup: number;
  readonly machine: string | null;
  readonly created_at: number;
}

/** A snapshot of a volume, which may be gone already. */
export interface SnapshotRow {
  readonly id: string;
  readonly volume: string;
  readonly app: string;
  readonly status: "pending" | "created";
  readonly digest: string;
  readonly size_gb: number;
  readonly retention_days: number;
  readonly created_at: number;
}
