// Connection data of a cluster: users, passwords, connection URIs (docs/interface.md#users-and-credentials).
import type { Api } from "../client/api.ts";
import type { Cluster } from "./clusters.ts";
import { ApiError, messageOf } from "../client/errors.ts";
import type { Call } from "../core/resource.ts";
import type { Pass } from "../core/listing.ts";

/** The initial user of every cluster (docs/interface.md#users-and-credentials). */
export const firstUser = "fly-user";

// ASSUMED: the database every cluster begins with is called `fly-db`.
export const firstDatabase = "fly-db";

/** A user who may connect. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** The password of a user (docs/interface.md#users-and-credentials). */
export const credentialsOf = async (api: Api, cluster: string, username: string): Promise<Credentials> =>
  (await api.postgres.credentials({ postgresClusterId: cluster, username })).data;

/** The same, or undefined if the service does not return them: a read-only token may not see passwords. */
export async function credentialsIfReported(
  { api, warn }: Call,
  cluster: string,
  username = firstUser,
): Promise<Credentials | undefined> {
  try {
    return await credentialsOf(api, cluster, username);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "api") throw error;
    warn(`the password of ${username} in cluster ${cluster} is not returned, because ${messageOf(error)}`);
    return undefined;
  }
}

/** The URI for clients; undefined until the cluster listens. */
export function connectionUri(
  endpoint: { readonly host?: string | undefined; readonly port?: number | undefined } | undefined,
  { username, password }: Credentials,
  database: string,
): string | undefined {
  if (endpoint?.host === undefined) return undefined;
  const host = endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host;
  const [user, secret, name] = [username, password, database].map(encodeURIComponent);
  return `postgresql://${user}:${secret}@${host}:${endpoint.port ?? 5432}/${name}`;
}

/** The URI through the connection pool. */
export const poolerUri = (cluster: Cluster, credentials: Credentials, database: string): string | undefined =>
  connectionUri(cluster.endpoints?.primary?.pooler, credentials, database);

/** The URI of the primary. */
export const directUri = (cluster: Cluster, credentials: Credentials, database: string): string | undefined =>
  connectionUri(cluster.endpoints?.primary?.direct, credentials, database);

// ASSUMED: these belong to the platform in every list; the first database and user come with every cluster.
/** Databases that the platform creates. */
export const platformDatabases: readonly string[] = [firstDatabase, "postgres", "template0", "template1"];
/** Users that the platform creates. */
export const platformUsers: readonly string[] = [firstUser, "postgres", "repmgr", "replication", "pgbouncer"];

/** Names of a cluster's databases. */
export const databaseNames = ({ api, answers }: Pass, cluster: string): Promise<readonly string[]> =>
  answers.get(`databases/${cluster}`, async () =>
    (await api.postgres.listDatabases({ postgresClusterId: cluster })).data.map(({ name }) => name),
  );
