// Plans an update of a Machine as a value, before anything is sent; update.ts applies it in this order.
import type { Api } from "../client/api.ts";
import { latestExit, versionOf, type Machine } from "../client/wait.ts";
import type { Power } from "./power.ts";
import { actionsFor, type Action, type TriggerInputs } from "./restart.ts";
import { fromService, othersMetadata, sameMetadata, sameVersion, toService, type Config } from "./settings.ts";

/** The wanted state of a Machine. */
export interface WantedMachine extends TriggerInputs {
  readonly config: Config;
  readonly state?: Power | undefined;
  readonly cordoned: boolean;
  readonly minSecretsVersion?: number | undefined;
}

/** The Machine's previous state. */
export interface KnownMachine extends TriggerInputs {
  readonly config: Config;
  readonly minSecretsVersion?: number | undefined;
  /** Whether the waits of the last update failed and are still to be done. */
  readonly unfinished: boolean;
}

/** An update of a Machine. */
export interface Plan {
  /** The new version, if the versioned part of the configuration changes. */
  readonly version: Parameters<Api["machines"]["update"]>[0]["body"] | undefined;
  /** Keys to set, and keys to remove (null), if nothing but metadata changes in the configuration. */
  readonly metadata: Readonly<Record<string, string | null>> | undefined;
  /** Whether the Machine gets no traffic afterwards. */
  readonly cordoned: boolean;
  /** The power switch, if a new version does not do it. */
  readonly power: "start" | "stop" | undefined;
  /** The actions that changed triggers ask for. */
  readonly actions: readonly Action[];
  /** The power state that the Machine ends in. */
  readonly target: Power;
  /** Whether the target, with its checks, is waited for. */
  readonly waits: boolean;
}

/** Plans the update of a Machine that was just read. */
export function planUpdate(live: Machine, old: KnownMachine, wanted: WantedMachine): Plan {
  const current = live.config ? fromService(live.config, old.config) : old.config;
  // The service gives a Machine the App's secrets with a new version, and only then.
  const needsSecrets = wanted.minSecretsVersion !== undefined && wanted.minSecretsVersion !== old.minSecretsVersion;
  const isVersioned = needsSecrets || !sameVersion(current, wanted.config);
  const target = targetOf(live, wanted, isVersioned);
  const switches = !isVersioned && target !== live.state;
  const actions = isVersioned || switches || target !== "started" ? [] : actionsFor(old, wanted);
  return {
    version: isVersioned ? versionBody(live, old, wanted, target) : undefined,
    metadata: !isVersioned && !sameMetadata(current, wanted.config) ? metadataChanges(old, wanted) : undefined,
    cordoned: wanted.cordoned,
    power: switches ? (target === "stopped" ? "stop" : "start") : undefined,
    actions,
    target,
    // If the checks of the Machine failed last time, only the wait may be left to do.
    waits:
      isVersioned ||
      switches ||
      actions.includes("restart") ||
      (old.unfinished && target === "started" && actions.length === 0),
  };
}

/** R10: without `state`, the power stays as it is. A Machine that failed or crashed was not stopped on purpose. */
function targetOf(live: Machine, wanted: WantedMachine, isVersioned: boolean): Power {
  if (wanted.state !== undefined) return wanted.state;
  const exit = latestExit(live);
  const hasCrashed = exit !== undefined && !exit.requested && exit.exitCode !== 0;
  if (live.state === "stopped" && !hasCrashed) return "stopped";
  // A new version ends a suspension, so the Machine is stopped again: starting it was not asked for.
  if (live.state === "suspended") return isVersioned ? "stopped" : "suspended";
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
