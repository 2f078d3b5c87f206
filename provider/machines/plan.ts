// What a Machine still needs to be as wanted. Pure: it decides from the Machine as it was last seen, and from what this operation has
// done. executor.ts carries out the first step, looks, and plans again until nothing is left.
import type { z } from "zod";
import type { Api } from "../client/api.ts";
import { MachinesError } from "../client/errors.ts";
import { versionOf, type Machine, type MachineKey } from "../client/machine.ts";
import type { Change } from "../core/diff.ts";
import { equal } from "../core/values.ts";
import { failureOf } from "./failure.ts";
import type { reload, restart } from "./inputs.ts";
import type { Expected } from "./ready.ts";
import {
  differingFields,
  fromService,
  isJob,
  movedKeys,
  othersMetadata,
  sameMetadata,
  sameVersion,
  toService,
  type Config,
  type Power,
} from "./settings.ts";

/** The inputs whose triggers restart or signal a running Machine. */
export interface Triggers {
  readonly restart?: z.output<typeof restart> | undefined;
  readonly reload?: z.output<typeof reload> | undefined;
}

/** A Machine as the program declares it. */
export interface WantedMachine extends Triggers, Expected {
  readonly cordoned: boolean;
  readonly minSecretsVersion?: number | undefined;
  readonly memoryLimitMb?: number | undefined;
  readonly onUpdateFailure?: "keep" | "rollback" | undefined;
}

/** A Machine as the state describes it. */
export interface KnownMachine extends Triggers {
  readonly config: Config;
  readonly minSecretsVersion?: number | undefined;
  readonly memoryLimitMb?: number | undefined;
  readonly version?: string | undefined;
  /** Whether a step of the previous update failed after the Machine was changed, for example the wait for its checks. */
  readonly unfinished: boolean;
}

type Body = Parameters<Api["machines"]["update"]>[0]["body"];
type StopBody = NonNullable<Parameters<Api["machines"]["stop"]>[0]["body"]>;

/** One step. All but `wait`, `read` and `memory` are one request. */
export type Step =
  /** Posts a new version, or the previous configuration after a new version has failed. It leads to a power state. */
  | { readonly kind: "update" | "roll back"; readonly body: Body; readonly config: Config; readonly leadsTo: Power }
  /** Metadata keys to set, and keys to remove (null). */
  | { readonly kind: "metadata"; readonly metadata: Readonly<Record<string, string | null>> }
  | { readonly kind: "cordon" | "uncordon" | "start" | "suspend" | "read" }
  | { readonly kind: "stop"; readonly body: StopBody }
  | { readonly kind: "restart"; readonly options: Omit<NonNullable<Triggers["restart"]>, "triggers"> }
  | { readonly kind: "signal"; readonly signal: NonNullable<NonNullable<Triggers["reload"]>["signal"]> }
  /** `ready`: it runs, its checks pass and it has kept running; a job has ended. */
  | { readonly kind: "wait"; readonly until: "ready"; readonly expected: Expected }
  /** `settled`: its state no longer changes by itself; `at rest`: it has ended, however. */
  | { readonly kind: "wait"; readonly until: Power | "settled" | "at rest" | "destroyed" }
  /** Reads the memory limit, and sets it if it differs. */
  | { readonly kind: "memory"; readonly limitMb: number }
  | { readonly kind: "destroy"; readonly force: boolean };

/** What an operation knows of a Machine. */
export interface Observed {
  /** The Machine before the first step. */
  readonly before: Machine;
  /** The Machine as it was last seen, with what later requests of this operation have changed. */
  readonly live: Machine;
  /** Whether `live` is as the service has shown it. */
  readonly isSeen: boolean;
  /** The steps that were carried out. */
  readonly done: readonly Step["kind"][];
  /** The power state that a request of this operation leads to, until a wait for it has ended. */
  readonly goingTo: Power | undefined;
  /** Whether the wanted power state was waited for. The Machine may have left it since: a job ends. */
  readonly isReached: boolean;
  /** The newest event before the start that is waited for; what happened before is not held against the Machine. */
  readonly lastEventId: string | undefined;
  /** Whether this operation has created the Machine. */
  readonly isNew: boolean;
  /** The new version of this operation that has failed, so that the previous configuration has to run again. */
  readonly failed: Machine | undefined;
}

/** A Machine of which nothing but one answer is known. */
export const observed = (live: Machine): Observed => ({
  ...{ before: live, live, isSeen: true, done: [], goingTo: undefined, isReached: false },
  ...{ lastEventId: live.events?.[0]?.id, isNew: false, failed: undefined },
});

