// The interface of engines that run Postgres clusters. As with Machines (runtime.ts), the service decides, and an engine acts
// and reports.
import type { Delays } from "../time/delays.ts";
import type { Timers } from "../time/timers.ts";

/** A cluster in the form of an engine. */
export interface Cluster {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly plan: string;
  readonly version: string;
  readonly diskGb: number;
  readonly status: string;
}

/** The addresses of a cluster. */
export interface Endpoints {
  readonly primary: Readonly<Record<"direct" | "pooler", { readonly host: string; readonly port: number }>>;
}

/** An extension that an engine can install. */
export interface ExtensionOffer {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** It belongs to the platform: every database has it, and it cannot be removed. */
  readonly system: boolean;
}

/** A running query. */
export interface RunningQuery {
  readonly pid: number;
  readonly database: string;
  readonly username: string;
  readonly state: string;
  readonly query: string;
  readonly started_at: string;
}

/** A slow query. */
export interface SlowQuery {
  readonly query: string;
  readonly calls: number;
  readonly total_ms: number;
  readonly mean_ms: number;
}

/** A change inside a cluster. Passwords are in plain text, because the engine has to set them. */
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

/** Reports of an engine. */
export interface EngineEvents {
  /** It is being set up; `creating` is over. */
  initializing(id: string): void;
  ready(id: string, endpoints: Endpoints): void;
  failed(id: string): void;
  destroyed(id: string): void;
}

/** Runs Postgres clusters. Calls return at once, inside the transaction of the decision. */
export interface PostgresEngine {
  /** The reason why the engine cannot create a cluster; undefined when it can. */
  problem(name: string): string | undefined;
  /** Reports `initializing`, then `ready` or `failed`. `from` names the source of its data. */
  create(cluster: Cluster, from?: { readonly cluster: string; readonly backup?: string; readonly time?: number }): void;
  /** Reports `destroyed`. */
  destroy(cluster: Cluster): void;
  change(cluster: Cluster, change: ClusterChange): void;
  extensions(version: string): readonly ExtensionOffer[];
  /** The running queries, in one database or in all. */
  activeQueries(cluster: Cluster, database: string | undefined): Promise<readonly RunningQuery[]>;
  /** The slowest queries of the last `ms` milliseconds, slowest first. */
  slowQueries(cluster: Cluster, withinMs: number): Promise<readonly SlowQuery[]>;
  /** Size of a cluster in bytes. */
  storedBytes(cluster: Cluster): number;
  /** A timer that the engine set through its host is due. */
  due?(id: string): void;
}

/** The service in the form of an engine. */
export interface EngineHost {
  readonly timers: Timers;
  readonly delays: Delays;
  readonly events: EngineEvents;
  cluster(id: string): Cluster | undefined;
}

/** Creates the engine of a service. */
export type EngineFactory = (host: EngineHost) => PostgresEngine;
