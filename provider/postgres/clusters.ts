// Postgres clusters (docs/interface.md#cluster-states): waiting for one, and using one that may not be ready or may have
// failed.
import { ApiError, MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import type { AnswerOf, Api } from "../client/api.ts";
import { Pending, poll, type Waiting } from "../client/poll.ts";

/** A cluster as programs see it. */
export type Cluster = AnswerOf<"postgres", "get">["data"];

/** A cluster whose creation failed permanently. Objects in it can be neither read nor changed. */
class ClusterFailed extends MachinesError {}

const longestPause = 2000;

/** Whether a cluster is being deleted or is deleted: the same as a 404 or a 410 (docs/interface.md#cluster-states). */
export const isLeaving = (status: string | undefined): boolean => status === "deleting" || status === "deleted";

const hasFailed = (status: string | undefined): boolean => status === "failed" || status === "error";

/**
 * The cluster once it is ready. An unknown state is waited on (docs/interface.md#cluster-states). `seen` receives every
 * answer meanwhile.
 * @throws MachinesError if it failed, is being deleted, or the operation's deadline comes first
 */
export function untilReady(
  { api, progress }: Waiting<Api>,
  id: string,
  seen: (cluster: Cluster) => void = () => undefined,
): Promise<Cluster> {
  const readCluster = async (): Promise<Cluster | Pending> => {
    const { data } = await api.postgres.get({ postgresClusterId: id });
    seen(data);
    const { name, status = "in no known state" } = data;
    if (status === "ready") return data;
    if (hasFailed(status)) {
      throw new ClusterFailed(
        "api",
        `cluster ${id} (${name}) could not be set up: it is ${status}, and cannot recover. Set deletionProtection: false on it and replace it (pulumi up --replace), or delete it.`,
      );
    }
    if (isLeaving(status)) throw new MachinesError("api", `cluster ${id} (${name}) is ${status} and cannot be used`);
    return new Pending(
      `waiting for cluster ${name} to be ready: it is ${status}`,
      () =>
        new MachinesError(
          "wait-timeout",
          `cluster ${id} (${name}) was not ready within ${api.deadline.allowed}: it is ${status}. The next up continues from here.`,
        ),
    );
  };
  return poll({ api, progress }, readCluster, { longest: longestPause });
}

/** Runs work that needs a ready cluster; it waits for one that is not ready. */
export async function whenReady<T>(waiting: Waiting<Api>, cluster: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 503) throw error;
    await untilReady(waiting, cluster);
    return work();
  }
}

/** Warns of a failed cluster. */
type WarnCall = Pick<Call, "warn">;

/**
 * Reads an object in a cluster. An object in a failed cluster cannot be read, so its known state is kept and it can be
 * deleted.
 */
export async function readWithin<Live>(
  { warn }: WarnCall,
  state: object | undefined,
  read: () => Promise<Live | undefined>,
): Promise<Live | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ClusterFailed) || state === undefined) throw error;
    warn(`${error.message} Its contents cannot be read, so the state is not changed.`);
    // A state is the answer of an earlier read or create.
    return state as Live;
  }
}

/** Deletes an object in a cluster. An object in a failed cluster is deleted with the cluster. */
export async function deleteWithin(
  call: Waiting<Api> & WarnCall,
  cluster: string,
  what: string,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await whenReady(call, cluster, work);
  } catch (error) {
    if (!(error instanceof ClusterFailed)) throw error;
    call.warn(`${what} was not deleted separately; it is deleted with its cluster: ${error.message}`);
  }
}
