// Inputs and outputs of a Machine.
import { z } from "zod";
import { appName, machineName, regionCode } from "../../api/names.ts";
import { duration, named, optional, required } from "../../api/schema.ts";
import { signalName, stopSignal } from "../../api/signals.ts";
import { versionOf, type Machine } from "../client/machine.ts";
import { behaviour, computed } from "../core/resource.ts";
import { failureOf } from "./failure.ts";
import { config, fromService, type Config } from "./settings.ts";
import { triggers } from "../shared/triggers.ts";

/** The `restart` input. */
export const restart = named(
  "RestartTriggers",
  z.object({
    triggers: triggers("the Machine is restarted; creating it or removing all of them does nothing"),
    signal: behaviour(stopSignal.optional()).describe(
      "Signal that asks the Machine to stop; that of `config.stopConfig` when left out.",
    ),
    timeout: behaviour(duration().optional()).describe(
      'Time until it is killed, for example `"30s"`; that of `config.stopConfig` when left out.',
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
    "Name, 1 to 63 of `a-z`, `0-9` and `-`, unique among the App's Machines. Generated from the resource's name when left out. Changing it replaces the Machine.",
  ),
  region: computed(regionCode).describe(
    "Region code, for example `ams`; the service picks one when left out. Changing it replaces the Machine.",
  ),
  fallbackRegions: behaviour(z.array(regionCode).optional()).describe(
    "Regions to try in this order when `region` has no room for the Machine. A Machine stays in the region in which it was created, which is `placedRegion`.",
  ),
  config: config.describe(
    "Configuration. It is owned whole: a field that the program does not set is at its documented default, and anything else is drift. Changing it creates a new version of the Machine.",
  ),
  state: computed(z.enum(["started", "stopped", "suspended"]), "passing").describe(
    "Power state to keep the Machine in. Left out, it is started once and its power is left alone from then on.",
  ),
  cordoned: z.boolean().default(false).describe("Whether the platform's proxy leaves the Machine out."),
  memoryLimitMb: computed(z.int().min(1)).describe(
    "Memory limit in MiB, up to the memory of `config.guest`. It is changed while the Machine runs, without a new version. When left out, the limit is left alone.",
  ),
  minSecretsVersion: z
    .int()
    .min(0)
    .optional()
    .meta({ format: "greatest" })
    .describe(
      "Version of the App's secrets that the Machine must see at least: the `version` of an AppSecrets or a Secret, or a list of versions, of which the greatest counts. A change creates a new version of the Machine, so that rotated secrets reach it. It cannot be read back.",
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
  minHealthySeconds: behaviour(z.int().min(0).max(3600).optional()).describe(
    "Seconds that the Machine has to keep running after it was created, updated or started, and after its checks have passed, 0 to 3600. If its program ends meanwhile, the operation fails, also if the program is started again. When left out, 0 if the operation waits for checks, and otherwise `machines:minHealthySeconds`, which is 3. One Machine of a run is watched for all of this time, and others with the same image and command, which start later, for at most a third of a second. Machines that end by themselves are not watched.",
  ),
  onUpdateFailure: behaviour(z.enum(["keep", "rollback"]).default("keep")).describe(
    'What happens when a new version fails to reach its state or to pass its checks: `"keep"` leaves it in place, for the next update to repair; `"rollback"` restores the previous configuration, for which a third of the update\'s time is reserved. The update fails either way.',
  ),
  recreate: behaviour(z.boolean().default(false)).describe(
    "Whether a Machine with `config.autoDestroy` that has ended and was destroyed is created again by the next update; otherwise its work is done.",
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
  failure: optional(
    z.string(),
    "Why the Machine does not run, or ended with an error, although nobody stopped it: how its program ended, and how often it was restarted. The next update starts it again. Absent if all is well.",
  ),
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

/** Schema of a Machine's inputs. */
export type MachineInputs = z.output<typeof inputs>;

/** The inputs that affect how a live Machine is reported. */
export interface Written {
  /** The configuration whose metadata keys are ours (R6). */
  readonly config?: Config | undefined;
  readonly region?: string | undefined;
  readonly fallbackRegions?: readonly string[] | undefined;
  /** The location of the Machine as the state has it. */
  readonly placedRegion?: string | undefined;
}

/** A Machine in an allowed region, or in its known one, does not differ from the requested region. */
function regionFor(live: Machine, { region, fallbackRegions = [], placedRegion }: Written): string | undefined {
  const fits = [region, ...fallbackRegions, placedRegion].includes(live.region);
  return fits ? (region ?? live.region) : live.region;
}

/** State from a live Machine, in the program's spelling. `now` shows a Machine that is restarted again and again as failed. */
export const toLive = (app: string, live: Machine, written: Written = {}, now?: number) => ({
  app,
  machineId: live.id,
  name: live.name ?? "",
  region: regionFor(live, written),
  config: live.config ? fromService(live.config, written.config) : undefined,
  state: live.state,
  failure: failureOf(live, written, now),
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
