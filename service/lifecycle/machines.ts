// The lifecycle of Machines: entering a state is an event, and the state decides what follows.
import type { MachineConfig } from "../../api/machineConfig.ts";
import { machineColumns, type EventRow, type MachineExtras, type MachineRow, type VolumeRow } from "../store/rows.ts";
import { touch, touchAnswer, type Context } from "../context.ts";
import { appName, networkOf } from "./appSubject.ts";
import type { About, CheckResult, Exit, StopRequest, Subject } from "../runtime/runtime.ts";
import { stopRequest } from "../runtime/stopRequest.ts";
import { injectedSecrets, lastLines } from "./lastLines.ts";
import { tellHistory } from "./machineEvents.ts";
import { changeVolume } from "./volumes.ts";
import { releaseSet, secretsOf } from "../store/secretValues.ts";
import { StoredConfig } from "../store/storedConfig.ts";
import { rfc3339 } from "../time/clock.ts";
import { periods } from "../time/delays.ts";
import {
  effects,
  steps,
  type MachineState,
  type PowerOperation,
  type RuntimeCall,
  type RuntimeEvent,
} from "../states/machineStates.ts";

/** The reason why a Machine enters a state. */
export interface Cause {
  readonly type: string;
  readonly source: "user" | "flyd";
  readonly request?: object;
  /** Other changes of the same moment. */
  readonly changes?: MachineChanges;
  /** How to stop the process. Default: as configured. */
  readonly stop?: StopRequest;
}

/** Changes of a Machine's row. */
export type MachineChanges = Partial<MachineRow & MachineExtras>;

const eventsKept = 100;

export const findMachine = (context: Pick<Context, "store" | "machineRows">, id: string): MachineRow | undefined =>
  context.machineRows.get(id, () =>
    context.store.get<MachineRow>(`SELECT ${machineColumns} FROM machines WHERE id = ?`, id),
  );

const configSql = "SELECT config FROM machine_versions WHERE machine = ? AND version = ?";

const noConfig = new StoredConfig("{}");

/** The stored configuration of a Machine's version, without metadata. */
export const storedConfig = (
  { store, configs }: Pick<Context, "store" | "configs">,
  { id, version }: Pick<MachineRow, "id" | "version">,
): StoredConfig =>
  configs.get(`${id} ${version}`, () => {
    const text = store.get<{ config: string }>(configSql, id, version)?.config;
    return text === undefined ? undefined : new StoredConfig(text);
  }) ?? noConfig;

/** The configuration of a Machine, without metadata. */
export const configOf = (
  context: Pick<Context, "store" | "configs">,
  machine: Pick<MachineRow, "id" | "version">,
): Readonly<MachineConfig> => storedConfig(context, machine).parsed;

interface ResolvedImage {
  readonly registry: string;
  readonly repository: string;
  readonly digest?: string;
}

const imageOf = ({ image_ref }: MachineRow): ResolvedImage => JSON.parse(image_ref) as ResolvedImage;

/** The metadata by which the provider recognizes the Machines of a fleet: its name. */
const fleetTag = "pulumi-fleet";

/** A Machine as the runtime sees it. Expensive members are computed on access. Getters of an object would be made for each one. */
class MachineSubject implements Subject {
  readonly #context: Context;
  readonly #machine: MachineRow;
  #config: MachineConfig | undefined;

  constructor(context: Context, machine: MachineRow) {
    this.#context = context;
    this.#machine = machine;
  }

  get id() {
    return this.#machine.id;
  }

  get appId() {
    return this.#machine.app;
  }

  get name() {
    return this.#machine.name;
  }

  get region() {
    return this.#machine.region;
  }

  get version() {
    return this.#machine.version;
  }

  get state() {
    return this.#machine.state;
  }

  get start() {
    const sql = "SELECT max(id) AS id FROM events WHERE machine = ? AND status = 'starting' AND moved = 1";
    return this.#context.store.get<{ id: string | null }>(sql, this.id)?.id ?? "";
  }

  get isCordoned() {
    return this.#machine.cordoned === 1;
  }

