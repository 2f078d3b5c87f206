// The interface of drivers. The reconciler decides what a Machine or volume needs next; a driver says what its engine has, and does
// one thing at a time. Everything about one engine is behind this interface.
import type { Readable } from "node:stream";
import type { SignalName } from "../../../api/signals.ts";
import type { Listens } from "../probe.ts";
import type {
  Exit,
  FoundImage,
  LogLine,
  LogQuery,
  Runtime,
  StopRequest,
  Subject,
  Usage,
  VolumeSubject,
} from "../runtime.ts";

/** Something that the engine has for a Machine: a container, a Pod. A driver adds its own fields. */
export interface Instance {
  /** No other instance ever has it. */
  readonly id: string;
  /** Whether it is of the Machine's version. */
  readonly isCurrent: boolean;
  /** Whether something of it runs, or may still begin to run by itself. */
  readonly isAlive: boolean;
  /** Whether it runs and is paused. */
  readonly isPaused: boolean;
  /** Whether `start` can start it, or has begun to; if not, this start needs another one. */
  readonly canStart: boolean;
  /** Identifies its latest run, for its logs; undefined if it has not run yet. */
  readonly run: string | undefined;
  /** The signal that its own version is stopped with; undefined for that of the Machine's version. */
  readonly stopSignal?: SignalName;
  /** The digest of the image that it runs, if it is known only now. */
  readonly digest?: string | undefined;
}

/** Where the ports of a started Machine are. */
export interface Published {
  /** Changes with each run of the process. */
  readonly run: string;
  /** Endpoints as `host:port`, by the ports of the Machine; none while others end it. */
  readonly endpoints: ReadonlyMap<number, string>;
  /** Whether a program listens at a port; undefined if only a connection shows that. */
  readonly listens: (port: number) => ReturnType<Listens>;
}

/** A Machine cannot be run, or a volume cannot be had, for this reason: a sentence. */
export class Impossible extends Error {}

/** Errors of requests to an engine. */
export interface Failures {
  /** The log line of a step that is tried again. */
  readonly failed: string;
  /** The reason of an error, as a sentence. */
  readonly reasonOf: (error: unknown) => string;
  /** Whether the engine has refused, so that a Machine fails with the reason; if not, the same request may succeed later. */
  readonly isRefusal: (error: unknown) => boolean;
}

/** Pauses processes and continues them, with their memory. */
export interface Pauses<I extends Instance> {
  pause(instance: I): Promise<void>;
  resume(instance: I): Promise<void>;
}

/** Ways of the engine itself by which requests reach Machines, beside the service's proxy. */
export interface Routes<I extends Instance> {
  /** A started Machine gets requests if it is ready. */
  offer(machine: Subject, instance: I, isReady: boolean): Promise<void>;
  /** A Machine gets no requests any more. */
  withdraw(machine: Subject): Promise<void>;
  /** Milliseconds until a withdrawn Machine gets no requests any more. */
  drainMs(id: string): number;
  /** The Machines or the certificates of an App have changed. */
  appChanged(id: string): void;
  /** Something is gone, or cannot be reached: perhaps an App. */
  gone?(id: string): void;
}

/** Volumes and snapshots. Nothing is removed before the service has deleted it, nor while a copy of it is missing. */
export interface VolumeDriver {
  /** All that the engine has of this service. */
  all(): Promise<readonly { readonly id: string; readonly name: string | undefined }[]>;
  /** Whether the engine has a volume. */
  has(id: string): Promise<boolean>;
  /** Creates an empty volume. */
  create(volume: VolumeSubject): Promise<void>;
  /**
   * Copies its source, completely, or one step that continues when the driver reports a change. Returns the bytes once it is complete.
   * @throws Impossible if the source is missing.
   */
  copy(volume: VolumeSubject, source: string): Promise<number | undefined>;
  /** Does what else a volume needs that has its contents. */
  settle?(volume: VolumeSubject): Promise<void>;
  /** Removes a volume or snapshot; false as long as the engine needs it, or is removing it. */
  remove(id: string): Promise<boolean>;
  /** Omitted if the engine gives no access to contents. */
  readonly frozen?: FrozenVolumes;
}

