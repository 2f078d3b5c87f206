// What happens to a Machine: it enters a state, which is an event, and the state decides what follows.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { EventRow, MachineRow } from "../store/rows.ts";
import { touch, type World } from "../world.ts";
import type { Behaviour, Exit } from "../runtime/simulated.ts";
import { rfc3339 } from "./clock.ts";
import { periods } from "./delays.ts";
import { effects, steps, type MachineState, type PowerOperation } from "./machineStates.ts";

/** Why a Machine enters a state. */
export interface Cause {
  readonly type: string;
  readonly source: "user" | "flyd";
  readonly request?: object;
  /** What else changes with it. */
  readonly changes?: Partial<MachineRow>;
}

const eventsKept = 100;

export const findMachine = (world: World, id: string): MachineRow | undefined =>
  world.store.get<MachineRow>("SELECT * FROM machines WHERE id = ?", id);

/** The configuration as it stands in the store, without metadata. */
export const configOf = (machine: MachineRow): MachineConfig => JSON.parse(machine.config) as MachineConfig;

function behaviourOf(world: World, machine: MachineRow): Behaviour {
  const behaviour = world.runtime.behaviour(configOf(machine));
  return typeof behaviour === "string" ? {} : behaviour; // a mistake in it was refused with the request
}

/** Changes a Machine's row; `updated_at` moves with every change. */
export function changeMachine(world: World, machine: MachineRow, changes: Partial<MachineRow>): MachineRow {
  const all = { ...changes, updated_at: world.clock.now() };
  world.store.update("machines", "id", machine.id, all);
  touch(world, machine.id);
  return { ...machine, ...all };
}

/** Writes an event. ASSUMED: the latest 100 of a Machine are kept; 50 is the most that can be asked for. */
export function record(world: World, machine: MachineRow, cause: Cause, moved: boolean): void {
  const now = world.clock.now();
  const event: EventRow = {
    machine: machine.id,
    id: world.ids.ulid(now),
    type: cause.type,
    status: machine.state,
    source: cause.source,
    timestamp: now,
    request: cause.request ? JSON.stringify(cause.request) : null,
    version: machine.version,
    moved: moved ? 1 : 0,
  };
  world.store.insert("events", event);
  touch(world, machine.id);
  const old = "SELECT id FROM events WHERE machine = ? ORDER BY id DESC LIMIT 1 OFFSET ?";
  const last = world.store.get<{ id: string }>(old, machine.id, eventsKept);
  if (last) world.store.run("DELETE FROM events WHERE machine = ? AND id <= ?", machine.id, last.id);
}

/** Brings a Machine into a state and arranges what follows. */
export function enter(world: World, from: MachineRow, state: MachineState, cause: Cause): MachineRow {
  const { timers, delays } = world;
  timers.cancel(from.id, "machine.step", "machine.exit", "machine.checks");
  const checks =
    state === "started" || from.state !== "started"
      ? {}
      : { checks: "warning" as const, checked_at: world.clock.now() };
  const machine = changeMachine(world, from, { ...checks, ...cause.changes, state });
  record(world, machine, cause, true);
  const step = steps[state];
  if (step) {
    const startMs = state === "starting" ? behaviourOf(world, machine).startMs : undefined;
    timers.after(startMs ?? delays[step.after], "machine.step", machine.id);
  }
  if (state === "started") settleIn(world, machine);
  if (state === "destroyed") clearUp(world, machine);
  return machine;
}

/** What an operation of a client does to a Machine: the table decides (machineStates.ts). */
export function operate(world: World, machine: MachineRow, operation: PowerOperation, cause: Cause): MachineRow {
  const effect = effects[operation][machine.state];
  if (typeof effect === "function") throw effect(machine.state);
  if (effect !== "unchanged") return enter(world, machine, effect, cause);
  // Between two attempts of the restart policy a Machine reads `stopped`; a stop then ends the attempts.
  if (operation === "stop" && machine.state === "stopped") world.timers.cancel(machine.id, "machine.step");
  return machine;
}

/** The step that follows a state by itself. */
export function step(world: World, id: string): void {
  const machine = findMachine(world, id);
  if (!machine) return;
  if (machine.state === "stopped") return retry(world, machine);
  const next = steps[machine.state];
  if (!next) return;
  const crash = machine.state === "starting" ? behaviourOf(world, machine).crash : undefined;
  if (crash) return ended(world, machine, crash);
  const become = machine.launch === 0 && next.atRest ? next.atRest : next.become;
  const stopped =
    machine.state === "stopping"
      ? { request: exitRequest(world, machine, { code: 0, oom: false }, { requested: true, restarting: false }) }
      : {};
  enter(world, machine, become, { type: next.event, source: "flyd", ...stopped, ...endOf(world, become) });
}