  get privateIp() {
    return this.#machine.private_ip;
  }

  get memoryLimitMb() {
    return this.#machine.memory_limit_mb ?? undefined;
  }

  get fleet() {
    const { metadata } = this.#machine;
    const tags = metadata === null ? {} : (JSON.parse(metadata) as Readonly<Record<string, string>>);
    return tags[fleetTag];
  }

  get network() {
    return networkOf(this.#context, this.appId);
  }

  get repository() {
    const { registry, repository } = imageOf(this.#machine);
    return `${registry}/${repository}`;
  }

  get digest() {
    return imageOf(this.#machine).digest ?? "";
  }

  get app() {
    return appName(this.#context, this.appId) ?? "";
  }

  get config() {
    return (this.#config ??= configOf(this.#context, this.#machine));
  }

  get secrets() {
    return () => secretsOf(this.#context, this.#machine);
  }
}

/** A Machine as the runtime sees it. */
export const subjectOf = (context: Context, machine: MachineRow): Subject => new MachineSubject(context, machine);

/** Changes a Machine's row and its `updated_at`. */
export function changeMachine(context: Context, machine: MachineRow, changes: MachineChanges): MachineRow {
  const all: MachineChanges = { ...changes, updated_at: context.clock.now() };
  const { brief: _brief, standby: _standby, size: _size, has_checks: _has, memory_mb: _memory, ...seen } = all;
  const changed = { ...machine, ...seen };
  // A new Machine enters its first state without any change.
  const names = Object.keys(all) as (keyof MachineRow)[];
  if (names.some((name) => all[name] !== machine[name])) context.store.update("machines", "id", machine.id, all);
  touch(context, machine.id);
  if (changes.secret_set !== undefined && changes.secret_set !== machine.secret_set)
    releaseSet(context.store, machine.secret_set);
  context.machineRows.set(machine.id, changed);
  return changed;
}

// The event that brought a Machine into its state is kept, and its latest start, by which runtimes know its process.
const pruneSql = `DELETE FROM events WHERE machine = ?1 AND id <= ?2 AND id NOT IN (
  SELECT coalesce(max(id), '') FROM events WHERE machine = ?1 AND moved = 1
  UNION ALL SELECT coalesce(max(id), '') FROM events WHERE machine = ?1 AND moved = 1 AND status = 'starting')`;

/** Records an event. ASSUMED: the latest 100 events of a Machine are kept; a request returns at most 50. */
export function record(context: Context, machine: MachineRow, cause: Cause, moved: boolean, from?: string): void {
  tellHistory(context, machine, () => configOf(context, machine), { ...cause, from });
  const now = context.clock.now();
  const event: EventRow = {
    machine: machine.id,
    id: context.ids.ulid(now),
    type: cause.type,
    status: machine.state,
    source: cause.source,
    timestamp: now,
    request: cause.request ? JSON.stringify(cause.request) : null,
    version: machine.version,
    moved: moved ? 1 : 0,
  };
  context.store.insert("events", event);
  touchAnswer(context, machine.id);
  const old = "SELECT id FROM events WHERE machine = ? ORDER BY id DESC LIMIT 1 OFFSET ?";
  const last = context.store.get<{ id: string }>(old, machine.id, eventsKept);
  if (last) context.store.run(pruneSql, machine.id, last.id);
}

/** Moves a Machine into a state and calls the runtime if the state needs it. */
export function enter(context: Context, from: MachineRow, state: MachineState, cause: Cause): MachineRow {
  if (from.state === "stopped") context.timers.cancel(from.id, "machine.retry");
  const checks =
    state === "started" || from.state !== "started"
      ? {}
      : { checks: "warning" as const, check_results: null, checked_at: context.clock.now() };
  // Only a start by the restart policy says otherwise.
  const restarted = state === "starting" ? { restarted: 0 } : {};
  // Only a new version may have another image.
  const image = cause.changes?.brief === undefined ? undefined : configOf(context, from).image;
  const machine = changeMachine(context, from, { ...checks, ...restarted, ...cause.changes, state });
  record(context, machine, cause, true, image);
  const step = steps[state];
  if (step) ask(context, machine, step.call, cause.stop);
  if (state === "started" && configOf(context, machine).mounts?.length) {
    const mounted = "UPDATE volumes SET mounted = 1, updated_at = ? WHERE machine = ? AND mounted = 0";
    context.store.run(mounted, context.clock.now(), machine.id);
  }
  if (from.state === "replacing" && state !== "replacing" && state !== "destroying") releaseVolumes(context, machine);
  if (state === "failed") startStandbys(context, machine);
  if (state === "destroyed") cleanUp(context, machine);
  return machine;
}

/** Releases volumes that a Machine no longer mounts. Until now the process of the version before may have written into them. */
function releaseVolumes(context: Context, machine: MachineRow): void {
  const held = context.store.all<VolumeRow>("SELECT * FROM volumes WHERE machine = ?", machine.id);
  const { mounts = [] } = configOf(context, machine);
  for (const volume of held)
    if (!mounts.some((mount) => mount.volume === volume.id)) changeVolume(context, volume, { machine: null });
}

function ask(context: Context, machine: MachineRow, call: RuntimeCall, request: StopRequest | undefined): void {
  const subject = subjectOf(context, machine);
  if (call === "stop") context.runtime.stop(subject, request ?? stopRequest(subject.config.stop_config));
  else context.runtime[call](subject);
}

/** Applies an operation to a Machine, as the table of states says (machineStates.ts). */
export function operate(context: Context, machine: MachineRow, operation: PowerOperation, cause: Cause): MachineRow {
  const effect = effects[operation][machine.state];
  if (typeof effect === "function") throw effect(machine.state);
  if (effect !== "unchanged") return enter(context, machine, effect, cause);
  // ASSUMED: stopping a crashed Machine between two attempts, when its state is `stopped`, ends the attempts.
  if (operation === "stop" && machine.state === "stopped") {
    context.timers.cancel(machine.id, "machine.retry");
    // It is no longer one that is about to run, and has settled.
    touch(context, machine.app);
    touch(context, machine.id);
  }
  return machine;
}

/** The Machine that an event is about; undefined if the Machine now has another version. */
function current(context: Context, { id, version }: About): MachineRow | undefined {
  const machine = findMachine(context, id);
  return machine?.version === version ? machine : undefined;
}

/** Moves a Machine into its next state after a report of the runtime, as the table says. */
export function runtimeEvent(context: Context, about: About, event: RuntimeEvent): void {
  const machine = current(context, about);
  const step = machine && steps[machine.state];
  if (!step || step.on !== event) return; // the report is late
  const become = machine.launch === 0 && step.atRest ? step.atRest : step.become;
  // A destroyed Machine needs no secrets.
  const changes = become === "destroyed" ? { destroyed_at: context.clock.now(), secret_set: null } : {};
  enter(context, machine, become, { type: step.event, source: "flyd", changes });
}

/** A Machine could not be prepared: it has failed, and the event says why. */
export function unprepared(context: Context, about: About, reason: string): void {
  const machine = current(context, about);
  const step = machine && steps[machine.state];
  if (!step || step.on !== "prepared") return; // the report is late
  // ASSUMED: a Machine that could not be prepared is `failed`, and its last exit has code 127 and the reason.
  const exit: Exit = { code: 127, signal: 0, oom: false, requested: false, error: reason };
  const request = exitRequest(context, machine, exit, false);
  enter(context, machine, "failed", { type: "exit", source: "flyd", request });
}

/** States in which the main process is expected to run. */
const alive: readonly MachineState[] = ["starting", "started", "suspending"];

/** The main process has exited, on request or by itself. */
export function exited(context: Context, about: About, exit: Exit): void {
  const machine = current(context, about);
  if (!machine) return;
  const step = steps[machine.state];
  if (step?.on === "exited") {
    const request = exitRequest(context, machine, { ...exit, requested: true }, step.become === "starting");
    const leaves = machine.state === "stopping" && configOf(context, machine).auto_destroy === true;
    enter(context, machine, leaves ? "destroying" : step.become, { type: step.event, source: "flyd", request });
  } else if (alive.includes(machine.state)) {
    if (exit.interrupted === true) interrupted(context, machine, exit);
    else ended(context, machine, exit);
  }
}

/** The main process has exited by itself. The configuration decides: destroy, restart, or leave stopped or failed. */
function ended(context: Context, machine: MachineRow, exit: Exit): void {
  const config = configOf(context, machine);
  const crashed = machine.state === "starting";
  if (config.auto_destroy) {
    const request = exitRequest(context, machine, exit, false);
    enter(context, machine, "destroying", { type: "exit", source: "flyd", request });
    return;
  }
  const { policy = "on-failure", max_retries = 10 } = config.restart ?? {};
  const failed = exit.code !== 0;
  const restarting = policy === "always" || (policy !== "no" && failed && retriesOf(context, machine) < max_retries);
  // ASSUMED: a Machine is `failed` once its retries are used up, or when its process never started and is not to be restarted;
  // if its process ended later, it is `stopped`.
  const state = !restarting && failed && (policy !== "no" || crashed) ? "failed" : "stopped";
  const request = exitRequest(context, machine, exit, restarting);
  enter(context, machine, state, { type: "exit", source: "flyd", request });
  if (restarting)
    context.timers.after(
      policy === "always" ? context.delays.retryAlways : context.delays.retry,
      "machine.retry",
      machine.id,
    );
}

/**
 * The process of a Machine has ended with its engine, and its memory is lost. It starts again at once, on another engine, unless its
 * configuration never restarts it. This is no attempt of the restart policy.
 */
export function engineLost(context: Context, machine: MachineRow): void {
  const exit: Exit = { code: 137, signal: 9, oom: false, requested: false, error: "its container engine was lost" };
  interrupted(context, machine, exit);
}

/** The engine has ended the process of a Machine for reasons of its own. */
function interrupted(context: Context, machine: MachineRow, exit: Exit): void {
  const { auto_destroy, restart } = configOf(context, machine);
  const starts = machine.state === "started" || machine.state === "starting";
  if (starts && (auto_destroy || restart?.policy === "no")) return ended(context, machine, exit);
  const request = exitRequest(context, machine, exit, starts);
  const stopped = enter(context, machine, "stopped", { type: "exit", source: "flyd", request });
  if (starts) enter(context, stopped, "starting", { type: "start", source: "flyd" });
}

/** The engine of Machines that ran is lost: of all, or of one App. */
export function enginesLost(context: Context, app?: string): void {
  const ofApp = app === undefined ? "" : " AND app = ?";
  const alive = `SELECT ${machineColumns} FROM machines WHERE state IN ('started', 'suspending', 'suspended')${ofApp}`;
  for (const machine of context.store.all<MachineRow>(alive, ...(app === undefined ? [] : [app])))
    engineLost(context, machine);
}

/** Number of recent restarts by the restart policy. */
const retriesOf = (context: Context, { restarts, retried_from }: MachineRow): number =>
  context.clock.now() - retried_from < periods.retries ? restarts : 0;

/** The restart policy starts a Machine again. */
export function retry(context: Context, id: string): void {
  const machine = findMachine(context, id);
  if (machine?.state !== "stopped") return;
  const before = retriesOf(context, machine);
  const restarted = machine.restarted + 1;
  enter(context, machine, "starting", {
    type: "restart",
    source: "flyd",
    request: { restart_count: restarted },
    changes: { restarts: before + 1, restarted, ...(before === 0 ? { retried_from: context.clock.now() } : {}) },
  });
  context.store.onCommit(() => context.counted.restarted(machine.app));
}

/**
 * Starts the standbys of a failed Machine. ASSUMED: a standby starts when a Machine that it stands by for has failed. The platform
 * means the failure of a host, which does not occur here.
 */
function startStandbys(context: Context, failed: MachineRow): void {
  const stopped = context.store.all<MachineRow>(
    `SELECT ${machineColumns} FROM machines WHERE app = ? AND standby = 1 AND state = 'stopped'`,
    failed.app,
  );
  for (const machine of stopped)
    if (configOf(context, machine).standbys?.includes(failed.id))
      enter(context, machine, "starting", { type: "start", source: "flyd", changes: { launch: 1, restarts: 0 } });
}

/**
 * Releases what a destroyed Machine held. ASSUMED: the volume of a destroyed Machine is released a moment later; one that an update
 * no longer mounts is released once the process of the version before has ended.
 */
function cleanUp(context: Context, machine: MachineRow): void {
  const { store, timers, delays } = context;
  store.run("DELETE FROM leases WHERE machine = ?", machine.id);
  timers.cancel(machine.id, "machine.schedule");
  timers.after(periods.destroyedKept, "machine.forget", machine.id);
  for (const { id } of store.all<{ id: string }>("SELECT id FROM volumes WHERE machine = ?", machine.id)) {
    timers.after(delays.unbind, "volume.unbind", id);
  }
}

/** The checks have a result. */
export function checked(
  context: Context,
  about: About,
  checks: CheckResult["status"],
  results?: Readonly<Record<string, CheckResult>>,
): void {
  const { id } = about;
  const machine = current(context, about);
  if (machine?.state !== "started") return;
  const check_results = results === undefined ? null : JSON.stringify(results);
  context.store.update("machines", "id", id, { checks, check_results, checked_at: context.clock.now() });
  touch(context, id);
  const isNew = machine.checks !== checks;
  if (!isNew) return;
  tellHistory(context, { ...machine, checks }, () => configOf(context, machine), { type: "checks", source: "flyd" });
}

/** A Machine runs an image whose digest was not known before. */
export function resolved(context: Context, about: About, digest: string): void {
  const machine = current(context, about);
  if (!machine) return;
  const image = imageOf(machine);
  // A version keeps the image that it ran first.
  if (image.digest === undefined) changeMachine(context, machine, { image_ref: JSON.stringify({ ...image, digest }) });
}

function exitRequest(context: Context, machine: MachineRow, exit: Exit, restarting: boolean): object {
  const lines = lastLines(exit.lines ?? [], () =>
    injectedSecrets(configOf(context, machine), secretsOf(context, machine)),
  );
  return {
    exit_event: {
      exit_code: exit.code,
      guest_exit_code: exit.code,
      guest_signal: exit.signal === 0 ? -1 : exit.signal,
      signal: -1,
      oom_killed: exit.oom,
      requested_stop: exit.requested,
      restarting,
      exited_at: rfc3339(context.clock.now()),
      error: exit.error ?? "",
      ...(lines.length > 0 ? { last_lines: lines } : {}),
    },
    // ASSUMED: `restart_count` is the number of restarts by the restart policy since the Machine was last started on request.
    restart_count: machine.restarted,
  };
}

/** Starts a Machine by its `schedule`, and sets the next timer. */
export function scheduled(context: Context, id: string): void {
  const machine = findMachine(context, id);
  if (!machine || machine.destroyed_at !== null) return;
  schedule(context, machine);
  if (machine.state === "stopped" || machine.state === "failed") {
    enter(context, machine, "starting", { type: "start", source: "flyd", changes: { launch: 1, restarts: 0 } });
  }
}

/** Sets or cancels the timer of a Machine's schedule. */
export function schedule(context: Context, machine: MachineRow): void {
  const { schedule: every } = configOf(context, machine);
  context.timers.cancel(machine.id, "machine.schedule");
  if (every) context.timers.after(periods.schedule[every], "machine.schedule", machine.id);
}

/**
 * Whether the state of a Machine stays the same until the next request. ASSUMED: `settled` is `started`, `stopped`, `suspended` or
 * `failed` when nothing follows: not `created`, and not `stopped` between two attempts of the restart policy.
 */
export const isSettled = (context: Context, machine: MachineRow): boolean =>
  (machine.state === "started" ||
    machine.state === "stopped" ||
    machine.state === "suspended" ||
    machine.state === "failed") &&
  !context.timers.pending(machine.id, "machine.retry");
