// The interface of engines that run Postgres clusters. As with Machines (runtime.ts), the service decides, and an engine acts
// and reports.
import type { FastifyBaseLogger } from "fastify";
import type { IssuedCertificate } from "./certificateIssuer.ts";
import type { Delays } from "../time/delays.ts";
import type { Timers } from "../time/timers.ts";

/** The data that a new cluster begins with. */
export interface ClusterSource {
  /** The cluster that has it. */
  readonly cluster: string;
  /** The backup to begin with; the current data if left out. */
  readonly backup?: string;
  /** The time to restore, in milliseconds since 1970; the end of the backup if left out. */
  readonly time?: number;
  /** Whether the data comes from a backup of the service, which lies in the folder of the new cluster. */
  readonly restored?: "backup" | "log";
}

/** A cluster as an engine sees it. */
export interface Cluster {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly plan: string;
  readonly cpus: number;
  /** Whether its CPUs are shared with others. */
  readonly isShared: boolean;
  readonly memoryMb: number;
  /** Servers beside the primary that its plan has. */
  readonly replicas: number;
  /** Major version. */
  readonly version: string;
  readonly diskGb: number;
  readonly poolMode: string;
  readonly status: string;
  /** Undefined for a cluster that begins empty. */
  readonly source: ClusterSource | undefined;
  /** The stored addresses, which an engine keeps if it can. */
  readonly endpoints: Endpoints | undefined;
}

/** An address of a server. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The addresses of a cluster. */
export interface Endpoints {
  readonly primary: Readonly<Record<"direct" | "pooler", Endpoint>>;
}

/** An extension that an engine can install. */
export interface ExtensionOffer {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** It belongs to the platform: every database has it, and it cannot be removed. */
  readonly system: boolean;
  /** The engine has it, but refuses to install it. */
  readonly refused?: boolean;
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

/** What a server does now. */
export interface ServerLoad {
  /** Connections of clients in a transaction or a query. */
  readonly active: number;
  /** All connections of clients. */
  readonly connections: number;
  /** How many there may be. */
  readonly most: number;
  /** Queries that have run for more than a second. */
  readonly slow: number;
}

/** An extension of a database. */
export interface InstalledExtension {
  readonly database: string;
  readonly name: string;
  readonly schema: string;
  readonly version: string;
}

/** What a cluster contains. */
export interface ClusterContents {
  readonly databases: readonly string[];
  readonly extensions: readonly InstalledExtension[];
  readonly users: readonly { readonly name: string; readonly role: string }[];
}

/** A change inside a cluster. It has no password: the engine reads the current one from its host. */
export type ClusterChange =
  | { readonly kind: "createDatabase" | "dropDatabase"; readonly database: string }
  | { readonly kind: "installExtension"; readonly extension: InstalledExtension }
  | { readonly kind: "removeExtension"; readonly extension: InstalledExtension; readonly force: boolean }
  | { readonly kind: "createUser" | "changeRole" | "dropUser"; readonly user: string }
  | { readonly kind: "setPassword"; readonly user: string; readonly endSessions: boolean };

/** A change that the server of a cluster has refused. The message says why, for the client. */
export class ChangeRefused extends Error {
  override readonly name = "ChangeRefused";
}

/** A statement that a person asks a database, with the rights of one of its users. */
export interface Statement {
  readonly database: string;
  readonly user: string;
  readonly text: string;
  /** Whether its changes are kept. Without, the server refuses to change anything. */
  readonly isWrite: boolean;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** The columns and rows of a statement, with values as the server writes them; null for NULL. */
export interface StatementAnswer {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly (string | null)[])[];
  /** Whether there are more rows than these. */
  readonly isMore: boolean;
  /** Whether a value is only the beginning of itself. */
  readonly isCut: boolean;
  /** `SELECT` and the like; empty for an empty statement. */
  readonly command: string;
  /** Number of rows that it has changed or answered, as far as they were read. */
  readonly count: number;
}

/** A statement that was not done. The message is for the person. */
export class StatementFailed extends Error {
  override readonly name = "StatementFailed";
  readonly details: StatementProblem;

