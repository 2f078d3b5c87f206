// Clusters of Postgres (docs/interface.md#cluster-states): waiting for one, and working in one that may not be ready or
// may have failed.
import { ApiError, MachinesError } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import type { AnswerOf } from "../client/api.ts";
import { Pending, poll, type Waiting } from "../client/poll.ts";

/** A cluster as programs see it. */
export type Cluster = AnswerOf<"postgres", "get">["data"];

/** A cluster could not be set up and never will be: what is in it can be neither asked for nor changed. */
class ClusterFailed extends MachinesError {}

const longestPause = 2000;

/** Whether a cluster is on its way out or gone: the same as a 404 or a 410 (docs/interface.md#cluster-states). */
export const isLeaving = (status: string | undefined): boolean => status === "deleting" || status === "deleted";

const hasFailed = (status: string | undefined): boolean => status === "failed" || status === "error";

/**
 * The cluster once it is ready. A state nobody knows is waited on (docs/interface.md#cluster-states). `seen` is told
 * every answer on the way.
 * @throws MachinesError when it failed, is being deleted, or the operation's deadline comes first
 */
export function untilReady(
  { api, progress }: Waiting,
  id: string,
  seen: (cluster: Cluster) => void = () => undefined,
): Promise<Cluster> {
  const look = async (): Promise<Cluster | Pending> => {
    const { data } = await api.postgres.get({ postgresClusterId: id });
    seen(data);
    const { name, status = "in no known state" } = data;
    if (status === "ready") return data;
    if (hasFailed(status)) {
      throw new ClusterFailed(
        "api",
        `cluster ${id} (${name}) could not be set up: it is ${status}, and stays so. Set deletionProtection: false on it and replace it (pulumi up --replace), or delete it.`,
      );
    }
    if (isLeaving(status)) throw new MachinesError("api", `cluster ${id} (${name}) is ${status} and cannot be used`);
    return new Pending(
      `waiting for cluster ${name} to be ready: it is ${status}`,
      () =>
        new MachinesError(
          "wait-timeout",
          `cluster ${id} (${name}) was not ready within ${api.deadline.allowed}: it is ${status}. The next up goes on from here.`,
        ),
    );
  };
  return poll({ api, progress }, look, { longest: longestPause });
}

/** Does what needs a cluster that is ready; one that is not is waited for. */
export async function whenReady<T>(waiting: Waiting, cluster: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 503) throw error;
    await untilReady(waiting, cluster);
    return work();
  }
}

/** Who is told what a cluster that failed comes to. */
type Told = Pick<Call, "warn">;

/** Reads what is in a cluster. Of one that failed nobody can say anything: what is known stays, so that it can be deleted. */
export async function readWithin<Live>(
  { warn }: Told,
  state: object | undefined,
  read: () => Promise<Live | undefined>,
): Promise<Live | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ClusterFailed) || state === undefined) throw error;
    warn(`${error.message} What is in it cannot be read; the state stays as it is.`);
    // A state is what an earlier read or create answered.
    return state as Live;
  }
}

/** Deletes what is in a cluster; what is in one that failed goes with it. */
export async function deleteWithin(
  call: Waiting & Told,
  cluster: string,
  what: string,
  work: () => Promise<unknown>,
): Promise<void> {
  try {
    await whenReady(call, cluster, work);
  } catch (error) {
    if (!(error instanceof ClusterFailed)) throw error;
    call.warn(`${what} was not deleted by itself, it goes with its cluster: ${error.message}`);
  }
}