const endOf = (world: World, state: MachineState): { changes?: Partial<MachineRow> } =>
  state === "destroyed" ? { changes: { destroyed_at: world.clock.now() } } : {};

function retry(world: World, machine: MachineRow): void {
  const restarts = machine.restarts + 1;
  enter(world, machine, "starting", {
    type: "restart",
    source: "flyd",
    request: { restart_count: restarts },
    changes: { restarts },
  });
}

/** A Machine has started: its checks get a result, its process may end, its volume has a file system from now on. */
function settleIn(world: World, machine: MachineRow): void {
  const { timers, delays } = world;
  const behaviour = behaviourOf(world, machine);
  timers.after(delays.checks, "machine.checks", machine.id);
  if (behaviour.exit) timers.after(delays.run, "machine.exit", machine.id);
  world.store.run("UPDATE volumes SET mounted = 1 WHERE machine = ? AND mounted = 0", machine.id);
}

/** A destroyed Machine's lease ends with it; its volume is free a moment later. */
function clearUp(world: World, machine: MachineRow): void {
  const { store, timers, delays } = world;
  store.run("DELETE FROM leases WHERE machine = ?", machine.id);
  timers.cancel(machine.id, "machine.schedule");
  timers.after(periods.destroyedKept, "machine.forget", machine.id);
  for (const { id } of store.all<{ id: string }>("SELECT id FROM volumes WHERE machine = ?", machine.id)) {
    timers.after(delays.unbind, "volume.unbind", id);
  }
}

/** The checks have a result. */
export function check(world: World, id: string): void {
  const machine = findMachine(world, id);
  if (!machine) return;
  const checks = behaviourOf(world, machine).checksFail ? "critical" : "passing";
  world.store.update("machines", "id", id, { checks, checked_at: world.clock.now() });
  touch(world, id);
}

/** The main process of a started Machine ends. */
export function exit(world: World, id: string): void {
  const machine = findMachine(world, id);
  const how = machine && behaviourOf(world, machine).exit;
  if (how) ended(world, machine, how);
}

/** The main process has ended by itself: destroyed, started again, or left as it is, as the configuration says. */
function ended(world: World, machine: MachineRow, how: Exit): void {
  const config = configOf(machine);
  const crashed = machine.state === "starting";
  if (config.auto_destroy) {
    enter(world, machine, "destroying", {
      type: "exit",
      source: "flyd",
      request: exitRequest(world, machine, how, { requested: false, restarting: false }),
    });
    return;
  }
  const { policy = "on-failure", max_retries = 10 } = config.restart ?? {};
  const failed = how.code !== 0;
  const restarting = policy === "always" || (policy !== "no" && failed && machine.restarts < max_retries);
  // ASSUMED: `failed` once the retries are used up, or when the process never came up and is not to be started again.
  const state = !restarting && failed && (policy !== "no" || crashed) ? "failed" : "stopped";
  const request = exitRequest(world, machine, how, { requested: false, restarting });
  enter(world, machine, state, { type: "exit", source: "flyd", request });
  if (restarting)
    world.timers.after(policy === "always" ? world.delays.retryAlways : world.delays.retry, "machine.step", machine.id);
}

function exitRequest(
  world: World,
  machine: MachineRow,
  how: Exit,
  why: { requested: boolean; restarting: boolean },
): object {
  return {
    exit_event: {
      exit_code: how.code,
      guest_exit_code: how.code,
      guest_signal: how.oom ? 9 : -1,
      signal: -1,
      oom_killed: how.oom,
      requested_stop: why.requested,
      restarting: why.restarting,
      exited_at: rfc3339(world.clock.now()),
      error: "",
    },
    restart_count: machine.restarts,
  };
}

/** Starts a Machine whose `schedule` has come round, and waits for the next time. */
export function scheduled(world: World, id: string): void {
  const machine = findMachine(world, id);
  if (!machine || machine.destroyed_at !== null) return;
  schedule(world, machine);
  if (machine.state === "stopped" || machine.state === "failed") {
    enter(world, machine, "starting", { type: "start", source: "flyd", changes: { launch: 1, restarts: 0 } });
  }
}

/** Arms the schedule of a Machine, or takes it back. */
export function schedule(world: World, machine: MachineRow): void {
  const { schedule: every } = configOf(machine);
  world.timers.cancel(machine.id, "machine.schedule");
  if (every) world.timers.after(periods.schedule[every], "machine.schedule", machine.id);
}

/** Whether a Machine rests: nothing further happens to its state by itself. */
export const isSettled = (world: World, machine: MachineRow): boolean =>
  (machine.state === "started" ||
    machine.state === "stopped" ||
    machine.state === "suspended" ||
    machine.state === "failed") &&
  !world.timers.pending(machine.id, "machine.step");
