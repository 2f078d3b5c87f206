// Volumes (docs/interface.md#volumes).
import { z } from "zod";
import { docsUrl } from "../../api/docsUrl.ts";
import { optional, required } from "../../api/schema.ts";
import { appName, regionCode, volumeName } from "../../api/names.ts";
import { findMachine, findVolume, type Volume } from "../client/listCache.ts";
import { retryWhilePreconditionFails } from "../client/poll.ts";
import { PartialStateError } from "../core/partialState.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, computed, defineResource } from "../core/resource.ts";
import { bareId } from "../../api/names.ts";
import { isLeaving } from "../apps/app.ts";
import { fleetOf, liveMachines } from "../machines/live.ts";
import { guest } from "../machines/settings.ts";
import { regionProblem } from "../shared/region.ts";
import { begin, bringToSize, restart, setSnapshots, takeFinalSnapshot, unseenGrowth, type Growth } from "./steps.ts";
import { liveVolumes } from "./snapshots.ts";
import { orUndefined } from "../client/existence.ts";

const ofOrigin =
  "It is used only at creation: removing it later changes nothing, and another value replaces the volume. The copy is as large as its source, or as `sizeGb` if that is larger.";

const inputs = z.object({
  app: required(appName, "App that owns the volume: the `id` of an App. Changing it replaces the volume.", {
    format: "reference",
  }),
  name: computed(volumeName).describe(
    "Name, 1 to 30 of `a-z`, `0-9` and `_`; several volumes may share one. Generated from the resource's name when left out. Changing it replaces the volume.",
  ),
  region: computed(regionCode).describe(
    "Region code, for example `ams`; the service picks one when left out. Changing it replaces the volume.",
  ),
  sizeGb: z
    .int()
    .min(1)
    .max(500)
    .default(3)
    .describe(
      "Requested size in GB, 1 to 500. A volume can be extended in place, and never shrinks. One that the platform extended stays at its larger size.",
    ),
  encrypted: z.boolean().default(true).describe("Whether the volume is encrypted. Changing it replaces the volume."),
  fstype: z.enum(["ext4", "raw"]).default("ext4").describe("File system. Changing it replaces the volume."),
  snapshotRetention: z.int().min(1).max(60).default(5).describe("Days that a snapshot is stored, 1 to 60."),
  autoBackupEnabled: z.boolean().default(true).describe("Whether snapshots are taken every day."),
  snapshotId: computed(z.string().meta({ format: "reference" }), "creation").describe(
    `Snapshot the volume is restored from: the \`id\` of a VolumeSnapshot. ${ofOrigin} Exclusive with \`sourceVolumeId\`.`,
  ),
  sourceVolumeId: computed(z.string().meta({ format: "reference" }), "creation").describe(
    `Volume the new one is a fork of, in any region: the \`id\` of a Volume. ${ofOrigin} Exclusive with \`snapshotId\`.`,
  ),
  requireUniqueZone: behaviour(z.boolean().default(true)).describe(
    "Whether the volume must be in another hardware zone than the App's other volumes of its name. Used only at creation.",
  ),
  uniqueZoneAppWide: behaviour(z.boolean().default(false)).describe(
    "Whether `requireUniqueZone` counts all of the App's volumes, not only those of the same name. Used only at creation.",
  ),
  compute: behaviour(guest).describe(
    "CPU and memory of the Machine that will mount the volume: the volume is placed where such a Machine fits. Used only at creation.",
  ),
  computeImage: behaviour(z.string().optional()).describe("Image of that Machine. Used only at creation."),
  restartOnExtend: behaviour(z.boolean().default(false)).describe(
    "Restarts the Machine that mounts the volume after extending it, if the Machine needs that to see the new size.",
  ),
  finalSnapshot: behaviour(z.boolean().default(false)).describe(
    "Whether to take a snapshot, and wait for it, before the volume is deleted. Its id is printed as a warning. If the snapshot fails, the volume is not deleted. A large volume may need more than the 5 minutes of a deletion: raise `customTimeouts.delete`.",
  ),
  allowDataLoss: behaviour(z.boolean().default(false)).describe(
    "Allows a change that replaces the volume and destroys its data.",
  ),
});

type Inputs = z.output<typeof inputs>;

