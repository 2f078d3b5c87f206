// The interface of runtimes, which run Machines. The service decides; a runtime acts and reports. Everything about processes
// is behind this interface: one runtime may simulate them, another may start containers.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { SignalName } from "../../api/signals.ts";
import type { Clock } from "../time/clock.ts";
import type { Delays } from "../time/delays.ts";
import type { Timers } from "../time/timers.ts";

/** A Machine in the form of a runtime. */
export interface Subject {
  readonly id: string;
  readonly app: string;
  readonly name: string;
  readonly region: string;
  readonly version: string;
  readonly privateIp: string;
  readonly state: string;
  readonly config: MachineConfig;
  /** Memory limit in MB that was set at run time; undefined when the configured one applies. */
  readonly memoryLimitMb: number | undefined;
  /** The App's secrets by name; decrypted on each call. */
  readonly secrets: () => Readonly<Record<string, string>>;
}

/** How the main process exited. */
export interface Exit {
  readonly code: number;
  /** Number of the signal that ended it; 0 if there was none. */
  readonly signal: number;
  readonly oom: boolean;
  /** Whether it exited on request. */
  readonly requested: boolean;
}

/** A request to stop a process. */
export interface StopRequest {
  readonly signal: SignalName;
  /** Milliseconds until it is killed. */
  readonly timeoutMs: number;
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

/** Memory of a Machine in MB. */
export interface Memory {
  readonly limitMb: number;
  readonly availableMb: number;
}

/** The Machine and version of a report. */
export type About = Pick<Subject, "id" | "version">;

/** Reports of a runtime. A late report, for another state or version of the Machine, is ignored. */
export interface RuntimeEvents {
  /** The image is available, so the Machine can be started. */
  prepared(machine: About): void;
  started(machine: About): void;
  /** The main process has exited. */
  exited(machine: About, exit: Exit): void;
  suspended(machine: About): void;
  destroyed(machine: About): void;
  checked(machine: About, status: "passing" | "critical"): void;
}

/**
 * Runs Machines. Methods that change a Machine are called inside the transaction of the decision and return at once. Their
 * result is reported later, perhaps after a restart of the service. A runtime with state outside of the store must therefore
 * recover that state when it is created.
 */
export interface Runtime {
  /** The reason why this runtime cannot run a configuration, as the field and a sentence; undefined when it can. */
  problem(config: MachineConfig): { readonly field: string; readonly message: string } | undefined;
  /** Whether a host has capacity for a Machine with this configuration, in addition to the region's capacity. */
  hasRoom(config: MachineConfig): boolean;
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
  processes(machine: Subject): Promise<readonly Process[]>;
  /** The memory of the Machine and its limit. */
  memory(machine: Subject): Promise<Memory>;
  /** Reclaims memory and returns the number of MB. */
  reclaim(machine: Subject, amountMb: number): Promise<number>;
  /** A timer that the runtime set through its host is due. */
  due?(kind: RuntimeTimer, id: string): void;
}

/** Timers of runtimes. They are stored, so that they survive a restart. */
export type RuntimeTimer = "runtime.step" | "runtime.exit" | "runtime.checks";

/** The service in the form of a runtime. */
export interface RuntimeHost {
  readonly clock: Clock;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly events: RuntimeEvents;
  /** The current state of a Machine. */
  subject(id: string): Subject | undefined;
}

/** Creates the runtime of a service. */
export type RuntimeFactory = (host: RuntimeHost) => Runtime;
