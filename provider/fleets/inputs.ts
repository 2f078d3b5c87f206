// Inputs and outputs of a fleet.
import { z } from "zod";
import { appName, regionCode } from "../../api/names.ts";
import { duration, named, optional, parseDuration, required } from "../../api/schema.ts";
import { behaviour, computed } from "../core/resource.ts";
import { config, type Config } from "../machines/settings.ts";
import { regionsOf, totalOf } from "./placement.ts";
import type { Wanted } from "./planner.ts";

/** A number of Machines, or a share of them. */
const share = () => z.string().regex(/^\d+%?$/, 'must be a whole number such as "1", or a percentage such as "25%"');

const strategyTypes = ["rolling", "canary", "bluegreen", "immediate"] as const;

/** The `strategy` input. */
export const strategy = named(
  "FleetStrategy",
  z.object({
    type: z
      .enum(strategyTypes)
      .optional()
      .describe(
        "`rolling`, the default, updates a few Machines at a time. `canary` first updates `count` Machines and watches them. `bluegreen` creates all new Machines beside the old ones, and switches traffic when all of them pass. `immediate` updates all at once.",
      ),
    maxUnavailable: share()
      .optional()
      .describe(
        'How many Machines may be missing or failing because of the rollout: a number or a percentage, rounded down, but at least one. A third when left out. `"0"` needs `maxSurge`. For `rolling` and `canary`.',
      ),
    maxSurge: share()
      .optional()
      .describe(
        "How many extra Machines may exist while others are updated: a number or a percentage, rounded up; none when left out. They have the new template, and are destroyed at the end. For `rolling` and `canary`, without volumes.",
      ),
    minHealthySeconds: z
      .int()
      .min(0)
      .max(3600)
      .optional()
      .describe(
        "Seconds that each Machine must keep running and pass its checks before the rollout continues, 0 to 3600. When left out, it is 0 with checks. Without checks it is `machines:minHealthySeconds`, which is 3, and what one Machine has proved counts for the others.",
      ),
    count: z.int().min(1).optional().describe("Number of canaries; 1 when left out. For `canary`."),
    observe: duration()
      .optional()
      .describe('How long the canaries must pass before the rollout continues; `"1m"` when left out. For `canary`.'),
    promote: z
      .enum(["auto", "manual"])
      .optional()
      .describe(
        "`manual` waits for `promoted`: a canary rollout when its canaries have passed, a blue/green one when all new Machines pass and before they get traffic. `auto`, the default, continues at once. For `canary` and `bluegreen`.",
      ),
    drain: duration()
      .optional()
      .describe(
        "How long a Machine keeps running after the proxy has stopped sending to it, before it is destroyed or stopped; no time when left out.",
      ),
    keepOld: z
      .boolean()
      .optional()
      .describe(
        "Whether the old Machines are stopped and kept until the next rollout, so that a rollback is quick. For `bluegreen`.",
      ),
  }),
);

/** The options that only some strategies have. */
export const optionsOf: Readonly<Record<string, readonly (typeof strategyTypes)[number][]>> = {
  maxUnavailable: ["rolling", "canary"],
  maxSurge: ["rolling", "canary"],
  count: ["canary"],
  observe: ["canary"],
  promote: ["canary", "bluegreen"],
  keepOld: ["bluegreen"],
};