/** A Machine that was just created. */
export const created = (live: Machine, leadsTo: Power): Observed => ({
  ...observed(live),
  ...{ goingTo: leadsTo, lastEventId: undefined, isNew: true },
});

/** A Machine whose new version has failed. */
export const failed = ({ before, live }: Observed): Observed => ({
  ...observed(live),
  ...{ before, isSeen: false, failed: live },
});

/** What is known after a step, with the Machine as the step's answer shows it. */
export function after(known: Observed, step: Step, answer: Partial<Machine> | undefined): Observed {
  const live = { ...known.live, ...answer };
  const next = { ...known, live, isSeen: answer?.id !== undefined, done: [...known.done, step.kind] };
  switch (step.kind) {
    case "update":
    case "roll back":
      return { ...next, goingTo: step.leadsTo };
    case "cordon":
    case "uncordon":
      return { ...next, live: { ...live, cordoned: step.kind === "cordon" } };
    case "start":
    case "restart":
      return { ...next, goingTo: "started" };
    case "stop":
      return { ...next, goingTo: "stopped" };
    case "suspend":
      return { ...next, goingTo: "suspended" };
    case "wait":
      // A Machine that a wait did not find may be hidden for a moment only (F13): the next request tells.
      if (live.state === "destroyed" && (step.until === "settled" || step.until === "at rest"))
        return { ...next, live: { ...live, state: "stopped" }, goingTo: undefined };
      if (step.until === "settled") return { ...next, goingTo: live.state === "started" ? "started" : undefined };
      return { ...next, goingTo: undefined, isReached: step.until !== "started" };
    case "read":
      return { ...next, lastEventId: live.events?.[0]?.id };
    case "metadata":
    case "signal":
    case "memory":
    case "destroy":
      return next;
  }
}

/** The steps that a Machine still needs, in their order. */
export function plan(wanted: WantedMachine, known: KnownMachine, seen: Observed): Step[] {
  if (seen.failed) return planRollback(wanted, known, seen, seen.failed);
  if (seen.isNew) {
    const target = wanted.state ?? "started";
    return withMemory(powerSteps(wanted, target, seen), seen, wanted.memoryLimitMb, target);
  }
  const { before, live, done } = seen;
  const current = before.config ? fromService(before.config, known.config) : known.config;
  // A Machine receives changed secrets of its App only with a new version.
  const needsSecrets = wanted.minSecretsVersion !== undefined && wanted.minSecretsVersion !== known.minSecretsVersion;
  const isRenewed = done.includes("update") || needsSecrets || !sameVersion(current, wanted.config);
  const target = targetOf(before, wanted, isRenewed);
  const update = isRenewed && !done.includes("update") ? [versionStep(before, known, wanted, target)] : [];
  const movesMetadata = !isRenewed && !done.includes("metadata") && !sameMetadata(current, wanted.config);
  const metadata = movesMetadata ? [metadataStep(known, wanted)] : [];
  const goingTo = update[0]?.leadsTo ?? seen.goingTo;
  const power = powerSteps(wanted, target, { ...seen, goingTo });
  const runsOn = !isRenewed && before.state === "started" && target === "started";
  const triggered = runsOn ? triggerSteps(known, wanted, seen) : [];
  // If the previous update failed while it waited for the checks, this update may only have to repeat the wait.
  const repeats = known.unfinished && target === "started" && actionsFor(known, wanted).length === 0;
  const steps: Step[] = [
    ...update,
    ...metadata,
    ...cordonSteps(live, wanted.cordoned, update.length > 0),
    ...power,
    ...triggered,
    ...(repeats && power.length === 0 && !seen.isReached ? [readyStep(wanted)] : []),
  ];
  return withMemory(steps, seen, wanted.memoryLimitMb, target);
}

/**
 * R10: without the input `state`, the power state does not change. A Machine whose program ended by itself was not stopped on
 * purpose, so it is started.
 */
function targetOf(live: Machine, wanted: WantedMachine, isRenewed: boolean): Power {
  if (wanted.state !== undefined) return wanted.state;
  if (live.state === "stopped" && failureOf(live, wanted) === undefined) return "stopped";
  // A new version ends the suspension. The Machine is then left stopped, because the program does not ask to start it.
  if (live.state === "suspended") return isRenewed ? "stopped" : "suspended";
  return "started";
}

const versionStep = (live: Machine, known: KnownMachine, wanted: WantedMachine, target: Power) => ({
  kind: "update" as const,
  config: wanted.config,
  leadsTo: target === "stopped" ? target : ("started" as const),
  body: {
    config: toService(wanted.config, othersMetadata(live.config, known.config)),
    currentVersion: versionOf(live),
    skipLaunch: target === "stopped" || undefined,
    skipServiceRegistration: wanted.cordoned || undefined,
    minSecretsVersion: wanted.minSecretsVersion,
  },
});

