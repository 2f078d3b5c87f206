// What runs Machines. The service decides what is to happen; a runtime does it and tells what happened. Everything about
// processes is behind this, so that one runtime may simulate them and another start containers.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { SignalName } from "../../api/signals.ts";
import type { Clock } from "../time/clock.ts";
import type { Delays } from "../time/delays.ts";
import type { Timers } from "../time/timers.ts";

/** A Machine as a runtime sees it. */
export interface Subject {
  readonly id: string;
  readonly app: string;
  readonly name: string;
  readonly region: string;
  readonly version: string;
  readonly privateIp: string;
  readonly state: string;
  readonly config: MachineConfig;
  /** Limit in MB that was set while it runs; undefined when it is the configuration's. */
  readonly memoryLimitMb: number | undefined;
  /** The App's secrets that it is given, by name; decrypted when asked for. */
  readonly secrets: () => Readonly<Record<string, string>>;
}

/** How the main process ended. */
export interface Exit {
  readonly code: number;
  /** Number of the signal that ended it; 0 when none did. */
  readonly signal: number;
  readonly oom: boolean;
  /** Whether it was asked to. */
  readonly requested: boolean;
}

/** How a process is asked to end. */
export interface StopRequest {
  readonly signal: SignalName;
  /** Milliseconds until it is killed. */
  readonly timeoutMs: number;
}

/** A command to run beside the main process. */
export interface Command {
  readonly words: readonly string[];
  readonly stdin: string;
  readonly timeoutMs: number;
  /** Aborted when nobody wants to know any more. */
  readonly signal: AbortSignal;
}

/** What became of a command. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly exitSignal: number;
}

/** A process of a Machine, as `ps` answers it. */
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

/** Which Machine an event is about, and which version of it. */
export type About = Pick<Subject, "id" | "version">;

/** What a runtime tells. What comes too late, for another state or another version of the Machine, is passed over. */
export interface RuntimeEvents {
  /** The image is there; the Machine can be started. */
  prepared(machine: About): void;
  started(machine: About): void;
  /** The main process has ended. */
  exited(machine: About, exit: Exit): void;
  suspended(machine: About): void;
  destroyed(machine: About): void;
  checked(machine: About, status: "passing" | "critical"): void;
}

/**
 * Runs Machines. What changes a Machine is called inside the transaction that decided it, returns at once and is answered
 * by an event, perhaps after a restart of the service: a runtime that works outside the store looks at what it has when it
 * is made.
 */
export interface Runtime {
  /** What keeps this runtime from running a configuration, as the field and a sentence; undefined when nothing does. */
  problem(config: MachineConfig): { readonly field: string; readonly message: string } | undefined;
  /** Whether a host has room for a Machine of this configuration, beyond what the region's capacity says. */
  hasRoom(config: MachineConfig): boolean;
  /** Gets a Machine ready to start, as new or in a new version; then `prepared`. */
  create(machine: Subject): void;
  /** Then `started`, or `exited` when it never came up. Later `checked`, `exited`. */
  start(machine: Subject): void;
  /** Then `exited`. */
  stop(machine: Subject, request: StopRequest): void;
  /** Then `suspended`. */
  suspend(machine: Subject): void;
  /** Then `destroyed`. */
  destroy(machine: Subject): void;
  /** Sends a signal to the main process; `exited` when it ends by it. */
  signal(machine: Subject, signal: SignalName): void;
  /** Runs a command; undefined when it did not end in time. */
  exec(machine: Subject, command: Command): Promise<Outcome | undefined>;
  processes(machine: Subject): Promise<readonly Process[]>;
  /** The memory there is under the Machine's limit. */
  memory(machine: Subject): Promise<Memory>;
  /** Takes memory back; MB that came of it. */
  reclaim(machine: Subject, amountMb: number): Promise<number>;
  /** Something the runtime arranged through its host's timers is due. */
  due?(kind: RuntimeTimer, id: string): void;
}

/** Timers of runtimes; those of the store, so that they outlive a restart. */
export type RuntimeTimer = "runtime.step" | "runtime.exit" | "runtime.checks";

/** What a runtime is made with. */
export interface RuntimeHost {
  readonly clock: Clock;
  readonly delays: Delays;
  readonly timers: Timers;
  readonly events: RuntimeEvents;
  /** A Machine as it is now. */
  subject(id: string): Subject | undefined;
}

/** Makes the runtime of a service. */
export type RuntimeFactory = (host: RuntimeHost) => Runtime;