  constructor(message: string, details: StatementProblem = {}) {
    super(message);
    this.details = details;
  }
}

/** What a server says about a statement that it has refused. */
export interface StatementProblem {
  /** SQLSTATE. */
  readonly code?: string;
  /** Number of the character in the text; the first one is 1. */
  readonly position?: number;
  readonly detail?: string;
  readonly hint?: string;
  /** Whether the server had understood the text, so that it is SQL of which each part is known. */
  readonly isUnderstood?: boolean;
}

/** A table or view of a database. */
export interface Relation {
  readonly schema: string;
  readonly name: string;
  readonly kind: "table" | "view" | "materialized view" | "foreign table";
  /** As the server estimates; null if it does not know. */
  readonly rows: number | null;
  readonly bytes: number;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly isRequired: boolean }[];
  readonly indexes: readonly { readonly name: string; readonly definition: string }[];
  /** The columns of its primary key. */
  readonly key: readonly string[];
}

/** Reports of an engine. */
export interface EngineEvents {
  /** It is being set up; `creating` is over. */
  initializing(id: string): void;
  ready(id: string, endpoints: Endpoints): void;
  /** A ready cluster has other addresses than before. */
  moved(id: string, endpoints: Endpoints): void;
  failed(id: string, reason: string): void;
  destroyed(id: string): void;
  /** The contents of a copy, which may differ from those that the service expects. */
  copied(id: string, contents: ClusterContents): void;
  /** A change is applied. */
  applied(change: number): void;
  /** A change was refused, and has to be undone in the store. */
  refused(change: number): void;
  measured(id: string, bytes: number): void;
  backedUp(backup: string, bytes: number): void;
  backupFailed(backup: string): void;
}

/** The data of clusters, for backups of the service. */
export interface ClusterArchives {
  /**
   * Writes a copy of a cluster's data as of one moment into a folder, with the changes that it needs.
   * @throws Error with a sentence if the cluster cannot be copied.
   */
  copy(id: string, target: string, signal: AbortSignal): Promise<{ readonly first: string }>;
  /** A copy is stored: the changes since its first file are kept until the next one is. */
  stored(id: string, first: string): Promise<void>;
  /** Completes the log of changes until now. Undefined while the cluster has no server. */
  log(id: string): Promise<ClusterLog | undefined>;
}

/** The log of changes of a cluster. */
export interface ClusterLog {
  readonly folder: string;
  /** It has all changes until then. */
  readonly until: number;
  /** Its last change is not later than that. */
  readonly lastChange: number;
}

/** The server of a ready cluster that takes its changes. */
export interface Primary {
  /** Whether the service reaches it. It does not while the server fails, restarts, or is replaced. */
  readonly isAvailable: boolean;
  /** When it became the primary, in milliseconds since 1970; undefined if no other server can. */
  readonly since?: number | undefined;
}

/** The properties of a new cluster. */
export type NewCluster = Pick<Cluster, "name" | "version"> & { readonly hasPostgis: boolean };

