// What runs Postgres clusters. As with Machines (runtime.ts) the service decides, an engine does it and tells what happened.
import type { Delays } from "../time/delays.ts";
import type { Timers } from "../time/timers.ts";

/** A cluster as an engine sees it. */
export interface Cluster {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly plan: string;
  readonly version: string;
  readonly diskGb: number;
  readonly status: string;
}

/** Where a cluster listens. */
export interface Endpoints {
  readonly primary: Readonly<Record<"direct" | "pooler", { readonly host: string; readonly port: number }>>;
}

/** An extension an engine can install. */
export interface ExtensionOffer {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** It belongs to the platform, is in every database, and stays. */
  readonly system: boolean;
}

/** A query that runs. */
export interface RunningQuery {
  readonly pid: number;
  readonly database: string;
  readonly username: string;
  readonly state: string;
  readonly query: string;
  readonly started_at: string;
}

/** A query that was slow. */
export interface SlowQuery {
  readonly query: string;
  readonly calls: number;
  readonly total_ms: number;
  readonly mean_ms: number;
}

/** A change inside a cluster. Passwords are in clear text: the engine has to set them. */
export type ClusterChange =
  | { readonly kind: "createDatabase" | "dropDatabase"; readonly database: string }
  | {
      readonly kind: "installExtension";
      readonly database: string;
      readonly extension: string;
      readonly schema: string;
    }
  | { readonly kind: "removeExtension"; readonly database: string; readonly extension: string; readonly force: boolean }
  | { readonly kind: "createUser"; readonly user: string; readonly role: string; readonly password: string }
  | { readonly kind: "changeRole"; readonly user: string; readonly role: string }
  | { readonly kind: "dropUser"; readonly user: string }
  | { readonly kind: "setPassword"; readonly user: string; readonly password: string; readonly endSessions: boolean };

/** What an engine tells. */
export interface EngineEvents {
  /** It is being set up; `creating` is over. */
  initializing(id: string): void;
  ready(id: string, endpoints: Endpoints): void;
  failed(id: string): void;
  destroyed(id: string): void;
}

/** Runs Postgres clusters. Calls return at once, inside the transaction that decided them. */
export interface PostgresEngine {
  /** What keeps the engine from creating a cluster; undefined when nothing does. */
  problem(name: string): string | undefined;
  /** Then `initializing`, and `ready` or `failed`. `from` names what its data is copied from. */
  create(cluster: Cluster, from?: { readonly cluster: string; readonly backup?: string; readonly time?: number }): void;
  /** Then `destroyed`. */
  destroy(cluster: Cluster): void;
  change(cluster: Cluster, change: ClusterChange): void;
  extensions(version: string): readonly ExtensionOffer[];
  /** The queries that run now, in one database or in all. */
  activeQueries(cluster: Cluster, database: string | undefined): Promise<readonly RunningQuery[]>;
  /** The queries that took longest in the last so many milliseconds, the slowest first. */
  slowQueries(cluster: Cluster, withinMs: number): Promise<readonly SlowQuery[]>;
  /** Bytes a cluster stores. */
  storedBytes(cluster: Cluster): number;
  /** Something the engine arranged through its host's timers is due. */
  due?(id: string): void;
}

/** What an engine is made with. */
export interface EngineHost {
  readonly timers: Timers;
  readonly delays: Delays;
  readonly events: EngineEvents;
  cluster(id: string): Cluster | undefined;
}

/** Makes the engine of a service. */
export type EngineFactory = (host: EngineHost) => PostgresEngine;