/** The contents of volumes, for backups. */
export interface FrozenVolumes {
  /**
   * Makes a copy of a volume as of one moment, and returns its id; for a snapshot its own.
   * @throws Impossible if the volume is missing.
   */
  readonly freeze: (volume: VolumeSubject) => Promise<string>;
  /** Reads the contents of the volume or snapshot with this id, which `freeze` has returned. */
  readonly read: (frozen: string, use: (archive: Readable) => Promise<void>) => Promise<void>;
  /** Creates a volume or snapshot with the contents of an archive. */
  readonly write: (id: string, archive: Readable, signal: AbortSignal) => Promise<void>;
  /** Removes the copies that an interrupted backup has left. */
  readonly tidy: () => Promise<void>;
}

/** What an engine does. Each method is one step: it is repeated after a failure, and after the service was killed. */
export interface Driver<I extends Instance> extends Pick<
  Runtime,
  | "name"
  | "problem"
  | "hasRoom"
  | "exec"
  | "terminal"
  | "processes"
  | "databasesChanged"
  | "challengeRoutes"
  | "issuer"
  | "isUnreachable"
> {
  /** {@link Runtime.usage} */
  usage(): Promise<ReadonlyMap<string, Usage>>;
  /** The reason why it cannot copy volumes; undefined if it can. */
  readonly copyProblem?: string | undefined;
  /** The engine in messages: `the container engine`. */
  readonly place: string;
  readonly failures: Failures;
  /** Whether it knows what the engine has. Until then nothing is done; `lookAtAll` follows. */
  readonly isReady: boolean;
  /** Whether `remove` ends a process at once; if not, it is stopped before. */
  readonly killsOnRemove: boolean;
  /** Omitted if the engine cannot keep the memory of a process. A suspended Machine is then a stopped one. */
  readonly pauses?: Pauses<I>;
  /** Omitted if only the service's proxy leads requests to Machines. */
  readonly routes?: Routes<I>;
  readonly volumes: VolumeDriver;

  findImage(image: string): Promise<FoundImage>;
  /** Begins to report changes, and everything that the engine has after each connection to it. */
  begin(): void;
  /** Ends its own work; `stepsEnded` resolves when no step runs any more. */
  close(stepsEnded: Promise<void>): Promise<void>;
  /** The instances of a Machine, newest first; also of one that the service no longer has. */
  observe(id: string, machine: Subject | undefined): Promise<readonly I[]>;
  /** Prepares the start of a new version. */
  prepare(machine: Subject, instances: readonly I[]): Promise<void>;
  /**
   * Starts an instance, or creates one. Returns true once it runs or did so, an exit if it never will, and false if it takes longer:
   * then the step is repeated when the driver reports a change.
   */
  start(machine: Subject, instances: readonly I[]): Promise<boolean | Exit>;
  /** Asks an instance to end. The reconciler kills it when the time is over. */
  stop(instance: I, request: StopRequest): Promise<void>;
  kill(instance: I): Promise<void>;
  /** Removes everything that belongs to a Machine. */
  remove(id: string): Promise<void>;
  /** How the current instance ended, with its last lines; undefined if it is gone. */
  exitOf(machine: Subject, instance: I | undefined): Promise<Exit>;
  /** Where a started Machine is reached; undefined if it is not, yet. */
  publishedOf(machine: Subject, instance: I): Published | undefined;
  /** Applies the memory limit of a Machine, if it is another one. */
  limitMemory(machine: Subject, instance: I): Promise<void>;
  /** What one run wrote. */
  logs(machine: string, instance: I, query: LogQuery): AsyncIterable<LogLine>;
  /** Sends a signal to the main process. */
  signal(machine: Subject, signal: SignalName): Promise<void>;
}

/** The reconciler as a driver sees it. */
export interface Reports {
  /** Something about a Machine or its instances has changed. */
  changed(id: string): void;
  /** Something about a volume or snapshot has changed. */
  volumeChanged(id: string): void;
  /** Looks at a Machine again after some milliseconds, and no longer at the time that was set before. */
  lookLater(id: string, ms: number): void;
  /** The engine was connected: looks at all Machines, at these that the engine has, and at all volumes. */
  lookAtAll(ids: Iterable<string>): Promise<void>;
  /** Whether all checks of a started Machine pass. */
  isServing(id: string): boolean;
  /** Lets the current step of a Machine end, and begins none until the returned function is called. Its checks are paused. */
  hold(id: string): Promise<() => void>;
  /** Aborted when the service ends. */
  readonly closed: AbortSignal;
}

/** Creates the driver of a service. It may use the reports from `begin` on. */
export type DriverFactory<I extends Instance> = (reports: Reports) => Driver<I>;
