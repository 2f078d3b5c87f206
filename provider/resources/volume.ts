// Volumes (spec 2.1, 2.2, 4.4).
import { z } from "zod";
import { optional, required } from "../../api/schema.ts";
import { appName, regionCode, volumeName } from "../../api/names.ts";
import type { Api } from "../client/api.ts";
import { everyTenSeconds, growingPause } from "../client/clock.ts";
import { findVolume, type Volume } from "../client/inventory.ts";
import { withLease } from "../client/lease.ts";
import { waitForMachine } from "../client/wait.ts";
import { ApiError, isAmbiguous, MachinesError, PartialStateError } from "../core/errors.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, computed, defineResource, type Call } from "../core/resource.ts";
import { isLeaving } from "./app.ts";
import { regionProblem } from "./region.ts";

const inputs = z.object({
  app: required(appName, "App that owns the volume: the `id` of an App. Changing it replaces the volume.", {
    format: "reference",
  }),
  name: computed(volumeName).describe(
    "Name, 1 to 30 of `a-z`, `0-9` and `_`; several volumes may share one. Made from the resource's name when left out. Changing it replaces the volume.",
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
      "Size asked for in GB, 1 to 500. A volume grows in place and never shrinks; one that the platform made larger is left so.",
    ),
  encrypted: z.boolean().default(true).describe("Whether the volume is encrypted. Changing it replaces the volume."),
  fstype: z.enum(["ext4", "raw"]).default("ext4").describe("File system. Changing it replaces the volume."),
  snapshotRetention: z.int().min(1).max(60).default(5).describe("Days a snapshot is kept, 1 to 60."),
  autoBackupEnabled: z.boolean().default(true).describe("Whether snapshots are taken every day."),
  requireUniqueZone: behaviour(z.boolean().default(true)).describe(
    "Whether the volume gets another hardware zone than the App's other volumes of its name; used at creation.",
  ),
  restartOnExtend: behaviour(z.boolean().default(false)).describe(
    "Whether the Machine that mounts the volume is restarted when it sees a new size only then.",
  ),
  allowDataLoss: behaviour(z.boolean().default(false)).describe(
    "Lets a change that replaces the volume destroy what it holds.",
  ),
});

