// Changes of a volume that take more than one request (docs/interface.md#volumes).
import type { Api } from "../client/api.ts";
import { retryUnlessApplied } from "../core/retryUnlessApplied.ts";
import type { Volume } from "../client/listCache.ts";
import { withLease } from "../client/lease.ts";
import { orUndefined } from "../client/existence.ts";
import { Pending, poll, retryWhilePreconditionFails } from "../client/poll.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import type { Machine } from "../client/machine.ts";
import { waitForMachine } from "../client/wait.ts";
import { isNotFound, MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import { isLeaving } from "../apps/app.ts";
import { takeSnapshot, untilWritten, type VolumeKey } from "./snapshots.ts";

/** When snapshots are taken, and how many days they are stored. */
interface SnapshotSettings {
  readonly snapshotRetention: number;
  readonly autoBackupEnabled: boolean | undefined;
}

type Body = Parameters<Api["volumes"]["create"]>[0]["body"];

const usable = ["created", "hydrating"];

/**
 * Creates a volume once its source snapshot is written; after a lost answer, a read decides. ASSUMED: a copy without a
 * requested size is as large as its source; it grows afterwards.
 */
export function begin(call: Call, owner: string | undefined, appName: string, body: Body): Promise<Volume> {
  const isCopy = body.snapshotId !== undefined || body.sourceVolumeId !== undefined;
  const asked = isCopy ? { ...body, sizeGb: undefined } : body;
  return retryWhilePreconditionFails(call, "the snapshot to be written", () =>
    createExactlyOnce<Volume, Volume>(call, {
      what: `volume ${body.name ?? ""} in App ${appName}`,
      owner,
      place: `volumes of App ${appName}`,
      name: body.name ?? "",
      unique: false,
      // The file system is not shown before the first mount.
      fixedInputs: { fstype: body.fstype, snapshotId: body.snapshotId, sourceVolumeId: body.sourceVolumeId },
      list: () => call.api.volumes.list({ appName }),
      keyOf: ({ id }) => id,
      keysOf: ({ id }) => [id],
      createdAt: ({ createdAt }) => createdAt,
      send: () => call.api.volumes.create({ appName, body: asked }),
      pick: (fresh) => theOnly(fresh, appName, asked),
    }),
  );
}

/** The volume that matches the request. */
function theOnly(fresh: readonly Volume[], appName: string, asked: Body): Volume | undefined {
  const isAsked = (wanted: unknown, live: unknown): boolean => wanted === undefined || wanted === live;
  const [found, ...more] = fresh.filter(
    (live) =>
      !isLeaving(live.state) &&
      // A volume whose id is unknown cannot be mounted.
      !live.attachedMachineId &&
      live.name === asked.name &&
      isAsked(asked.region, live.region) &&
      isAsked(asked.encrypted, live.encrypted) &&
      isAsked(asked.sizeGb, live.sizeGb),
  );
  if (found && more.length > 0)
    throw new MachinesError(
      "ambiguous",
      `the answer to the creation of volume ${asked.name ?? ""} in App ${appName} was lost, and others created such volumes at the same time: ${[found, ...more].map(({ id }) => id).join(", ")}. It is unknown which of them is ours: delete or import the one that no program knows, then run up again.`,
    );
  return found;
}

/**
 * Waits until the volume can be used and has the requested size; `grown` is called with whether its Machine needs a
 * restart.
 */
export async function bringToSize(
  { api, progress }: Call,
  key: VolumeKey,
  found: Volume,
  sizeGb: number,
  grown: (needsRestart: boolean) => void,
): Promise<Volume> {
  const live = await untilUsable(api, key, found, progress);
  if (sizeGb <= (live.sizeGb ?? 0)) return live;
  grown(await extend(api, key, sizeGb));
  return untilUsable(api, key, await api.volumes.get(key), progress);
}

/** Sets what can be changed in place, if it differs. */
export function setSnapshots(
  { api }: Call,
  key: VolumeKey,
  live: Volume,
  { snapshotRetention, autoBackupEnabled }: SnapshotSettings,
): Promise<Volume> {
  return live.snapshotRetention === snapshotRetention && live.autoBackupEnabled === autoBackupEnabled
    ? Promise.resolve(live)
    : api.volumes.update({ ...key, body: { snapshotRetention, autoBackupEnabled } });
}

/** Extends the volume; returns whether its Machine needs a restart. After a lost answer, a read decides. */
const extend = (api: Api, key: VolumeKey, sizeGb: number): Promise<boolean> =>
  retryUnlessApplied(api, {
    send: async () => (await api.volumes.extend({ ...key, body: { sizeGb } })).needsRestart ?? false,
    look: async () => {
      const live = await api.volumes.get(key);
      return (live.sizeGb ?? 0) < sizeGb ? undefined : live.attachedMachineId != null;
    },
  });

/** Waits until a volume can be used. `found` is the answer of the last request. */
function untilUsable(api: Api, key: VolumeKey, found: Volume, progress: Call["progress"]): Promise<Volume> {
  let shown: Volume | undefined = found;
  const readVolume = async (): Promise<Volume | Pending> => {
    const live = shown ?? (await api.volumes.get(key));
    shown = undefined;
    const { state = "in no known state" } = live;
    if (usable.includes(state)) return live;
    if (isLeaving(live.state)) throw new MachinesError("api", `volume ${key.volumeId} is ${state} and cannot be used`);
    return new Pending(
      `waiting for volume ${key.volumeId}: it is ${state}`,
      () =>
        new MachinesError(
          "wait-timeout",
          `volume ${key.volumeId} was not usable within ${api.deadline.allowed}: it is ${state}. The next up continues from here.`,
        ),
    );
  };
  return poll({ api, progress }, readVolume, { first: 50 });
}

/** Whether the Machine that mounts a volume does not see its last extension yet. */
export interface Growth {
  readonly needsRestart: boolean;
  /** Its last start before that, as the event's id; empty if it shows none. */
  readonly startBeforeGrowth?: string | undefined;
}

/**
 * The size of an extension that still needs a restart: none after the volume was detached, or its Machine was restarted.
 */
export async function unseenGrowth(
  live: Volume,
  known: Growth & { readonly attachedMachineId?: string | undefined },
  find: (machineId: string) => Promise<Machine>,
): Promise<Growth> {
  const seen = { needsRestart: false };
  const holder = live.attachedMachineId;
  if (!known.needsRestart || !holder || (known.attachedMachineId ?? holder) !== holder) return seen;
  const machine = await orUndefined(() => find(holder));
  if (!machine || machine.state === "stopped") return seen;
  const start = (machine.events ?? []).find(({ type, status }) => type === "start" && status === "started")?.id ?? "";
  const before = known.startBeforeGrowth ?? start;
  // A Machine shows only its latest events: a missing start is not a new one.
  return start !== "" && start !== before ? seen : { needsRestart: true, startBeforeGrowth: before };
}

/** Restarts the Machine that mounts the volume, so that it sees the new size. */
export async function restart({ api, progress }: Call, appName: string, machineId: string): Promise<void> {
  const key = { appName, machineId };
  await withLease(api, key, { description: "restart after a volume was extended", progress }, async (lease) => {
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

/** Takes the final snapshot of the volume, once no Machine writes to it any more, and reports its id. */
export async function takeFinalSnapshot(call: Call, key: VolumeKey): Promise<void> {
  const volume = `${key.appName}/${key.volumeId}`;
  const live = await untilFree(call, key);
  if (isLeaving(live.state)) return;
  try {
    const { id, retentionDays } = await untilWritten(call, key, await takeSnapshot(call, undefined, key));
    const kept = retentionDays === undefined ? "" : ` for ${retentionDays} days`;
    call.warn(`volume ${volume} is deleted; its final snapshot ${volume}/${id} is kept${kept}`);
  } catch (error) {
    // A volume that is gone needs no snapshot: core must prove that.
    if (isNotFound(error) || !(error instanceof MachinesError)) throw error;
    throw new MachinesError(
      error.code,
      `volume ${volume} was not deleted, because its final snapshot failed: ${error.message}. Run again, or set finalSnapshot: false and run up before the deletion.`,
      { cause: error },
    );
  }
}

/** Waits until no Machine mounts the volume. */
const untilFree = (call: Call, key: VolumeKey): Promise<Volume> =>
  poll(call, async () => {
    const live = await call.api.volumes.get(key);
    const holder = live.attachedMachineId;
    if (!holder || isLeaving(live.state)) return live;
    return new Pending(
      `waiting for volume ${key.volumeId} to be released by Machine ${holder}`,
      () =>
        new MachinesError(
          "wait-timeout",
          `volume ${key.appName}/${key.volumeId} was not deleted within ${call.api.deadline.allowed}: Machine ${holder} still mounts it`,
        ),
    );
  });