function metadataStep(known: KnownMachine, wanted: WantedMachine): Step {
  const next = wanted.config.metadata ?? {};
  const removed = Object.keys(known.config.metadata ?? {}).filter((name) => !Object.hasOwn(next, name));
  return { kind: "metadata", metadata: { ...Object.fromEntries(removed.map((name) => [name, null])), ...next } };
}

/** A new version cordons the Machine itself; it does not end that. */
function cordonSteps({ cordoned }: Machine, wanted: boolean, isUpdated: boolean): Step[] {
  if (cordoned === undefined || cordoned === wanted || (wanted && isUpdated)) return [];
  return [{ kind: wanted ? "cordon" : "uncordon" }];
}

const readyStep = (expected: Expected): Step => ({ kind: "wait", until: "ready", expected });

const isAtRest = (state: string): boolean => ["stopped", "suspended", "failed", "created"].includes(state);

/** The steps to a power state. */
function powerSteps(expected: Expected, target: Power, { live, goingTo, isReached }: Observed): Step[] {
  if (isReached || (goingTo === undefined && live.state === target)) return [];
  const arrive: Step = target === "started" ? readyStep(expected) : { kind: "wait", until: target };
  if (target === "stopped") return goingTo === target ? [arrive] : [{ kind: "stop", body: {} }, arrive];
  // A Machine that ends by itself is never suspended: it is waited for.
  const suspends = target === "suspended" && !isJob(expected.config, expected.state);
  if (goingTo === "suspended") return [arrive];
  const then: Step[] = suspends ? [{ kind: "suspend" }, arrive] : [readyStep(expected)];
  if (goingTo === "started") return suspends ? [{ kind: "wait", until: "started" }, ...then] : then;
  if (live.state === "started") return then;
  const start: Step[] = [
    { kind: "start" },
    ...(suspends ? [{ kind: "wait", until: "started" } as const] : []),
    ...then,
  ];
  return ["stopped", "suspended", "failed"].includes(live.state)
    ? start
    : [{ kind: "wait", until: "settled" }, ...start];
}

/** The steps that changed triggers cause. A restart is also a reload. */
function triggerSteps(known: KnownMachine, wanted: WantedMachine, { done }: Observed): Step[] {
  const actions = actionsFor(known, wanted);
  if (actions.length === 0 || done.includes("restart") || done.includes("signal")) return [];
  const { signal, timeout } = wanted.restart ?? {};
  return actions.includes("restart")
    ? [{ kind: "restart", options: { signal, timeout } }, readyStep(wanted)]
    : [{ kind: "signal", signal: wanted.reload?.signal ?? "SIGHUP" }];
}

/** The actions of changed triggers. Removing the triggers causes none. */
export function actionsFor(old: Triggers, next: Triggers): (keyof Triggers)[] {
  return (["restart", "reload"] as const).filter((name) => {
    const triggers = next[name]?.triggers ?? {};
    return Object.keys(triggers).length > 0 && !equal(old[name]?.triggers ?? {}, triggers);
  });
}

/** Whether only the options of the next restart or reload change. */
export const onlyOptionsChanged = (changes: readonly Change[], old: Triggers, next: Triggers): boolean =>
  changes.every(({ path }) => path[0] === "restart" || path[0] === "reload") && actionsFor(old, next).length === 0;

/** Whether an update whose changes are sent interrupts a Machine that is to run: for a new version, or for a restart. */
export const interrupts = (changes: readonly Change[], old: Triggers, wanted: WantedMachine): boolean =>
  (wanted.state ?? "started") === "started" &&
  (changes.some(
    ({ path: [first, second] }) => first === "minSecretsVersion" || (first === "config" && second !== "metadata"),
  ) ||
    actionsFor(old, wanted).includes("restart"));

/** Adds the last steps: a look where the answers do not show the Machine, and its memory limit. */
function withMemory(steps: Step[], seen: Observed, limitMb: number | undefined, target: Power): Step[] {
  const last = steps.at(-1);
  const isShown = last === undefined ? seen.isSeen : last.kind === "wait";
  const state = steps.some(({ kind }) => kind === "wait") ? target : seen.live.state;
  const limits = limitMb !== undefined && state === "started" && !seen.done.includes("memory");
  return [
    ...steps,
    ...(isShown ? [] : [{ kind: "read" } as const]),
    ...(limits ? [{ kind: "memory", limitMb } as const] : []),
  ];
}

