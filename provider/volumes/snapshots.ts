// Taking a snapshot of a volume (docs/interface.md#snapshots): the service answers nothing and writes one at a time.
import type { Api, AnswerOf } from "../client/api.ts";
import { everyTenSeconds, growingPause } from "../client/clock.ts";
import { retryWhilePreconditionFails } from "../client/poll.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { isNotFound, MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import type { Pass } from "../core/listing.ts";
import type { Volume } from "../client/listCache.ts";
import { isLeaving } from "../apps/app.ts";

/** A snapshot as programs see it. */
export type Snapshot = AnswerOf<"volumes", "listSnapshots">[number] & { readonly id: string };

/** One volume. */
export interface VolumeKey {
  readonly appName: string;
  readonly volumeId: string;
}

const longestPause = 1000;
/** Milliseconds; a list that lacks a snapshot for longer is not late: the snapshot is gone. */
const missingAtMost = 10_000;

/** The snapshots of a list; one without an identifier could not be told from others. */
export const identified = (snapshots: Readonly<AnswerOf<"volumes", "listSnapshots">>): Snapshot[] =>
  snapshots.flatMap(({ id, ...rest }) => (id === undefined ? [] : [{ ...rest, id }]));

const list = async (api: Api, key: VolumeKey): Promise<Snapshot[]> => identified(await api.volumes.listSnapshots(key));

/** A snapshot, as `ask` lists those of its volume; undefined when it is gone. @throws ApiError 404 when its App is. */
export async function snapshotIn(
  api: Api,
  { appName }: VolumeKey,
  id: string,
  ask: () => Promise<Readonly<AnswerOf<"volumes", "listSnapshots">>>,
): Promise<Snapshot | undefined> {
  const known = await ask().catch(async (error: unknown) => {
    if (!isNotFound(error)) throw error;
    // The volume is gone and so are all its snapshots, but only where the App is there to say so.
    await api.apps.get({ appName });
    return [];
  });
  return identified(known).find((snapshot) => snapshot.id === id);
}

/** Begins a snapshot, after the one that is being taken already, and answers it. */
export const takeSnapshot = (call: Call, owner: string | undefined, key: VolumeKey): Promise<Snapshot> =>
  retryWhilePreconditionFails(call, `the snapshot of ${key.volumeId} that is being taken already`, () =>
    createExactlyOnce<Snapshot, Snapshot>(call, {
      what: `the snapshot of volume ${key.appName}/${key.volumeId}`,
      owner,
      place: `snapshots of volume ${key.appName}/${key.volumeId}`,
      name: "",
      unique: false,
      list: () => list(call.api, key),
      keyOf: ({ id }) => id,
      keysOf: ({ id }) => [id],
      createdAt: ({ createdAt }) => createdAt,
      send: async () => {
        await call.api.volumes.createSnapshot(key);
        return undefined;
      },
      // ASSUMED: where others take snapshots of the volume at the same time, the newest is ours.
      pick: (fresh) => fresh.toSorted((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? -1 : 1)).at(-1),
    }),
  );

/** Waits until a snapshot is written. */
export async function untilWritten(
  { api, progress }: Pick<Call, "api" | "progress">,
  key: VolumeKey,
  begun: Snapshot,
): Promise<Snapshot> {
  const say = everyTenSeconds(api.clock, progress);
  const pause = growingPause(50, longestPause);
  let live = begun;
  let shown = api.clock.now();
  while (live.status !== "created") {
    const is = `it is ${live.status ?? "in no known state"}`;
    if (api.clock.now() + longestPause >= api.deadline.at)
      throw new MachinesError(
        "wait-timeout",
        `snapshot ${live.id} of ${key.appName}/${key.volumeId} was not written within ${api.deadline.allowed}: ${is}`,
      );
    say(`waiting for snapshot ${live.id} to be written: ${is}`);
    await api.clock.sleep(pause(), api.deadline.signal);
    const found = (await list(api, key)).find(({ id }) => id === begun.id);
    if (found) [live, shown] = [found, api.clock.now()];
    else if (api.clock.now() - shown >= missingAtMost)
      throw new MachinesError(
        "api",
        `snapshot ${live.id} of ${key.appName}/${key.volumeId} is gone: it was not written when the volume showed it last`,
      );
  }
  return live;
}

/** The volumes of an App that are not being deleted. */
export const liveVolumes = ({ api, once }: Pass, appName: string): Promise<readonly Volume[]> =>
  once(`volumes/${appName}`, async () =>
    (await api.volumes.list({ appName })).filter(({ state }) => !isLeaving(state)),
  );