/** The `volume` input. */
export const volume = named(
  "FleetVolume",
  z.object({
    path: required(
      z.string().regex(/^\//, "must begin with /"),
      "Where each Machine mounts its volume, for example `/data`.",
    ),
    sizeGb: optional(
      z.int().min(1).max(500),
      "Size of each volume in GB, 1 to 500; 3 when left out. Volumes grow, and never shrink.",
    ),
    encrypted: behaviour(z.boolean().optional()).describe("Whether new volumes are encrypted; true when left out."),
    copy: behaviour(z.boolean().optional()).describe(
      "Allows `bluegreen`: each new Machine gets a copy of an old one's volume. Data that the old Machine writes after that moment stays on the old volume only.",
    ),
    adopt: behaviour(z.array(z.string().min(1)).optional()).describe(
      "Ids of existing volumes that the fleet adopts. Each must be named after its Machine, for example `web_ams_1`, and be in its region. It is mounted when that Machine is created. First remove its Volume from the program, with `retainOnDelete`.",
    ),
    snapshotRetention: behaviour(z.int().min(1).max(60).optional()).describe(
      "Days that a snapshot of a new volume is stored, 1 to 60; 5 when left out.",
    ),
  }),
);

/** Inputs of a fleet. */
export const inputs = z.object({
  app: required(appName, "App the Machines run in: the `id` of an App. Changing it replaces the fleet.", {
    format: "reference",
  }),
  name: computed(z.string().regex(/^[a-z0-9-]{1,40}$/, "must be 1 to 40 of a-z, 0-9 and -")).describe(
    "Name, 1 to 40 of `a-z`, `0-9` and `-`, unique among the App's fleets. Its Machines are named after it, for example `web-ams-1`. The resource's name when left out. Changing it replaces the fleet.",
  ),
  regions: z
    .record(regionCode, z.int().min(0).max(1000))
    .optional()
    .describe("Number of Machines by region, for example `{ ams: 3, iad: 2 }`. Exclusive with `count`."),
  count: z
    .int()
    .min(0)
    .max(1000)
    .optional()
    .describe("Number of Machines, spread evenly over the regions of `spreadOver`. Exclusive with `regions`."),
  spreadOver: z
    .array(regionCode)
    .min(1, "must name a region")
    .optional()
    .describe("Regions that `count` is spread over; the first ones get one Machine more."),
  fallbackRegions: behaviour(z.array(regionCode).optional()).describe(
    "Regions to try in this order when a region has no room for a Machine. Such a Machine counts for the region in which it was wanted.",
  ),
  config: config.describe(
    "Configuration of every Machine, with the fields of a Machine's `config` except `mounts`, which `volume` sets. Changing it begins a rollout by `strategy`.",
  ),
  volume: volume
    .optional()
    .describe(
      "Gives each Machine a volume of its own, which the fleet creates. A volume outlives its Machine: a Machine of the same name mounts it again. A Machine that moves to another region takes a copy of its data with it. It cannot be added to or removed from a fleet whose Machines exist.",
    ),
  deleteVolumes: behaviour(z.boolean().default(false)).describe(
    "Whether a Machine's volume is deleted with the Machine when the fleet shrinks or is deleted. The data is lost then.",
  ),
  minSecretsVersion: z
    .int()
    .min(0)
    .optional()
    .meta({ format: "greatest" })
    .describe(
      "Lowest version of the App's secrets that the Machines must see: the `version` of an AppSecrets or a Secret, or a list of versions, of which the greatest counts. Changing it begins a rollout; removing it changes nothing. The service does not return it.",
    ),
  memoryLimitMb: optional(
    z.int().min(1),
    "Memory limit of each Machine in MiB, up to the memory of `config.guest`. It is changed while the Machines run, without a new version. When left out, limits are not changed.",
  ),
  standbys: z
    .int()
    .min(0)
    .max(100)
    .default(0)
    .describe(
      "Number of further Machines that are stopped, 0 to 100. The service starts them when a Machine of the fleet has failed; the next update repairs that Machine and stops them again. Not with `config.services` or `volume`.",
    ),
  adopt: z
    .array(z.string().min(1))
    .optional()
    .describe(
      "Ids of existing Machines that the fleet adopts. Those that already have the configuration are not restarted. For a Machine of the program, first give its resource `retainOnDelete` and run `up`. Then remove the resource in the same change that adopts the Machine here.",
    ),
  strategy: behaviour(strategy.optional()).describe(
    "The strategy by which Machines get a new configuration; `rolling` when left out.",
  ),
  promoted: behaviour(z.boolean().default(false)).describe(
    'Promotes the configuration that waits with `promote: "manual"`. It takes effect if it was false in the `up` that deployed this configuration, or later, and is true now. It promotes only that configuration: a value that stays true promotes nothing else. Set it back to false with the next change of `config`.',
  ),
  onFailure: behaviour(z.enum(["stop", "rollback"]).default("stop")).describe(
    'What happens when a rollout fails: a Machine does not run or pass its checks, or there is no progress for `progressDeadline`. `"stop"` changes no other Machine, and the next update continues. `"rollback"` gives all Machines the last configuration that all of them ran. The update fails in both cases.',
  ),
  releaseCommand: behaviour(z.array(z.string().min(1)).min(1, "must name a command").optional()).describe(
    'Command that must succeed before a new configuration reaches the first Machine, for example `["bin/migrate"]`. It replaces `config.init.cmd` in a Machine of its own, `<name>-release`, without services, checks and volumes. That Machine destroys itself when the command ends. If the exit code is not 0, no Machine is changed. The command may run again after an interruption. A rollback does not run it.',
  ),
  restartOnce: behaviour(z.boolean().default(false)).describe(
    "Whether a Machine that runs but does not pass its checks in time is restarted once before the rollout fails. The restarted Machine has the same time again.",
  ),
  progressDeadline: behaviour(duration().default("10m")).describe(
    "Time within which a rollout must make progress; the whole rollout may take longer. Progress means that more Machines than before are ready with the new configuration, or that fewer remain to be changed. A new attempt for a Machine is not progress. `minHealthySeconds` and `drain` are added to the time.",
  ),
  startDeadline: behaviour(duration().optional()).describe(
    "Time for a Machine to run after it was created or updated; all of `progressDeadline` when left out. The time to stop is `config.stopConfig.timeout`.",
  ),
  passDeadline: behaviour(duration().optional()).describe(
    "Time for the checks of a running Machine to pass; the rest of `progressDeadline` when left out.",
  ),
});

/** A fleet as a program declares it. */
export type FleetInputs = z.output<typeof inputs>;

const fleetMember = named(
  "FleetMember",
  z.object({
    id: required(z.string(), "Id of the Machine, `app/machineId`."),
    name: required(z.string(), "Name of the Machine."),
    region: optional(z.string(), "Region it runs in."),
    state: required(z.string(), "State of the Machine."),
    version: optional(z.string(), "Identifier of its configuration's version."),
    privateIp: optional(z.string(), "IPv6 address on the private network."),
    digest: optional(z.string(), "Digest of the image that it runs: `sha256:` and 64 hexadecimal digits."),
  }),
);

/** Outputs of a fleet. */
export const outputs = z.object({
  name: required(z.string(), "Name of the fleet."),
  machines: required(z.array(fleetMember), "The Machines that serve, by name."),
  rollout: required(
    z.string(),
    "`complete`; `canary` or `green` while canaries, or new Machines without traffic, wait for `promoted`; `failed` after a rollout that stopped, and in the dynamic binding also after one that was rolled back.",
  ),
  awaited: optional(
    z.string(),
    "While new Machines have no traffic yet: the digest of the image that they run, `sha256:` and 64 hexadecimal digits.",
  ),
  gatePassed: optional(
    z.boolean(),
    "True after a rollout that failed when its configuration had been promoted: the next update continues without another promotion.",
  ),
  image: optional(z.string(), "The image that the Machines run, with its digest."),
  drift: required(z.array(z.string()), "Changes by others that the last refresh found; the next update repairs them."),
  committed: optional(
    config,
    "While a rollout is not complete, no Machine runs, or most Machines have a configuration that others have set: the last configuration that a rollout brought to all Machines, to which a rollback returns.",
    { secret: true },
  ),
  otherMachines: optional(
    z.array(z.string()),
    "Ids of the fleet's Machines that do not serve, `app/machineId`: standbys, stopped and kept Machines, those without traffic yet, and those whose hosts cannot be reached.",
  ),
  volumes: optional(
    z.array(z.string()),
    "Ids of the volumes that the fleet created or adopted, `app/volumeId`. Its Machines mount them, or did so earlier.",
  ),
  keptVolumes: optional(
    z.array(z.string()),
    "Ids of the volumes that the fleet made, that no Machine mounts, and that were kept and reported, `app/volumeId`.",
  ),
});

const amountOf = (text: string, total: number, round: (value: number) => number): number => {
  const number = Number(text.replace("%", ""));
  return text.endsWith("%") ? round((total * number) / 100 + (round === Math.ceil ? -1e-9 : 1e-9)) : number;
};

/** What the planner needs to know of the inputs. `isPromoted`: the rollout does not wait, or not any more. */
export function wantedOf(wanted: Partial<FleetInputs>, isPromoted: boolean): Wanted {
  const { type = "rolling", maxUnavailable, maxSurge, count = 1, keepOld = false } = wanted.strategy ?? {};
  const regions = regionsOf(wanted);
  const total = totalOf(regions);
  const least = maxUnavailable === "0" || maxUnavailable === "0%" ? 0 : 1;
  return {
    regions,
    strategy: type,
    maxUnavailable: Math.max(least, amountOf(maxUnavailable ?? `${100 / 3}%`, total, Math.floor)),
    maxSurge: amountOf(maxSurge ?? "0", total, Math.ceil),
    canaries: count,
    isObserved: false,
    isPromoted,
    keepOld,
    needsRelease: wanted.releaseCommand !== undefined,
    isTied: wanted.volume !== undefined,
  };
}

/** Milliseconds of an optional duration. */
export const millisecondsOf = (text: string | undefined, otherwise: string): number =>
  (parseDuration(text ?? otherwise) ?? 0) / 1e6;

/** The configuration of the fleet's Machines. */
export type Template = Pick<FleetInputs, "minSecretsVersion" | "volume" | "memoryLimitMb"> & {
  readonly config: Config;
};
