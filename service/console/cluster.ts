// One Postgres cluster with what is in it.
import type { Stack } from "../../api/urn.ts";
import { ask, askFor, type Asker } from "./ask.ts";

/**
 * A cluster, its databases, users, backups and queries; null for what cannot be asked yet. `stacks` are those whose programs may
 * declare what is in it.
 */
export async function clusterView(asker: Asker, id: string, stacks: readonly Stack[]) {
  const params = { postgres_cluster_id: id };
  return {
    /** Whether a server listens at its addresses. */
    isReal: asker.context.postgres.run !== undefined,
    noBackups: asker.context.postgres.noBackups ?? null,
    stacks: stacks.map(({ project, stack }) => `${project}/${stack}`),
    cluster: (await ask(asker, "postgres", "get", params)).data,
    databases: (await askFor(ask(asker, "postgres", "listDatabases", params)))?.data ?? null,
    users: (await askFor(ask(asker, "postgres", "listUsers", params)))?.data ?? null,
    backups: (await askFor(ask(asker, "postgres", "listBackups", params)))?.data ?? null,
    active: (await askFor(ask(asker, "postgres", "activeQueries", params)))?.data ?? null,
    slow: (await askFor(ask(asker, "postgres", "slowQueries", params)))?.data ?? null,
  };
}

/** What the page gets of a cluster. */
export type ClusterView = Awaited<ReturnType<typeof clusterView>>;
