// The states of a Machine as data (docs/interface.md#machine-states): the effect of each operation, and the automatic
// steps.
import type { Refusal } from "../refusal.ts";
import { refuse } from "../refusal.ts";

/** The states of Machines in this service. */
export const machineStates = [
  "created",
  "starting",
  "started",
  "stopping",
  "stopped",
  "restarting",
  "suspending",
  "suspended",
  "replacing",
  "failed",
  "destroying",
  "destroyed",
] as const;

/** A state of a Machine. */
export type MachineState = (typeof machineStates)[number];

/** States in which a Machine stays until the next operation. `created` is not among them: a Machine always leaves it here. */
export const restingStates: readonly MachineState[] = ["started", "stopped", "suspended", "failed"];

/** Operations whose outcome depends on the state. `kill` is destroy with `force`. */
export type PowerOperation = "start" | "stop" | "restart" | "suspend" | "update" | "destroy" | "kill";

/** The effect of an operation: enter a state, change nothing (for instance stop a stopped Machine), or refuse. */
export type Effect = MachineState | "unchanged" | ((state: MachineState) => Refusal);

const precondition = (text: string) => (state: MachineState) =>
  refuse(412, `failed_precondition: ${text.replace("%", state)}`);
const cannot = (verb: string) => precondition(`unable to ${verb} machine from current state: '%'`);
const starts = (): Refusal => refuse(409, "aborted: machine still attempting to start");
const runs = precondition("unable to destroy machine, not currently stopped, suspended, failed or created");
const gone = (): Refusal => refuse(404, "not_found: machine not found");

// ASSUMED: a failed Machine may be started, stopped and restarted; a suspended one may be restarted, which ends its process instead of
// resuming it; an operation whose result is reached or under way changes nothing; an update is accepted in every live state.
/** The effect of every operation in every state. */
export const effects: Readonly<Record<PowerOperation, Readonly<Record<MachineState, Effect>>>> = {
  start: {
    created: cannot("start"),
    starting: starts,
    started: starts,
    stopping: cannot("start"),
    stopped: "starting",
    restarting: starts,
    suspending: cannot("start"),
    suspended: "starting",
    replacing: cannot("start"),
    failed: "starting",
    destroying: cannot("start"),
    destroyed: gone,
  },
  stop: {
    created: cannot("stop"),
    starting: "stopping",
    started: "stopping",
    stopping: "unchanged",
    stopped: "unchanged",
    restarting: "stopping",
    suspending: cannot("stop"),
    suspended: "stopping",
    replacing: cannot("stop"),
    failed: "stopping",
    destroying: cannot("stop"),
    destroyed: gone,
  },
  restart: {
    created: cannot("restart"),
    starting: cannot("restart"),
    started: "restarting",
    stopping: cannot("restart"),
    stopped: "starting",
    restarting: "unchanged",
    suspending: cannot("restart"),
    suspended: "restarting",
    replacing: cannot("restart"),
    failed: "starting",
    destroying: cannot("restart"),
    destroyed: gone,
  },
  suspend: {
    created: cannot("suspend"),
    starting: cannot("suspend"),
    started: "suspending",
    stopping: cannot("suspend"),
    stopped: cannot("suspend"),
    restarting: cannot("suspend"),
    suspending: "unchanged",
    suspended: "unchanged",
    replacing: cannot("suspend"),
    failed: cannot("suspend"),
    destroying: cannot("suspend"),
    destroyed: gone,
  },
  update: {
    created: "replacing",
    starting: "replacing",
    started: "replacing",
    stopping: "replacing",
    stopped: "replacing",
    restarting: "replacing",
    suspending: "replacing",
    suspended: "replacing",
    replacing: "replacing",
    failed: "replacing",
    destroying: cannot("update"),
    destroyed: gone,
  },
  destroy: {
    created: "destroying",
    starting: runs,
    started: runs,
    stopping: runs,
    stopped: "destroying",
    restarting: runs,
    suspending: runs,
    suspended: "destroying",
    replacing: runs,
    failed: "destroying",
    destroying: "unchanged",
    destroyed: gone,
  },
  kill: {
    created: "destroying",
    starting: "destroying",
    started: "destroying",
    stopping: "destroying",
    stopped: "destroying",
    restarting: "destroying",
    suspending: "destroying",
    suspended: "destroying",
    replacing: "destroying",
    failed: "destroying",
    destroying: "unchanged",
    destroyed: gone,
  },
};

/** The call to the runtime when a Machine enters a state. */
export type RuntimeCall = "create" | "start" | "stop" | "suspend" | "destroy";

/** Reports of a runtime about a Machine (runtime/runtime.ts). */
export type RuntimeEvent = "prepared" | "started" | "exited" | "suspended" | "destroyed";

/** The automatic step after a state. */
export interface Step {
  /** The call to the runtime. */
  readonly call: RuntimeCall;
  /** The report of the runtime when it is done. */
  readonly on: RuntimeEvent;
  readonly become: MachineState;
  /** The next state if the Machine is not meant to run (`skip_launch`). */
  readonly atRest?: MachineState;
  /** Type of the event. */
  readonly event: string;
}

/** The step after each state. Unexpected exits of processes are not listed (lifecycle/machines.ts). */
export const steps: Readonly<Partial<Record<MachineState, Step>>> = {
  created: { call: "create", on: "prepared", become: "starting", atRest: "stopped", event: "launch" },
  starting: { call: "start", on: "started", become: "started", event: "start" },
  stopping: { call: "stop", on: "exited", become: "stopped", event: "exit" },
  restarting: { call: "stop", on: "exited", become: "starting", event: "restart" },
  suspending: { call: "suspend", on: "suspended", become: "suspended", event: "suspend" },
  // ASSUMED: an update with `skip_launch` leaves the Machine stopped in every case: a snapshot or a running process
  // belongs to the old version.
  replacing: { call: "create", on: "prepared", become: "starting", atRest: "stopped", event: "update" },
  destroying: { call: "destroy", on: "destroyed", become: "destroyed", event: "destroy" },
};