/** Whether an update whose new version fails is rolled back. A configuration that also failed is not rolled back to. */
export const mayRollBack = (wanted: WantedMachine, known: KnownMachine, { before, done, failed }: Observed): boolean =>
  done.includes("update") &&
  failed === undefined &&
  wanted.onUpdateFailure === "rollback" &&
  !known.unfinished &&
  before.config !== undefined &&
  ["started", "stopped", "suspended"].includes(before.state);

/** The steps back to the previous configuration, with the metadata that others have written since. */
function planRollback(wanted: WantedMachine, known: KnownMachine, seen: Observed, failed: Machine): Step[] {
  const { before, live, done } = seen;
  if (done.length === 0) return [{ kind: "read" }];
  const config = fromService(before.config ?? known.config, known.config);
  const leadsTo = before.state === "started" ? "started" : "stopped";
  const { waitForChecks, minHealthySeconds, state } = wanted;
  const expected = { config, waitForChecks, minHealthySeconds, state };
  if (!done.includes("roll back")) {
    const metadata = {
      ...othersMetadata(before.config, known.config),
      ...othersMetadata(live.config, known.config, wanted.config),
    };
    const body = {
      config: toService(config, metadata),
      // Only the failed version is replaced, and none that another client has made since.
      currentVersion: versionOf(failed),
      skipLaunch: leadsTo === "stopped" || undefined,
      skipServiceRegistration: before.cordoned || undefined,
    };
    return [{ kind: "roll back", body, config, leadsTo }];
  }
  const steps = [
    ...(live.cordoned === true && before.cordoned === false ? [{ kind: "uncordon" } as const] : []),
    ...powerSteps(expected, leadsTo, seen),
  ];
  return withMemory(steps, seen, known.memoryLimitMb, leadsTo);
}

/**
 * The steps to a Machine's end: it gets no more traffic, stops as its configuration says, and is destroyed. `mustKill`: it could not be
 * stopped.
 */
export function planEnd(config: Config | undefined, mustKill: boolean, { live, goingTo }: Observed): Step[] {
  if (live.state === "destroyed") return [];
  const gone: Step = { kind: "wait", until: "destroyed" };
  if (live.state === "destroying") return [gone];
  const end: Step[] = [{ kind: "destroy", force: mustKill }, gone];
  if (mustKill) return end;
  const atRest: Step = { kind: "wait", until: "at rest" };
  if (goingTo === "stopped") return [atRest, ...end];
  const serves = (live.config?.services ?? config?.services ?? []).length > 0 && live.cordoned !== true;
  const { signal, timeout } = live.config?.stopConfig ?? config?.stopConfig ?? {};
  // A stop is refused during a transition between states.
  const isPassing = !isAtRest(live.state) && !["started", "starting"].includes(live.state);
  return [
    ...(serves ? [{ kind: "cordon" } as const] : []),
    ...(isPassing ? [{ kind: "wait", until: "settled" } as const] : []),
    ...(isAtRest(live.state) ? [] : [{ kind: "stop", body: { signal, timeout } } as const, atRest]),
    ...end,
  ];
}

/**
 * Why the live Machine must not be updated: it is gone, or another client has changed fields that we manage since the state was
 * written. Continuing would undo that change unseen (R6, F12).
 */
export function refusalOf(
  key: MachineKey,
  wanted: WantedMachine,
  known: KnownMachine,
  live: Machine,
): MachinesError | undefined {
  const name = `Machine ${key.appName}/${key.machineId}`;
  if (live.state === "destroyed")
    return new MachinesError(
      "api",
      `${name} was destroyed outside of this program; run pulumi refresh, then up creates a new one`,
    );
  const version = versionOf(live);
  if (known.version === undefined || !live.config) return undefined;
  const current = fromService(live.config, known.config);
  // Another client's change may be the requested one, for instance after a lost answer.
  const isSame = version === known.version || sameVersion(current, wanted.config);
  const fields = isSame ? [] : differingFields(current, known.config);
  // Metadata creates no new version.
  const keys = movedKeys(known.config.metadata, live.config.metadata, wanted.config.metadata);
  const moved = [...fields, ...keys.map((key) => `metadata[${JSON.stringify(key)}]`)];
  if (moved.length === 0) return undefined;
  return new MachinesError(
    "stale-version",
    `${name} was changed outside of this program (${moved.map((field) => `config.${field}`).join(", ")}${version === known.version ? "" : `; version ${version ?? "?"} instead of ${known.version}`}). ` +
      "Nothing was changed. Run pulumi refresh to see the changes, then up decides.",
  );
}