/** Runs Postgres clusters. Calls return at once, inside the transaction of the decision. */
export interface PostgresEngine {
  readonly name: string;
  /** Replicas that a cluster really has; undefined for as many as its plan says. */
  readonly replicas?: number;
  /** The major version of a cluster that asks for none. */
  readonly version: string;
  /** The reason why the engine cannot create a cluster; undefined when it can. */
  problem(cluster: NewCluster): { readonly status: 400 | 422; readonly message: string } | undefined;
  /** The reason why it cannot back up and restore; undefined when it can. */
  readonly noBackups?: string;
  /** The reason why it cannot restore a time; undefined when it can. */
  readonly noTimes?: string;
  /** Reports `initializing`, then `ready` or `failed`. */
  create(cluster: Cluster): void;
  /** Reports `destroyed`. */
  destroy(cluster: Cluster): void;
  /**
   * Applies a change of a ready cluster. Undefined if that is done at once, else it resolves when it is.
   * @throws ChangeRefused (as a rejection) if the server refuses it.
   */
  change(cluster: Cluster, change: ClusterChange): Promise<void> | undefined;
  /** What it can install in a ready cluster; undefined while its server cannot be asked. */
  extensions(cluster: Cluster): readonly ExtensionOffer[] | undefined;
  /** The running queries, in one database or in all. */
  activeQueries(cluster: Cluster, database: string | undefined): Promise<readonly RunningQuery[]>;
  /** The slowest queries of the last `withinMs` milliseconds, slowest first. */
  slowQueries(cluster: Cluster, withinMs: number): Promise<readonly SlowQuery[]>;
  /** What the server of a ready cluster does now; undefined while it cannot be asked. Omitted by an engine without servers. */
  load?(cluster: Cluster): Promise<ServerLoad | undefined>;
  /**
   * Runs a statement as a user of a ready cluster, over a connection of its own. Undefined for an engine without servers.
   * @throws StatementFailed (as a rejection) if the server refuses it.
   */
  run?(cluster: Cluster, statement: Statement): Promise<StatementAnswer>;
  /** The tables and views that a user of a ready cluster sees, at most that many. */
  relations?(cluster: Cluster, asking: Omit<Statement, "text" | "isWrite">, most: number): Promise<readonly Relation[]>;
  /** The primary of a ready cluster. Omitted by an engine without servers. */
  primary?(cluster: Cluster): Primary;
  /** Measures the size of a cluster, and reports `measured`. */
  measure(cluster: Cluster): void;
  /** Reports `backedUp` or `backupFailed`. */
  backUp(cluster: Cluster, backup: string): void;
  /** A backup, or the last copy of a deleted cluster, is no longer needed. */
  discard?(cluster: string, backup?: string): void;
  /** For backups of the service. Omitted by an engine without data. */
  readonly archives?: ClusterArchives;
  /** A timer that the engine set through its host is due. */
  due?(kind: "cluster.step" | "backup.done", id: string): void;
  /** Continues what the service's last run has left. */
  recover?(): void;
  close?(): Promise<void>;
}

/** The service as an engine sees it. */
export interface EngineHost {
  readonly timers: Timers;
  readonly delays: Delays;
  readonly events: EngineEvents;
  readonly log: Pick<FastifyBaseLogger, "info" | "warn" | "error">;
  cluster(id: string): Cluster | undefined;
  /** Identity of the data folder, by which objects outside of it are recognized. */
  readonly dataId: string;
  /** Name of the organization of a cluster. */
  organization(id: string): string;
  /** Ids of the clusters that are not deleted. */
  ids(): readonly string[];
  /** Ids of the completed backups of a cluster, and of those that run, oldest first. */
  backups(id: string): readonly { readonly id: string; readonly isRunning: boolean }[];
  /** What a cluster is to contain. */
  contents(id: string): ClusterContents;
  /** The password of a user. */
  password(cluster: string, user: string): string;
  /** A secret for the engine's own use; the same in every run of this service. */
  secret(name: string): string;
  /** Keeps a change, in the open transaction, until it is reported as applied or refused; returns its number. */
  keep(cluster: string, change: ClusterChange): number;
  /** The oldest change of a cluster that is not applied. */
  next(cluster: string): { readonly number: number; readonly change: ClusterChange } | undefined;
  /** Resolves when everything that was decided is durable. */
  settled(): Promise<void>;
  /** Issues a certificate for these names and IP addresses by the service's own authority, until a time in milliseconds since 1970. */
  readonly certificate: (names: readonly string[], until: number) => Promise<IssuedCertificate>;
}

/** Creates the engine of a service. */
export type EngineFactory = (host: EngineHost) => PostgresEngine;

/** Whether clusters of the platform can have a version (docs/interface.md#managed-postgres). */
export const isOffered = (version: string): boolean => version === "16" || version === "17";
