// What a program declares of a Machine, and what it can read of one.
import { z } from "zod";
import { appName, machineName, regionCode } from "../../api/names.ts";
import { duration, named, optional, required } from "../../api/schema.ts";
import { signalName, stopSignal } from "../../api/signals.ts";
import { versionOf, type Machine } from "../client/wait.ts";
import { behaviour, computed } from "../core/resource.ts";
import { config, fromService, type Config } from "./settings.ts";
import { triggers } from "../shared/triggers.ts";

/** The `restart` input. */
export const restart = named(
  "RestartTriggers",
  z.object({
    triggers: triggers("the Machine is restarted; creating it or removing all of them does nothing"),
    signal: behaviour(stopSignal.optional()).describe(
      "Signal that asks the Machine to stop; what `config.stopConfig` says when left out.",
    ),
    timeout: behaviour(duration().optional()).describe(
      'Time until it is killed, for example `"30s"`; what `config.stopConfig` says when left out.',
    ),
  }),
);

/** The `reload` input. */
export const reload = named(
  "ReloadTriggers",
  z.object({
    triggers: triggers("the Machine is signalled; creating it or removing all of them does nothing"),
    signal: behaviour(signalName.optional()).describe("Signal for the main process; SIGHUP when left out."),
  }),
);

/** Inputs of a Machine. */
export const inputs = z.object({
  app: required(appName, "App the Machine runs in: the `id` of an App. Changing it replaces the Machine.", {
    format: "reference",
  }),
  name: computed(machineName).describe(
    "Name, 1 to 63 of `a-z`, `0-9` and `-`, unique among the App's Machines. Made from the resource's name when left out. Changing it replaces the Machine.",
  ),
  region: computed(regionCode).describe(
    "Region code, for example `ams`; the service picks one when left out. Changing it replaces the Machine.",
  ),
  fallbackRegions: behaviour(z.array(regionCode).optional()).describe(
    "Regions to try in this order when `region` has no room for the Machine. A Machine stays where it was made, and `placedRegion` tells where that is.",
  ),
  config: config.describe(
    "Configuration. It is owned whole: what the program does not say is at its documented default, anything else is drift. Changing it makes a new version of the Machine.",
  ),
  state: computed(z.enum(["started", "stopped", "suspended"]), "passing").describe(
    "Power state to keep the Machine in. Left out, it is started once and its power is left alone from then on.",
  ),
  cordoned: z.boolean().default(false).describe("Whether the platform's proxy leaves the Machine out."),
  memoryLimitMb: computed(z.int().min(1)).describe(
    "Memory limit in MiB, up to what `config.guest` gives the Machine; it is changed while the Machine runs, without a new version. Left out, there is no opinion on it.",
  ),
  minSecretsVersion: z
    .int()
    .min(0)
    .optional()
    .describe(
      "Version of the App's secrets the Machine must see at least: the `version` of AppSecrets. A change makes a new version of the Machine, so that what was rotated reaches it. It cannot be read back.",
    ),
  restart: restart
    .optional()
    .describe(
      "Restarts the Machine when `triggers` change, without a new version, and waits until it runs and its checks pass. A Machine that does not run is left alone, and one that gets a new version has been restarted by that.",
    ),
  reload: reload
    .optional()
    .describe(
      "Sends the Machine's main process a signal when `triggers` change, without a new version. A Machine that does not run is left alone, and one that was restarted or gets a new version needs none.",
    ),
  waitForChecks: behaviour(z.boolean().optional()).describe(
    "Whether creation and update wait until all checks pass; true when left out and the configuration has checks.",
  ),
  onUpdateFailure: behaviour(z.enum(["keep", "rollback"]).default("keep")).describe(
    'What is done when a new version does not come to its state or its checks do not pass: `"keep"` leaves it as it is, for the next update to repair; `"rollback"` brings back the configuration of before, for which a third of the update\'s time is kept. The update fails either way.',
  ),
  recreate: behaviour(z.boolean().default(false)).describe(
    "Whether a Machine with `config.autoDestroy` that has ended and is gone is made again by the next update; otherwise its work is done.",
  ),
  forceDestroy: behaviour(z.boolean().default(false)).describe(
    "Lets the deletion kill the Machine when stopping it fails.",
  ),
});

/** Outputs of a Machine. */
export const outputs = z.object({
  name: required(z.string(), "Name of the Machine."),
  region: optional(z.string(), "Region the Machine runs in."),
  machineId: required(z.string(), "Identifier within the App; stable for life."),
  version: optional(z.string(), "Identifier of the configuration's version, 26 characters."),
  state: required(z.string(), "State of the Machine."),
  privateIp: optional(z.string(), "IPv6 address on the private network."),
  imageRef: optional(
    z.object({
      registry: optional(z.string(), "Registry."),
      repository: optional(z.string(), "Repository."),
      tag: optional(z.string(), "Tag."),
      digest: optional(z.string(), "`sha256:` and the digest."),
    }),
    "The image that runs.",
  ),
  placedRegion: optional(z.string(), "Region the Machine runs in."),
  hostStatus: optional(z.string(), "Status of the host: `ok`, `unknown` or `unreachable`."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  updatedAt: optional(z.string(), "RFC 3339 time of the last change."),
});

/** What a program declares of a Machine. */
export type MachineInputs = z.output<typeof inputs>;

/** What of a program's wishes decides how a live Machine is told. */
export interface Written {
  /** The configuration whose metadata keys are ours (R6). */
  readonly config?: Config | undefined;
  readonly region?: string | undefined;
  readonly fallbackRegions?: readonly string[] | undefined;
  /** Where the state knows it to be. */
  readonly placedRegion?: string | undefined;
}

/** A Machine that runs where it may, or where it was known to be, does not differ from the region that was asked for. */
function regionFor(live: Machine, { region, fallbackRegions = [], placedRegion }: Written): string | undefined {
  const fits = [region, ...fallbackRegions, placedRegion].includes(live.region);
  return fits ? (region ?? live.region) : live.region;
}

/** State from a live Machine, told as the program wrote it. */
export const toLive = (app: string, live: Machine, written: Written = {}) => ({
  app,
  machineId: live.id,
  name: live.name ?? "",
  region: regionFor(live, written),
  config: live.config ? fromService(live.config, written.config) : undefined,
  state: live.state,
  cordoned: live.cordoned,
  version: versionOf(live),
  privateIp: live.privateIp,
  imageRef: live.imageRef && {
    registry: live.imageRef.registry,
    repository: live.imageRef.repository,
    tag: live.imageRef.tag,
    digest: live.imageRef.digest,
  },
  placedRegion: live.region,
  hostStatus: live.hostStatus,
  createdAt: live.createdAt,
  updatedAt: live.updatedAt,
});
