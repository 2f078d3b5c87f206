// Snapshots of a volume (docs/interface.md#snapshots): the service returns no id and writes one at a time.
import type { Api, AnswerOf } from "../client/api.ts";
import { Pending, poll, retryWhilePreconditionFails } from "../client/poll.ts";
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

/** Milliseconds; if a list lacks a snapshot for longer, the snapshot is gone. */
const missingAtMost = 10_000;

/** The snapshots of a list. One without an identifier is left out, because it could not be identified. */
export const identified = (snapshots: Readonly<AnswerOf<"volumes", "listSnapshots">>): Snapshot[] =>
  snapshots.flatMap(({ id, ...rest }) => (id === undefined ? [] : [{ ...rest, id }]));

const list = async (api: Api, key: VolumeKey): Promise<Snapshot[]> => identified(await api.volumes.listSnapshots(key));

/** A snapshot from the list of its volume; undefined if it is gone. @throws ApiError 404 if its App is. */
export async function snapshotIn(
  api: Api,
  { appName }: VolumeKey,
  id: string,
  ask: () => Promise<Readonly<AnswerOf<"volumes", "listSnapshots">>>,
): Promise<Snapshot | undefined> {
  const known = await ask().catch(async (error: unknown) => {
    if (!isNotFound(error)) throw error;
    // The volume is deleted with all its snapshots, but only if the App still exists.
    await api.apps.get({ appName });
    return [];
  });
  return identified(known).find((snapshot) => snapshot.id === id);
}

/** Starts a snapshot, after any unfinished one, and returns it. One of an interrupted run is another if its triggers were others. */
export const takeSnapshot = (
  call: Call,
  owner: string | undefined,
  key: VolumeKey,
  triggers?: Readonly<Record<string, string>>,
): Promise<Snapshot> =>
  retryWhilePreconditionFails(call, `the snapshot of ${key.volumeId} that is being taken already`, () =>
    createExactlyOnce<Snapshot, Snapshot>(call, {
      what: `the snapshot of volume ${key.appName}/${key.volumeId}`,
      owner,
      place: `snapshots of volume ${key.appName}/${key.volumeId}`,
      name: "",
      unique: false,
      fixedInputs: { triggers },
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
export function untilWritten(
  { api, progress }: Pick<Call, "api" | "progress">,
  key: VolumeKey,
  begun: Snapshot,
): Promise<Snapshot> {
  const name = `snapshot ${begun.id} of ${key.appName}/${key.volumeId}`;
  let live: Snapshot | undefined = begun;
  let [status, shownAt] = [begun.status, api.clock.now()];
  const readSnapshot = async (): Promise<Snapshot | Pending> => {
    const found = live ?? (await list(api, key)).find(({ id }) => id === begun.id);
    live = undefined;
    if (found) [status, shownAt] = [found.status, api.clock.now()];
    else if (api.clock.now() - shownAt >= missingAtMost)
      throw new MachinesError("api", `${name} no longer exists: it was not complete when the service last listed it`);
    if (found?.status === "created") return found;
    const is = `it is ${status ?? "in no known state"}`;
    return new Pending(
      `waiting for snapshot ${begun.id} to be written: ${is}`,
      () => new MachinesError("wait-timeout", `${name} was not written within ${api.deadline.allowed}: ${is}`),
    );
  };
  return poll({ api, progress }, readSnapshot, { first: 50 });
}

/** The volumes of an App that are not being deleted. */
export const liveVolumes = ({ api, answers }: Pass, appName: string): Promise<readonly Volume[]> =>
  answers.get(`volumes/${appName}`, async () =>
    (await api.volumes.list({ appName })).filter(({ state }) => !isLeaving(state)),
  );