const outputs = z.object({
  name: required(z.string(), "Name of the volume."),
  region: optional(z.string(), "Region the volume is in."),
  volumeId: required(z.string(), "Identifier within the App."),
  zone: optional(z.string(), "Hardware zone the volume is in."),
  currentSizeGb: optional(
    z.int(),
    "Current size in GB. It is larger than requested if the platform extended the volume.",
  ),
  needsRestart: required(z.boolean(), "Whether the Machine that mounts the volume must restart to see its new size."),
  startBeforeGrowth: optional(
    z.string(),
    "While `needsRestart` is true: id of the event of that Machine's last start before the volume was extended.",
  ),
  attachedMachineId: optional(z.string(), "Machine that mounts the volume, if any."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
});

const toLive = (app: string, live: Volume, growth: Growth = { needsRestart: false }) => ({
  app,
  volumeId: live.id,
  name: live.name ?? "",
  region: live.region,
  zone: live.zone,
  encrypted: live.encrypted,
  // Empty before the first mount: no drift.
  fstype: live.fstype || undefined,
  snapshotRetention: live.snapshotRetention,
  autoBackupEnabled: live.autoBackupEnabled,
  currentSizeGb: live.sizeGb,
  needsRestart: growth.needsRestart,
  startBeforeGrowth: growth.startBeforeGrowth,
  attachedMachineId: live.attachedMachineId ?? undefined,
  createdAt: live.createdAt,
});

/**
 * The requested size in the state after a failure. A volume whose extension was refused keeps the smaller one, so that the program
 * may return to it. An accepted extension cannot be taken back, although the volume may not show it yet.
 */
function sizeAfterFailure(
  { sizeGb }: Volume,
  wanted: number,
  { before = wanted, isAccepted }: { readonly before?: number | undefined; readonly isAccepted: boolean },
): number {
  const size = sizeGb ?? wanted;
  return isAccepted || size >= wanted ? wanted : Math.min(before, size);
}

const replacing = ["app", "name", "region", "encrypted", "fstype", "snapshotId", "sourceVolumeId"] as const;

/** Whether a change creates another volume, and the program permits it. */
const isAllowedAnew = (old: Partial<Inputs>, next: Partial<Inputs>): boolean =>
  next.allowDataLoss === true &&
  replacing.some((name) => {
    const [before, after] = [old[name], next[name]];
    return before !== undefined && after !== undefined && bareId(String(before)) !== bareId(String(after));
  });

export const volume = defineResource({
  name: "Volume",
  summary: "Block storage that one Machine at a time can mount.",
  inputs,
  outputs,
  id: pathId("app", "volumeId"),
  list: {
    objects: async (pass, appName) => {
      const volumes = await liveVolumes(pass, appName);
      const isMounted = volumes.some(({ attachedMachineId }) => attachedMachineId);
      const machines = isMounted ? await liveMachines(pass, appName) : [];
      // Those that a Machine of a fleet mounts belong to the fleet.
      const ofFleets = new Set(machines.filter((one) => fleetOf(one) !== undefined).map(({ id }) => id));
      return volumes
        .filter(({ attachedMachineId }) => !ofFleets.has(attachedMachineId ?? ""))
        .map(({ id, name, createdAt, attachedMachineId: machineId }) => ({
          ...{ parts: { app: appName, volumeId: id }, name, createdAt },
          ...(machineId ? { mountedBy: { app: appName, machineId } } : {}),
        }));
    },
    exists: async (api, { app = "", volumeId = "" }) => {
      const live = await orUndefined(() => api.volumes.get({ appName: app, volumeId }));
      return live !== undefined && !isLeaving(live.state);
    },
    shownBy: "volumes.get",
    deletedBy: "volumes.delete",
  },
  replaceOn: replacing,
  dependsOn: { currentSizeGb: ["sizeGb"], needsRestart: "any", startBeforeGrowth: "any" },
  autoname: { property: "name", maxLength: 30, separator: "_", random: false },
  losesData: "its data",
  keepDataBy,
  validate: ({ snapshotId, sourceVolumeId }) =>
    snapshotId !== undefined && sourceVolumeId !== undefined
      ? [
          {
            path: ["sourceVolumeId"],
            message: "cannot be combined with snapshotId: a volume is created from one of them",
          },
        ]
      : [],
  minutes: { delete: 5 },
  refuseFromState: (old, next) =>
    old.sizeGb !== undefined && next.sizeGb !== undefined && next.sizeGb < old.sizeGb && !isAllowedAnew(old, next)
      ? {
          path: ["sizeGb"],
          message: `got ${next.sizeGb}, which is less than the ${old.sizeGb} GB that were requested before; a volume can be extended, and never shrinks. Keep ${old.sizeGb}, or create a second, smaller volume and copy the data to it (${docsUrl("volumes.md#growing")})`,
        }
      : undefined,
  previewChecks: [{ needs: ["region"], ask: ({ region }, api) => regionProblem(api, region) }],
  observed: ["currentSizeGb", "snapshotRetention", "autoBackupEnabled"],

  async create({
    inputs: { app, allowDataLoss: _, restartOnExtend: __, finalSnapshot: ___, ...body },
    owner,
    ...call
  }) {
    let live = await begin(call, owner, app, body);
    const key = { appName: app, volumeId: live.id };
    let isAccepted = false;
    try {
      // Nothing mounts it yet, so nothing must be restarted.
      live = await bringToSize(call, key, live, body.sizeGb, () => void (isAccepted = true));
      // The interrupted run may have requested other settings.
      return toLive(app, await setSnapshots(call, key, live, body));
    } catch (error) {
      const sizeGb = sizeAfterFailure(live, body.sizeGb, { isAccepted });
      throw new PartialStateError({ ...toLive(app, live), sizeGb }, error);
    }
  },

  async read({ id, state, api }) {
    const live = await findVolume(api, id.app, id.volumeId);
    if (isLeaving(live.state)) return undefined;
    // An import has no requested size yet: it is the volume's current size.
    const asked = state?.sizeGb === undefined ? { sizeGb: live.sizeGb } : {};
    const { needsRestart = false, ...known } = state ?? {};
    const growth = await unseenGrowth(live, { ...known, needsRestart }, (machine) => findMachine(api, id.app, machine));
    return { ...toLive(id.app, live, growth), ...asked };
  },

  async update({ id, inputs: next, old, unfinished, ...call }) {
    const { api } = call;
    const key = { appName: id.app, volumeId: id.volumeId };
    let live = await api.volumes.get(key);
    let growth: Growth & { readonly attachedMachineId?: string | undefined } = old;
    let isNew = unfinished;
    let isAccepted = false;
    try {
      live = await bringToSize(call, key, live, next.sizeGb, (needsRestart) => {
        isAccepted = true;
        if (needsRestart) [growth, isNew] = [{ needsRestart }, true];
      });
      live = await setSnapshots(call, key, live, next);
      growth = await unseenGrowth(live, growth, (machineId) => api.machines.get({ appName: id.app, machineId }));
      if (growth.needsRestart && isNew && next.restartOnExtend && live.attachedMachineId) {
        await restart(call, id.app, live.attachedMachineId);
        growth = { needsRestart: false };
      }
      return toLive(id.app, live, growth);
    } catch (error) {
      const sizeGb = sizeAfterFailure(live, next.sizeGb, { before: old.sizeGb, isAccepted });
      throw new PartialStateError({ ...toLive(id.app, live, growth), sizeGb }, error);
    }
  },

  async delete({ id, state, ...call }) {
    const key = { appName: id.app, volumeId: id.volumeId };
    if (state.finalSnapshot === true) await takeFinalSnapshot(call, key);
    // The volume is detached a moment after its Machine is gone (docs/interface.md#volumes).
    await retryWhilePreconditionFails(call, "the volume to be detached", () => call.api.volumes.delete(key));
  },
});

/** How to make the change and keep the data: the service can fork a volume into any region, name or App. */
function keepDataBy(input: string): string {
  if (input === "fstype")
    return "to keep the data, create a second Volume with a Machine of its own and copy the files";
  const isOrigin = input === "snapshotId" || input === "sourceVolumeId";
  const second = isOrigin
    ? "create a second Volume with it"
    : `move it: stop its Machine, create a second Volume with the new ${input} and with sourceVolumeId set to the id of this one`;
  // An import is like that (R7).
  const unread = isOrigin
    ? "leave it out if the volume was created from it: its source cannot be read; otherwise, "
    : "";
  return `${unread}to keep the data, ${second}, mount the second one in the Machine instead, then remove this one (${docsUrl("volumes.md#moving-a-volume")})`;
}