const outputs = z.object({
  name: required(z.string(), "Name of the volume."),
  region: optional(z.string(), "Region the volume is in."),
  volumeId: required(z.string(), "Identifier within the App."),
  zone: optional(z.string(), "Hardware zone the volume is in."),
  currentSizeGb: optional(z.int(), "Size now in GB; larger than asked for when the platform extended the volume."),
  needsRestart: required(
    z.boolean(),
    "Whether the Machine that mounts the volume sees its last growth only after a restart.",
  ),
  attachedMachineId: optional(z.string(), "Machine that mounts the volume, if any."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
});

const toLive = (app: string, live: Volume, needsRestart: boolean) => ({
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
  needsRestart,
  attachedMachineId: live.attachedMachineId ?? undefined,
  createdAt: live.createdAt,
});

/** Milliseconds; the last look is early enough for its answer to be the reason that is told. */
const longestPause = 1000;
const usable = ["created", "hydrating"];

export const volume = defineResource({
  name: "Volume",
  summary: "Block storage that one Machine at a time can mount.",
  inputs,
  outputs,
  id: pathId("app", "volumeId"),
  replaceOn: ["app", "name", "region", "encrypted", "fstype"],
  moves: { currentSizeGb: ["sizeGb"], needsRestart: "any" },
  autoname: { property: "name", maxLength: 30, separator: "_", random: false },
  losesData: "what it holds",
  minutes: { delete: 5 },
  refuse: (old, next) =>
    old.sizeGb !== undefined && next.sizeGb !== undefined && next.sizeGb < old.sizeGb
      ? {
          path: ["sizeGb"],
          message: `got ${next.sizeGb}, which is less than the ${old.sizeGb} GB asked for before; a volume grows in place and never shrinks. Keep ${old.sizeGb}, or make a second, smaller volume and copy`,
        }
      : undefined,
  questions: [{ needs: ["region"], ask: ({ region }, api) => regionProblem(api, region) }],

  async create({ inputs: { app, allowDataLoss: _, restartOnExtend: __, ...body }, api, progress }) {
    const made = await api.volumes.create({ appName: app, body });
    try {
      return toLive(app, await untilUsable(api, app, made, progress), false);
    } catch (error) {
      throw new PartialStateError(toLive(app, made, false), error);
    }
  },

  async read({ id, state, api }) {
    const live = await findVolume(api, id.app, id.volumeId);
    if (isLeaving(live.state)) return undefined;
    // An import has no size asked for yet: it is what the volume has.
    const asked = state?.sizeGb === undefined ? { sizeGb: live.sizeGb } : {};
    return { ...toLive(id.app, live, state?.needsRestart ?? false), ...asked };
  },

  async update({ id, inputs: next, old, ...call }) {
    const { api, progress } = call;
    const key = { appName: id.app, volumeId: id.volumeId };
    let live = await api.volumes.get(key);
    let needsRestart = old.needsRestart;
    try {
      live = await untilUsable(api, id.app, live, progress);
      if (next.sizeGb > (live.sizeGb ?? 0)) {
        needsRestart = (await extend(api, key, next.sizeGb)) || needsRestart;
        live = await untilUsable(api, id.app, await api.volumes.get(key), progress);
      }
      if (live.snapshotRetention !== next.snapshotRetention || live.autoBackupEnabled !== next.autoBackupEnabled) {
        const { snapshotRetention, autoBackupEnabled } = next;
        live = await api.volumes.update({ ...key, body: { snapshotRetention, autoBackupEnabled } });
      }
      if (needsRestart && next.restartOnExtend && live.attachedMachineId) {
        await restart(call, id.app, live.attachedMachineId);
        needsRestart = false;
      }
      return toLive(id.app, live, needsRestart);
    } catch (error) {
      throw new PartialStateError(toLive(id.app, live, needsRestart), error);
    }
  },

  async delete({ id, api, progress }) {
    const key = { appName: id.app, volumeId: id.volumeId };
    const say = everyTenSeconds(api.clock, progress);
    const pause = growingPause(100, longestPause);
    for (;;) {
      try {
        await api.volumes.delete(key);
        return;
      } catch (error) {
        // The volume is let go a moment after its Machine is gone (bodies 7.1).
        const bound = error instanceof ApiError && error.status === 412;
        if (!bound || api.clock.now() + longestPause >= api.deadline.at) throw error;
        say(`waiting for the volume to be let go: ${error.reason}`);
        await api.clock.sleep(pause(), api.deadline.signal);
      }
    }
  },
});

/** Grows the volume; answers whether its Machine needs a restart. A lost answer is settled by looking. */
async function extend(api: Api, key: { appName: string; volumeId: string }, sizeGb: number): Promise<boolean> {
  try {
    return (await api.volumes.extend({ ...key, body: { sizeGb } })).needsRestart ?? false;
  } catch (error) {
    if (!isAmbiguous(error)) throw error;
    const live = await api.volumes.get(key);
    if ((live.sizeGb ?? 0) < sizeGb) throw error;
    return live.attachedMachineId != null;
  }
}

async function untilUsable(api: Api, appName: string, made: Volume, progress: Call["progress"]): Promise<Volume> {
  let live = made;
  const say = everyTenSeconds(api.clock, progress);
  const pause = growingPause(50, longestPause);
  while (!usable.includes(live.state ?? "")) {
    if (isLeaving(live.state))
      throw new MachinesError("api", `volume ${made.id} is ${live.state ?? "gone"} and cannot be used`);
    if (api.clock.now() + longestPause >= api.deadline.at) {
      throw new MachinesError(
        "wait-timeout",
        `volume ${made.id} was not usable within ${api.deadline.allowed}: it is ${live.state ?? "in no known state"}. The next up goes on from here.`,
      );
    }
    say(`waiting for volume ${made.id}: it is ${live.state ?? "in no known state"}`);
    await api.clock.sleep(pause(), api.deadline.signal);
    live = await api.volumes.get({ appName, volumeId: made.id });
  }
  return live;
}

async function restart({ api, progress }: Call, appName: string, machineId: string): Promise<void> {
  const key = { appName, machineId };
  await withLease(api, key, { description: "restart after the growth of a volume", progress }, async (lease) => {
    const before = await api.machines.get(key);
    if (before.state !== "started") return;
    await api.machines.restart({ ...key, leaseNonce: lease.nonce() });
    const reached = await waitForMachine(api, key, ["started", "failed", "stopped"], { progress });
    if (reached !== "started")
      throw new MachinesError(
        "machine-failed",
        `Machine ${machineId} is ${reached} after its restart for the volume's new size`,
      );
  });
}
