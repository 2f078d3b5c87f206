// What happens to a Machine: it enters a state, which is an event, and the state decides what follows.
import type { MachineConfig } from "../../api/machineConfig.ts";
import { parseDuration } from "../../api/schema.ts";
import { machineColumns, type EventRow, type MachineExtras, type MachineRow } from "../store/rows.ts";
import { touch, touchAnswer, type World } from "../world.ts";
import type { About, Exit, StopRequest, Subject } from "../runtime/runtime.ts";
import { releaseSet, secretsOf } from "../store/secretValues.ts";
import { rfc3339 } from "./clock.ts";
import { periods } from "./delays.ts";
import {
  effects,
  steps,
  type MachineState,
  type PowerOperation,
  type RuntimeCall,
  type RuntimeEvent,
} from "./machineStates.ts";

/** Why a Machine enters a state. */
export interface Cause {
  readonly type: string;
  readonly source: "user" | "flyd";
  readonly request?: object;
  /** What else changes with it. */
  readonly changes?: MachineChanges;
  /** How the process is asked to end; as the configuration says when left out. */
  readonly stop?: StopRequest;
}

/** What may change of a Machine's row. */
export type MachineChanges = Partial<MachineRow & MachineExtras>;

const eventsKept = 100;

export const findMachine = (world: World, id: string): MachineRow | undefined =>
  world.machineRows.get(id, () =>
    world.store.get<MachineRow>(`SELECT ${machineColumns} FROM machines WHERE id = ?`, id),
  );

const configSql = "SELECT config FROM machine_versions WHERE machine = ? AND version = ?";

// Longer ones are taken apart again each time: as objects they take several times the memory of their text.
const longestParsed = 4096;

/** The configuration of a version: its text, and what the text says once somebody has asked. */
export class StoredConfig {
  readonly text: string;
  #parsed: MachineConfig | undefined;

  constructor(text: string, parsed?: MachineConfig) {
    this.text = text;
    if (text.length <= longestParsed) this.#parsed = parsed;
  }

  get parsed(): MachineConfig {
    const parsed = this.#parsed ?? (JSON.parse(this.text) as MachineConfig);
    if (this.text.length <= longestParsed) this.#parsed = parsed;
    return parsed;
  }

  /** About how many characters of memory it takes. */
  get weight(): number {
    return this.text.length <= longestParsed ? 4 * this.text.length : this.text.length;
  }
}

const noConfig = new StoredConfig("{}");

/** The configuration of a Machine's version as it is in the store, without metadata. */
export const storedConfig = (
  { store, configs }: World,
  { id, version }: Pick<MachineRow, "id" | "version">,
): StoredConfig =>
  configs.get(`${id} ${version}`, () => {
    const text = store.get<{ config: string }>(configSql, id, version)?.config;
    return text === undefined ? undefined : new StoredConfig(text);
  }) ?? noConfig;

/** The configuration of a Machine, without metadata. */
export const configOf = (world: World, machine: Pick<MachineRow, "id" | "version">): Readonly<MachineConfig> =>
  storedConfig(world, machine).parsed;

/** A Machine as the runtime sees it. What costs something is found when it is asked for. */
export function subjectOf(world: World, machine: MachineRow): Subject {
  const { id, name, region, version, private_ip, state, memory_limit_mb } = machine;
  let config: MachineConfig | undefined;
  return {
    ...{ id, name, region, version, state },
    privateIp: private_ip,
    memoryLimitMb: memory_limit_mb ?? undefined,
    get app() {
      // The name of an App that is being removed has more behind it (removal.ts).
      return (
        world.store.get<{ name: string }>("SELECT name FROM apps WHERE id = ?", machine.app)?.name.split("/", 1)[0] ??
        ""
      );
    },
    get config() {
      return (config ??= configOf(world, machine));
    },
    secrets: () => secretsOf(world, machine),
  };
}

/** How a Machine is asked to stop when nothing else is said (docs/interface.md#limits: five seconds, at most 300). */
export function stopRequest({ signal = "SIGINT", timeout }: MachineConfig["stop_config"] = {}): StopRequest {
  const lasts = timeout === undefined ? undefined : parseDuration(timeout);
  return { signal, timeoutMs: Math.min(lasts === undefined ? 5000 : lasts / 1e6, 300_000) };
}

