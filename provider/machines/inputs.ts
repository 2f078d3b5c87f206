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
    triggers: triggers("the Machine is restarted. Creating the Machine or removing all values does nothing"),
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
    triggers: triggers("the Machine gets the signal. Creating the Machine or removing all values does nothing"),
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
    "Configuration, managed as a whole: a field that the program does not set has its documented default, and any other value is drift. Changing it creates a new version of the Machine.",
  ),
  state: computed(z.enum(["started", "stopped", "suspended"]), "passing").describe(
    "Power state in which the Machine is kept. When left out, the Machine is started once, and later its power state is left alone.",
  ),
  cordoned: z.boolean().default(false).describe("Whether the platform's proxy leaves the Machine out."),
  memoryLimitMb: computed(z.int().min(1)).describe(
    "Memory limit in MiB, up to the memory of `config.guest`. It is changed while the Machine runs, without a new version. When left out, the limit is not changed.",
  ),
  minSecretsVersion: z
    .int()
    .min(0)
    .optional()
    .meta({ format: "greatest" })
    .describe(
      "Lowest version of the App's secrets that the Machine must see: the `version` of an AppSecrets or a Secret, or a list of versions, of which the greatest counts. Changing it creates a new version of the Machine, so that rotated secrets reach it; removing it changes nothing. The service does not return it.",
    ),
  restart: restart
    .optional()
    .describe(
      "Restarts the Machine when `triggers` change, without a new version, and waits until it runs and its checks pass. A Machine that does not run is left alone. A Machine that gets a new version is restarted by that.",
    ),
  reload: reload
    .optional()
    .describe(
      "Sends a signal to the Machine's main process when `triggers` change, without a new version. It sends none to a Machine that does not run, that was restarted, or that gets a new version.",
    ),
  waitForChecks: behaviour(z.boolean().optional()).describe(
    "Whether creation and update wait until all checks pass. When left out, they wait if the configuration has checks.",
  ),
  minHealthySeconds: behaviour(z.int().min(0).max(3600).optional()).describe(
    "Seconds that the Machine must keep running after it was created, updated or started and its checks have passed, 0 to 3600. If its program ends within this time, the operation fails, even if the program is started again. When left out, it is 0 if the operation waits for checks, and otherwise `machines:minHealthySeconds`, which is 3. One Machine of a run is watched for all of this time. Others with the same image and command that start later are watched for at most a third of a second. Machines that end by themselves are not watched.",
  ),
  onUpdateFailure: behaviour(z.enum(["keep", "rollback"]).default("keep")).describe(
    'What happens when a new version fails to reach its state or to pass its checks. `"keep"` leaves it in place, and the next update repairs it. `"rollback"` restores the previous configuration; a third of the update\'s time is reserved for that. The update fails in both cases.',
  ),
  recreate: behaviour(z.boolean().default(false)).describe(
    "Whether the next update creates a Machine with `config.autoDestroy` again after it has ended and destroyed itself. Otherwise its work counts as done.",
  ),
  forceDestroy: behaviour(z.boolean().default(false)).describe(
    "Allows the deletion to kill the Machine if stopping it fails.",
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
    "Why the Machine failed: how its program ended, and how often it was restarted. The next update starts it again. Absent if it has not failed; a requested stop is no failure.",
  ),
  privateIp: optional(z.string(), "IPv6 address on the private network."),
  imageRef: optional(
    z.object({
      registry: optional(z.string(), "Registry."),
      repository: optional(z.string(), "Repository."),
      tag: optional(z.string(), "Tag."),
      digest: optional(z.string(), "Digest, with `sha256:` before it."),
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
