// Backups of Postgres clusters (docs/interface.md#backups). The service creates and expires them; no operation removes
// one.
import { z } from "zod";
import { postgresBackupType } from "../../api/postgres.ts";
import { optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { Pending, poll } from "../client/poll.ts";
import { readWithin, whenReady } from "./clusters.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { ApiError, MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import { fixed, pathId } from "../core/ids.ts";
import { defineResource, type Call } from "../core/resource.ts";
import { triggers } from "../shared/triggers.ts";

const inputs = z.object({
  cluster: required(
    z.string(),
    "Cluster to back up: the `id` of a PostgresCluster. Changing it creates another backup.",
    { format: "reference" },
  ),
  type: postgresBackupType
    .default("full")
    .describe(
      "`full`, `incr` (changes since the last backup) or `diff` (changes since the last full one). Changing it creates another backup.",
    ),
  triggers: triggers("another backup is created"),
});

const outputs = z.object({
  backupId: required(z.string(), "Identifier within the cluster."),
  status: optional(z.string(), "`running`, `completed` or `failed`."),
  sizeBytes: optional(z.int(), "Stored bytes."),
  startedAt: optional(z.string(), "RFC 3339 time it began."),
  finishedAt: optional(z.string(), "RFC 3339 time it ended."),
  expired: optional(z.boolean(), "True once the service no longer lists it: it can no longer be restored."),
});

type Backup = AnswerOf<"postgres", "createBackup">["data"];

const longestPause = 2000;
/** How many consecutive times the service may report a running backup while it lists none. */
const looks = 5;

const toLive = (cluster: string, { id, type, status, sizeBytes, startedAt, finishedAt }: Backup) => ({
  cluster,
  backupId: id,
  type,
  status,
  sizeBytes: sizeBytes ?? undefined,
  startedAt: startedAt ?? undefined,
  finishedAt: finishedAt ?? undefined,
});

export const postgresBackup = defineResource({
  name: "PostgresBackup",
  summary: "A backup of a Postgres cluster, taken when the resource is created.",
  description:
    "The service decides how long it stores a backup. Deleting the resource does not delete the backup. A backup that no longer exists has `expired` set.",
  inputs,
  outputs,
  id: pathId("cluster", fixed("backup"), "backupId"),
  within: { kind: "cluster", part: "cluster" },
  list: {
    objects: async ({ api }, cluster) =>
      (await api.postgres.listBackups({ postgresClusterId: cluster })).data.map(({ id, startedAt }) => ({
        parts: { cluster, backupId: id },
        createdAt: startedAt ?? undefined,
      })),
    shownBy: "postgres.listBackups",
    deletedBy: undefined,
    isScheduled: true,
  },
  replaceOn: ["cluster", "type", "triggers"],
  dependsOn: { status: "any", sizeBytes: "any", finishedAt: "any", expired: "any" },
  minutes: { create: 60, update: 60 },

  async create({ inputs, owner, ...call }) {
    const { cluster } = inputs;
    const created = await startBackup(call, owner, inputs);
    return completed(call, cluster, created);
  },

  read: ({ id, state, ...call }) =>
    readWithin(call, state, async () => {
      const found = (await backupsOf(call, id.cluster)).find((backup) => backup.id === id.backupId);
      if (found) return toLive(id.cluster, found);
      return state && { ...state, ...id, expired: true };
    }),

  // Every input replaces, so this is only called to finish a creation.
  async update({ id, old, ...call }) {
    const found = (await backupsOf(call, id.cluster)).find((backup) => backup.id === id.backupId);
    return found ? completed(call, id.cluster, found) : { ...old, expired: true };
  },

  delete({ id, warn }) {
    warn(`backup ${id.backupId} of cluster ${id.cluster} cannot be deleted; the service decides how long it is stored`);
    return Promise.resolve();
  },
});

const backupsOf = async (call: Call, cluster: string) =>
  (await whenReady(call, cluster, () => call.api.postgres.listBackups({ postgresClusterId: cluster }))).data;

/** Starts a backup, once no other one runs. */
async function startBackup(
  call: Call,
  owner: string | undefined,
  { cluster, type, triggers: given }: z.output<typeof inputs>,
): Promise<Backup> {
  const { api } = call;
  const isIdle = (all: readonly Backup[]): boolean => all.every(({ status }) => status !== "running");
  let unexplained = 0;
  const begin = async (): Promise<Backup | Pending> => {
    try {
      return await createExactlyOnce<Backup, Backup>(call, {
        what: `a ${type} backup of cluster ${cluster}`,
        owner,
        place: `backups of cluster ${cluster}`,
        name: type,
        unique: false,
        // A backup shows no triggers: one of another release may be older than its changes.
        fixedInputs: { triggers: given },
        list: () => backupsOf(call, cluster),
        keyOf: ({ id }) => id,
        keysOf: ({ id }) => [id],
        createdAt: ({ startedAt }) => startedAt ?? undefined,
        send: async () => (await api.postgres.createBackup({ postgresClusterId: cluster, body: { type } })).data,
        pick: (fresh) => fresh.find((backup) => backup.type === type),
      });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      // A backup that ran may have ended meanwhile; a new one may not be listed yet.
      unexplained = isIdle(await backupsOf(call, cluster)) ? unexplained + 1 : 0;
      if (unexplained >= looks) throw error;
      if (unexplained === 0) await settled(call, cluster, isIdle, "the backup that runs");
      return new Pending(undefined, () => error);
    }
  };
  return poll(call, begin, { longest: longestPause });
}

async function completed(call: Call, cluster: string, startBackup: Backup) {
  let live = startBackup;
  const isDone = (all: readonly Backup[]): boolean => {
    live = all.find(({ id }) => id === startBackup.id) ?? live;
    return live.status === "completed" || live.status === "failed";
  };
  try {
    if (!isDone([startBackup])) await settled(call, cluster, isDone, `backup ${startBackup.id}`);
    if (live.status === "failed") {
      throw new MachinesError(
        "api",
        `backup ${startBackup.id} of cluster ${cluster} failed. Change a value in triggers, or run pulumi up --replace, for another one.`,
      );
    }
    return toLive(cluster, live);
  } catch (error) {
    throw new PartialStateError(toLive(cluster, live), error);
  }
}

/** Waits until the backups of a cluster meet a condition. */
async function settled(
  call: Call,
  cluster: string,
  isDone: (backups: readonly Backup[]) => boolean,
  what: string,
): Promise<void> {
  const readSettled = async (): Promise<boolean | Pending> => {
    if (isDone(await backupsOf(call, cluster))) return true;
    return new Pending(
      `waiting for ${what} of cluster ${cluster}`,
      () =>
        new MachinesError(
          "wait-timeout",
          `${what} of cluster ${cluster} was not finished within ${call.api.deadline.allowed}; it continues in the service. The next up checks it again.`,
        ),
    );
  };
  await poll(call, readSettled, { first: 50, longest: longestPause });
}
