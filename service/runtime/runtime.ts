// The interface of runtimes, which run Machines. The service decides; a runtime acts and reports. Everything about processes
// is behind this interface: one runtime may simulate them, another may start containers.
import type { Readable, Writable } from "node:stream";
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { SignalName } from "../../api/signals.ts";
import type { ChallengeRoutes, IssuerFactory } from "./certificateIssuer.ts";
import type { Endpoint } from "./postgresEngine.ts";
import type { Clock } from "../time/clock.ts";
import type { Delays } from "../time/delays.ts";
import type { Timers } from "../time/timers.ts";

/** How the proxy reaches the Machines of a runtime that really runs them. */
export interface Reach {
  /** Where a port of a started Machine is reached, as `host:port`; undefined if it is not, yet. */
  endpoint(machine: string, port: number): string | undefined;
  /** Resolves with true once a program listens there, with false if the Machine no longer runs. */
  listens(machine: string, port: number): Promise<boolean>;
  /** Whether requests also reach Machines by ways of the engine itself, which the service does not see. */
  readonly hasOtherWays?: boolean;
}

/** A Machine as a runtime sees it. */
export interface Subject {
  readonly id: string;
  /** Id of the App. */
  readonly appId: string;
  /** Name of the App. */
  readonly app: string;
  readonly name: string;
  readonly region: string;
  readonly version: string;
  /** Identifies the latest start of the Machine; it is another one after each. */
  readonly start: string;
  /** Whether it gets no requests. */
  readonly isCordoned: boolean;
  readonly privateIp: string;
  readonly state: string;
  readonly config: MachineConfig;
  /** The name by which the image is known, without tag and digest: `registry/repository`. */
  readonly repository: string;
  /** The digest of the image; empty as long as it is not known. */
  readonly digest: string;
  /** Name of its fleet, from its metadata; undefined if it is in none. */
  readonly fleet: string | undefined;
  /** Name of the network that the App's Machines share with those of the organization's Apps on the same network. */
  readonly network: string;
  /** Memory limit in MB that was set at run time; undefined when the configured one applies. */
  readonly memoryLimitMb: number | undefined;
  /** The App's secrets by name; decrypted on each call. */
  readonly secrets: () => Readonly<Record<string, string>>;
}

/** An App as a runtime sees it. */
export interface AppSubject {
  readonly name: string;
  /** Name of its network. */
  readonly network: string;
  /** Ids of its Machines that are not destroyed. */
  readonly machines: readonly string[];
  /** Ids of those that run, or are about to, also by a restart that is due later. */
  readonly expected: readonly string[];
  /** The hostnames for which a certificate is to be issued. */
  readonly requested: readonly string[];
  /** The certificates of its hostnames that are valid now. */
  readonly certificates: readonly HostnameCertificate[];
}

/** The certificate of a hostname. */
export interface HostnameCertificate {
  readonly hostname: string;
  /** In PEM, with its intermediates. */
  readonly chain: string;
  /** The private key in PEM; decrypted on each call. */
  readonly key: () => string;
}

/** A volume or a snapshot as a runtime sees it. */
export interface VolumeSubject {
  readonly id: string;
  /** Id of the Machine that it is attached to. */
  readonly machine: string | null;
  /** Id of the volume or snapshot whose contents it begins with; null if it begins empty. */
  readonly source: string | null;
  /** Whether its contents are written completely. */
  readonly isWritten: boolean;
  readonly isSnapshot: boolean;
  /** Name of the network of its App. */
  readonly network: string;
  /** Where it is; empty for a snapshot. */
  readonly region: string;
  readonly sizeGb: number;
}

/** The contents of volumes and snapshots, as archives in the format of tar. */
export interface VolumeArchives {
  /**
   * Uses the contents as they are at one moment; a Machine that uses the volume is paused for a copy of it.
   * @throws Error with a sentence if the engine does not have the contents.
   */
  readonly read: (id: string, use: (archive: Readable) => Promise<void>) => Promise<void>;
  /** Creates a volume or snapshot of the engine, before the service has it. The signal ends that. */
  readonly write: (id: string, archive: Readable, signal: AbortSignal) => Promise<void>;
  /** Removes what an interrupted backup has left. */
  readonly tidy: () => Promise<void>;
}

