// Plans an update of a Machine before anything is sent. update.ts applies the steps in the order in which `Plan` lists them.
import type { Api } from "../client/api.ts";
import { versionOf, type Machine } from "../client/machine.ts";
import { failureOf } from "./failure.ts";
import type { Power } from "./power.ts";
import { actionsFor, type Action, type TriggerInputs } from "./restart.ts";
import { fromService, othersMetadata, sameMetadata, sameVersion, toService, type Config } from "./settings.ts";

/** A Machine as the program declares it. */
export interface WantedMachine extends TriggerInputs {
  readonly config: Config;
  readonly state?: Power | undefined;
  readonly cordoned: boolean;
  readonly minSecretsVersion?: number | undefined;
}

/** A Machine as the state describes it. */
export interface KnownMachine extends TriggerInputs {
  readonly config: Config;
  readonly minSecretsVersion?: number | undefined;
  /** Whether a step of the previous update failed after the Machine was changed, for example the wait for its checks. */
  readonly unfinished: boolean;
}

/** The steps of an update of a Machine. */
export interface Plan {
  /** The request for a new version; undefined if no new version is needed. */
  readonly version: Parameters<Api["machines"]["update"]>[0]["body"] | undefined;
  /** Metadata keys to set, and keys to remove (null). Undefined if a new version sets them, or if they do not change. */
  readonly metadata: Readonly<Record<string, string | null>> | undefined;
  /** Whether the Machine is cordoned after the update, so that it receives no traffic. */
  readonly cordoned: boolean;
  /** The power change to request; undefined if a new version makes it, or if the power does not change. */
  readonly power: "start" | "stop" | undefined;
  /** The actions that changed triggers cause. */
  readonly actions: readonly Action[];
  /** The power state of the Machine after the update. */
  readonly target: Power;
  /** Whether the update waits until the Machine is in the target state and its checks pass. */
  readonly waits: boolean;
}

/** Plans the update of a Machine from its live configuration. */
export function planUpdate(live: Machine, old: KnownMachine, wanted: WantedMachine): Plan {
  const current = live.config ? fromService(live.config, old.config) : old.config;
  // A Machine receives changed secrets of its App only with a new version.
  const needsSecrets = wanted.minSecretsVersion !== undefined && wanted.minSecretsVersion !== old.minSecretsVersion;
  const needsNewVersion = needsSecrets || !sameVersion(current, wanted.config);
  const target = targetOf(live, wanted, needsNewVersion);
  const changesPower = !needsNewVersion && target !== live.state;
  const actions = needsNewVersion || changesPower || target !== "started" ? [] : actionsFor(old, wanted);
  return {
    version: needsNewVersion ? versionBody(live, old, wanted, target) : undefined,
    metadata: !needsNewVersion && !sameMetadata(current, wanted.config) ? metadataChanges(old, wanted) : undefined,
    cordoned: wanted.cordoned,
    power: changesPower ? (target === "stopped" ? "stop" : "start") : undefined,
    actions,
    target,
    // If the previous update failed while it waited for the checks, this update may only have to repeat the wait.
    waits:
      needsNewVersion ||
      changesPower ||
      actions.includes("restart") ||
      (old.unfinished && target === "started" && actions.length === 0),
  };
}

/**
 * R10: without the input `state`, the power state does not change. A Machine whose program ended by itself was not stopped on
 * purpose, so it is started.
 */
function targetOf(live: Machine, wanted: WantedMachine, needsNewVersion: boolean): Power {
  if (wanted.state !== undefined) return wanted.state;
  if (live.state === "stopped" && failureOf(live, wanted) === undefined) return "stopped";
  // A new version ends the suspension. The Machine is then left stopped, because the program does not ask to start it.
  if (live.state === "suspended") return needsNewVersion ? "stopped" : "suspended";
  return "started";
}

const versionBody = (live: Machine, old: KnownMachine, wanted: WantedMachine, target: Power): Plan["version"] => ({
  config: toService(wanted.config, othersMetadata(live.config, old.config)),
  currentVersion: versionOf(live),
  skipLaunch: target === "stopped" || undefined,
  skipServiceRegistration: wanted.cordoned || undefined,
  minSecretsVersion: wanted.minSecretsVersion,
});

function metadataChanges(old: KnownMachine, wanted: WantedMachine): Plan["metadata"] {
  const next = wanted.config.metadata ?? {};
  const removed = Object.keys(old.config.metadata ?? {}).filter((name) => !Object.hasOwn(next, name));
  return { ...Object.fromEntries(removed.map((name) => [name, null])), ...next };
}