/** Changes a Machine's row; `updated_at` moves with every change. */
export function changeMachine(world: World, machine: MachineRow, changes: MachineChanges): MachineRow {
  const all: MachineChanges = { ...changes, updated_at: world.clock.now() };
  const { brief: _brief, standby: _standby, ...seen } = all;
  const changed = { ...machine, ...seen };
  // A Machine that was just made enters its first state as it is.
  const names = Object.keys(all) as (keyof MachineRow)[];
  if (names.some((name) => all[name] !== machine[name])) world.store.update("machines", "id", machine.id, all);
  touch(world, machine.id);
  if (changes.secret_set !== undefined && changes.secret_set !== machine.secret_set)
    releaseSet(world.store, machine.secret_set);
  world.machineRows.set(machine.id, changed);
  return changed;
}

/** Writes an event. ASSUMED: the latest 100 events of a Machine are kept; 50 is the most that can be asked for. */
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
  touchAnswer(world, machine.id);
  const old = "SELECT id FROM events WHERE machine = ? ORDER BY id DESC LIMIT 1 OFFSET ?";
  const last = world.store.get<{ id: string }>(old, machine.id, eventsKept);
  if (last) world.store.run("DELETE FROM events WHERE machine = ? AND id <= ?", machine.id, last.id);
}

/** Brings a Machine into a state and lets the runtime do what follows. */
export function enter(world: World, from: MachineRow, state: MachineState, cause: Cause): MachineRow {
  if (from.state === "stopped") world.timers.cancel(from.id, "machine.retry");
  const checks =
    state === "started" || from.state !== "started"
      ? {}
      : { checks: "warning" as const, checked_at: world.clock.now() };
  const machine = changeMachine(world, from, { ...checks, ...cause.changes, state });
  record(world, machine, cause, true);
  const step = steps[state];
  if (step) ask(world, machine, step.call, cause.stop);
  if (state === "started" && configOf(world, machine).mounts?.length) {
    const mounted = "UPDATE volumes SET mounted = 1, updated_at = ? WHERE machine = ? AND mounted = 0";
    world.store.run(mounted, world.clock.now(), machine.id);
  }
  if (state === "failed") startStandbys(world, machine);
  if (state === "destroyed") clearUp(world, machine);
  return machine;
}

function ask(world: World, machine: MachineRow, call: RuntimeCall, request: StopRequest | undefined): void {
  const subject = subjectOf(world, machine);
  if (call === "stop") world.runtime.stop(subject, request ?? stopRequest(subject.config.stop_config));
  else world.runtime[call](subject);
}

/** What an operation of a client does to a Machine: the table decides (machineStates.ts). */
export function operate(world: World, machine: MachineRow, operation: PowerOperation, cause: Cause): MachineRow {
  const effect = effects[operation][machine.state];
  if (typeof effect === "function") throw effect(machine.state);
  if (effect !== "unchanged") return enter(world, machine, effect, cause);
  // ASSUMED: a stop while a crashed Machine waits for its next attempt, when it reads `stopped`, ends the attempts.
  if (operation === "stop" && machine.state === "stopped") world.timers.cancel(machine.id, "machine.retry");
  return machine;
}

/** The Machine an event is about, unless another version has taken its place. */
function current(world: World, { id, version }: About): MachineRow | undefined {
  const machine = findMachine(world, id);
  return machine?.version === version ? machine : undefined;
}

/** What a runtime tells is turned into the next state, by the table. */
export function happened(world: World, about: About, event: RuntimeEvent): void {
  const machine = current(world, about);
  const step = machine && steps[machine.state];
  if (!step || step.on !== event) return; // it has gone on since
  const become = machine.launch === 0 && step.atRest ? step.atRest : step.become;
  // What is destroyed runs nothing more that its secrets could be for.
  const changes = become === "destroyed" ? { destroyed_at: world.clock.now(), secret_set: null } : {};
  enter(world, machine, become, { type: step.event, source: "flyd", changes });
}

/** States in which an end of the main process is nobody's wish. */
const alive: readonly MachineState[] = ["starting", "started", "suspending"];