/** How the main process exited. */
export interface Exit {
  readonly code: number;
  /** Number of the signal that ended it; 0 if there was none. */
  readonly signal: number;
  readonly oom: boolean;
  /** Whether it exited on request. */
  readonly requested: boolean;
  /** Why it could not be started, as a sentence; undefined if it was. */
  readonly error?: string;
  /** Whether the engine ended it for reasons of its own, such as the removal of a node: the program is not to blame. */
  readonly interrupted?: boolean;
  /** The last lines that it wrote since it was started, oldest first; undefined if they are not known. */
  readonly lines?: readonly string[] | undefined;
}

/** An image that a runtime has found. */
export interface FoundImage {
  /** Empty if it is known only once a Machine runs (`resolved`). */
  readonly digest: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The result of one check. */
export interface CheckResult {
  readonly status: "passing" | "warning" | "critical";
  readonly output: string;
}

/** A request to stop a process. */
export interface StopRequest {
  readonly signal: SignalName;
  /** Milliseconds until it is killed. */
  readonly timeoutMs: number;
}

/** How a Machine is being stopped. */
export interface StoredStop {
  readonly request: StopRequest;
  /** The instance that was asked to end, and the milliseconds until it is killed; undefined as long as none was. */
  readonly asked?: { readonly instance: string; readonly leftMs: number } | undefined;
}

/** How Machines are being stopped. It is stored, so that a stop continues as it was requested after a restart of the service. */
export interface StoredStops {
  /** How a Machine is being stopped; undefined if that is not known. */
  of(machine: string): StoredStop | undefined;
  keep(machine: string, stop: StoredStop): void;
  forget(machine: string): void;
}

/** A command to run in a Machine. */
export interface Command {
  readonly words: readonly string[];
  readonly stdin: string;
  readonly timeoutMs: number;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
}

/** The result of a command. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly exitSignal: number;
}

/** A terminal to open in a Machine. */
export interface TerminalRequest {
  /** The program and its arguments; none for a shell. */
  readonly words: readonly string[];
  readonly columns: number;
  readonly rows: number;
}

/** A terminal in a Machine, and the program in it. */
export interface TerminalSession {
  /** What the program writes; it ends with the program. A reader that pauses it makes the program wait. */
  readonly output: Readable;
  /** What is typed. It is never ended: a program in a terminal reads until it ends. */
  readonly input: Writable;
  resize(columns: number, rows: number): void;
  /** Resolves with the exit code of the program; undefined if the engine does not say. */
  readonly exited: Promise<number | undefined>;
  /** Ends the program and those that it started. Resolves when they have ended, or cannot be reached. */
  end(): Promise<void>;
}

/** A process of a Machine, in the format of `ps`. */
export interface Process {
  readonly pid: number;
  readonly command: string;
  readonly directory: string;
  readonly cpu: number;
  readonly rss: number;
  readonly rtime: number;
  readonly stime: number;
  readonly listen_sockets: readonly { readonly proto: string; readonly address: string }[];
}

/** A line that a Machine's program wrote. */
export interface LogLine {
  readonly machine: string;
  /** RFC 3339, with nanoseconds. */
  readonly time: string;
  readonly text: string;
}

/** Which lines to read. */
export interface LogQuery {
  /** Milliseconds since 1970; undefined for all that are kept. */
  readonly since: number | undefined;
  /** The last lines; undefined for all. */
  readonly lines: number | undefined;
  /** Whether to wait for new lines. */
  readonly follow: boolean;
  /** Aborted when no one reads any more. */
  readonly signal: AbortSignal;
}

/** Memory of a Machine in MB. */
export interface Memory {
  readonly limitMb: number;
  readonly availableMb: number;
}

/** What a Machine uses, as its engine has counted it; a value that the engine does not know is undefined. */
export interface Usage {
  /** Identifies the run that the counters belong to: each begins at 0. */
  readonly run: string;
  /** When it was read, in milliseconds. Only differences have a meaning. */
  readonly at: number;
  /** Seconds of processor time since the beginning. */
  readonly cpuSeconds?: number | undefined;
  /** Processors in use now, from an engine that does not count their time. */
  readonly cpus?: number | undefined;
  /** Bytes of memory that could not be reclaimed. */
  readonly memory?: number | undefined;
  /** Bytes since the beginning. */
  readonly received?: number | undefined;
  readonly sent?: number | undefined;
  readonly read?: number | undefined;
  readonly written?: number | undefined;
}

/** The Machine and version of a report. */
export type About = Pick<Subject, "id" | "version">;

/** Reports of a runtime. A late report, for another state or version of the Machine, is ignored. */
export interface RuntimeEvents {
  /** The image is available, so the Machine can be started. */
  prepared(machine: About): void;
  /** The image could not be fetched, or the Machine could not be prepared for another reason: a sentence. */
  unprepared(machine: About, reason: string): void;
  started(machine: About): void;
  /** The digest of the image that the Machine runs. */
  resolved(machine: About, digest: string): void;
  /** The main process has exited. */
  exited(machine: About, exit: Exit): void;
  /** The host of a Machine can no longer be reached, or can be again. */
  hostChanged(id: string): void;
  suspended(machine: About): void;
  destroyed(machine: About): void;
  /**
   * All checks have this result; with `results`, each has its own, by its name (checks.ts). `lost` is called if the service could not
   * store it.
   */
  checked(
    machine: About,
    status: CheckResult["status"],
    results?: Readonly<Record<string, CheckResult>>,
    lost?: () => void,
  ): void;
  /** A volume or snapshot has its contents, with this size. */
  written(id: string, bytes: number): void;
  /** Nothing is left of the contents of a deleted volume or snapshot. */
  discarded(id: string): void;
}

/**
 * Runs Machines. Methods that change a Machine are called inside the transaction of the decision and return at once. Their
 * result is reported later, perhaps after a restart of the service. A runtime with state outside of the store must therefore
 * recover that state when it is created.
 */
export interface Runtime {
  /** Name of the runtime, for people. */
  readonly name: string;
  /** The reason why this runtime cannot run a configuration, as the field and a sentence; undefined when it can. */
  problem(config: MachineConfig): { readonly field: string; readonly message: string } | undefined;
  /**
   * Whether a host of the region has capacity for a Machine with this configuration, instead of the Machine that it replaces; true
   * if omitted.
   */
  hasRoom?(config: MachineConfig, region: string, replaced?: string): boolean;
  /**
   * Finds an image before a version is created from it. Throws a Refusal if there is none. If omitted, the table of images has the
   * digests.
   */
  findImage?(image: string): Promise<FoundImage>;
  /** Prepares a new Machine or a new version for its start; reports `prepared`. */
  create(machine: Subject): void;
  /** Reports `started`, or `exited` if it never became ready; later `checked` and `exited`. */
  start(machine: Subject): void;
  /** Reports `exited`. */
  stop(machine: Subject, request: StopRequest): void;
  /** Reports `suspended`. */
  suspend(machine: Subject): void;
  /** Reports `destroyed`. */
  destroy(machine: Subject): void;
  /** Sends a signal to the main process; reports `exited` if the process ends. */
  signal(machine: Subject, signal: SignalName): void;
  /** Runs a command; undefined if it did not exit in time. */
  exec(machine: Subject, command: Command): Promise<Outcome | undefined>;
  /** Opens a terminal. Throws a Refusal if the image has no shell. Omitted by a runtime that runs no programs. */
  readonly terminal?: ((machine: Subject, request: TerminalRequest) => Promise<TerminalSession>) | undefined;
  processes(machine: Subject): Promise<readonly Process[]>;
  /** Applies a Machine's new memory limit. */
  limitMemory(machine: Subject): void;
  /** The memory of the Machine and its limit. */
  memory(machine: Subject): Promise<Memory>;
  /** Reclaims memory and returns the number of MB. */
  reclaim(machine: Subject, amountMb: number): Promise<number>;
  /**
   * A volume or snapshot was created or deleted; the runtime writes its contents and reports `written`, or removes them and reports
   * `discarded`. A runtime without this method keeps no data.
   */
  volumeChanged?(id: string): void;
  /**
   * The reason why it cannot copy a volume of a region into another one, or into a snapshot; undefined if it can. The region of a
   * snapshot whose volume is gone is not known. Omitted by a runtime that can copy all.
   */
  copyProblem?(from: string | undefined, to: string | undefined): string | undefined;
  /**
   * What the Machines that run use now, by their ids. Omitted by a runtime that runs no programs.
   * @throws Error with a sentence for the reader of a chart if the engine cannot tell.
   */
  usage?(): Promise<ReadonlyMap<string, Usage>>;
  /** What a Machine's program wrote, oldest first. Omitted by a runtime that runs no programs. */
  logs?(machine: Subject, query: LogQuery): AsyncIterable<LogLine>;
  /** Machines or Apps have changed; also their cordons, checks, and the certificates of the App. */
  changed?(ids: ReadonlySet<string>): void;
  /** Postgres clusters have other addresses, or are gone. */
  readonly databasesChanged?: (() => void) | undefined;
  /** The contents of volumes, for backups. Omitted by a runtime that keeps none, or gives no access to them. */
  readonly archives?: VolumeArchives | undefined;
  /** Whether the host of a Machine cannot be reached now. If omitted, it always can. */
  isUnreachable?(id: string): boolean;
  /** Issues certificates by what the engine has for that. Omitted where the service does. */
  readonly issuer?: IssuerFactory | undefined;
  /** Leads the requests of an ACME authority to the service. Omitted where the proxy answers them. */
  readonly challengeRoutes?: ChallengeRoutes | undefined;
  /** Omitted by a runtime whose Machines cannot be reached; the service then has no proxy. */
  readonly reach?: Reach;
  /** A timer that the runtime set through its host is due. */
  due?(kind: RuntimeTimer, id: string): void;
  /** Compares what runs with the store, after a start of the service, and continues from there. */
  recover?(): void;
  /** Ends the work of the runtime. Machines continue to run if they are outside of this process. */
  close?(): Promise<void>;
}

/** Timers of runtimes. They are stored, so that they survive a restart. */
export type RuntimeTimer = "runtime.step" | "runtime.exit" | "runtime.checks";

/** The service as a runtime sees it. */
export interface RuntimeHost {
  readonly clock: Clock;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly events: RuntimeEvents;
  readonly stops: StoredStops;
  /** The current state of a Machine; undefined once it is destroyed. */
  subject(id: string): Subject | undefined;
  /** Ids of all Machines that are not destroyed. */
  ids(): readonly string[];
  /** An App by its id; undefined once it is deleted. */
  app(id: string): AppSubject | undefined;
  /** The addresses of the Postgres clusters that the Apps of a network can use: those of its organization. */
  databases(network: string): readonly Endpoint[];
  /** A volume or snapshot; undefined once it is deleted. */
  volume(id: string): VolumeSubject | undefined;
  /** Ids of volumes and snapshots that are not yet written, or deleted and not yet discarded. */
  unsettledVolumes(): readonly string[];
  /** The ports of a Machine can be reached now. */
  reachable(machine: string): void;
  /** Endpoints that were a Machine's may become another one's. */
  unreachable(endpoints: readonly string[]): void;
  /** Resolves once the proxy has no open request to a Machine; undefined if it has none now. */
  drained(machine: string): Promise<void> | undefined;
  /** Resolves once the changes that a call of the runtime belongs to are durable. */
  settled(): Promise<void>;
  /** Resolves once no other process can act for the same data; undefined while that is certain. Only what members share is ever not. */
  readonly unsure: Promise<void> | undefined;
  /** Identifies the data of this service among those of other services; it never changes. */
  readonly dataId: string;
  readonly log: Log;
}

/** Receives log lines. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

/** Creates the runtime of a service. It may use its host from the first call on, and not before. */
export type RuntimeFactory = (host: RuntimeHost) => Runtime;