/** The main process has ended, asked to or by itself. */
export function exited(world: World, about: About, exit: Exit): void {
  const machine = current(world, about);
  if (!machine) return;
  const step = steps[machine.state];
  if (step?.on === "exited") {
    const request = exitRequest(world, machine, { ...exit, requested: true }, false);
    const leaves = machine.state === "stopping" && configOf(world, machine).auto_destroy === true;
    enter(world, machine, leaves ? "destroying" : step.become, { type: step.event, source: "flyd", request });
  } else if (alive.includes(machine.state)) ended(world, machine, exit);
}

/** The main process has ended by itself: destroyed, started again, or left as it is, as the configuration says. */
function ended(world: World, machine: MachineRow, exit: Exit): void {
  const config = configOf(world, machine);
  const crashed = machine.state === "starting";
  if (config.auto_destroy) {
    const request = exitRequest(world, machine, exit, false);
    enter(world, machine, "destroying", { type: "exit", source: "flyd", request });
    return;
  }
  const { policy = "on-failure", max_retries = 10 } = config.restart ?? {};
  const failed = exit.code !== 0;
  const restarting = policy === "always" || (policy !== "no" && failed && retriesOf(world, machine) < max_retries);
  // ASSUMED: a Machine is `failed` once its retries are used up, or when its process never came up and is not to be started
  // again; one whose process ended later is `stopped`.
  const state = !restarting && failed && (policy !== "no" || crashed) ? "failed" : "stopped";
  const request = exitRequest(world, machine, exit, restarting);
  enter(world, machine, state, { type: "exit", source: "flyd", request });
  if (restarting)
    world.timers.after(
      policy === "always" ? world.delays.retryAlways : world.delays.retry,
      "machine.retry",
      machine.id,
    );
}

/** Times the restart policy has started a Machine lately. */
const retriesOf = (world: World, { restarts, retried_from }: MachineRow): number =>
  world.clock.now() - retried_from < periods.retries ? restarts : 0;

/** The restart policy starts a Machine again. */
export function retry(world: World, id: string): void {
  const machine = findMachine(world, id);
  if (machine?.state !== "stopped") return;
  const before = retriesOf(world, machine);
  const restarts = before + 1;
  enter(world, machine, "starting", {
    type: "restart",
    source: "flyd",
    request: { restart_count: restarts },
    changes: { restarts, ...(before === 0 ? { retried_from: world.clock.now() } : {}) },
  });
}

/**
 * A Machine that has failed is stood in for. ASSUMED: a standby starts when a Machine it stands by for has failed; hosts, whose end the platform means,
 * do not end here.
 */
function startStandbys(world: World, failed: MachineRow): void {
  const stopped = world.store.all<MachineRow>(
    `SELECT ${machineColumns} FROM machines WHERE app = ? AND standby = 1 AND state = 'stopped'`,
    failed.app,
  );
  for (const machine of stopped)
    if (configOf(world, machine).standbys?.includes(failed.id))
      enter(world, machine, "starting", { type: "start", source: "flyd", changes: { launch: 1, restarts: 0 } });
}

/** A destroyed Machine's lease ends with it. ASSUMED: its volume is free a moment after it is destroyed; an update lets go of one at once. */
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
export function checked(world: World, about: About, checks: "passing" | "critical"): void {
  const { id } = about;
  if (current(world, about)?.state !== "started") return;
  world.store.update("machines", "id", id, { checks, checked_at: world.clock.now() });
  touch(world, id);
}

function exitRequest(world: World, machine: MachineRow, exit: Exit, restarting: boolean): object {
  return {
    exit_event: {
      exit_code: exit.code,
      guest_exit_code: exit.code,
      guest_signal: exit.signal === 0 ? -1 : exit.signal,
      signal: -1,
      oom_killed: exit.oom,
      requested_stop: exit.requested,
      restarting,
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
  const { schedule: every } = configOf(world, machine);
  world.timers.cancel(machine.id, "machine.schedule");
  if (every) world.timers.after(periods.schedule[every], "machine.schedule", machine.id);
}

/**
 * Whether a Machine rests: nothing further happens to its state by itself. ASSUMED: `settled` is `started`, `stopped`,
 * `suspended` or `failed` when nothing follows: not `created`, and not `stopped` between two attempts of the restart policy.
 */
export const isSettled = (world: World, machine: MachineRow): boolean =>
  (machine.state === "started" ||
    machine.state === "stopped" ||
    machine.state === "suspended" ||
    machine.state === "failed") &&
  !world.timers.pending(machine.id, "machine.retry");
