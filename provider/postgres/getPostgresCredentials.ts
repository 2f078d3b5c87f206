// Connection data of a cluster (docs/interface.md#users-and-credentials).
import { z } from "zod";
import { optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { credentialsOf, directUri, firstDatabase, firstUser, poolerUri } from "./credentials.ts";
import { clusterInput } from "./details.ts";

const inputs = z.object({
  cluster: clusterInput,
  user: optional(
    z.string(),
    "The user: the `id` of a PostgresUser, or a name; the cluster's first user when left out.",
    {
      format: "reference",
    },
  ),
  database: optional(
    z.string(),
    "Database the URIs name: the `id` of a PostgresDatabase, or a name; the cluster's first database when left out.",
    { format: "reference" },
  ),
});

const outputs = z.object({
  username: required(z.string(), "Name of the user."),
  password: required(z.string(), "The password.", { secret: true }),
  directUri: optional(z.string(), "URI to connect with straight to the primary.", { secret: true }),
  poolerUri: optional(z.string(), "URI to connect with through the connection pool.", { secret: true }),
});

export const getPostgresCredentials = defineFunction({
  name: "getPostgresCredentials",
  summary: "Shows how to connect to a Postgres cluster as one of its users.",
  inputs,
  outputs,

  async call({ inputs: { cluster, user = firstUser, database = firstDatabase }, api }) {
    const [found, { data: live }] = await Promise.all([
      credentialsOf(api, cluster, user),
      api.postgres.get({ postgresClusterId: cluster }),
    ]);
    const { username, password } = found;
    return {
      username,
      password,
      directUri: directUri(live, found, database),
      poolerUri: poolerUri(live, found, database),
    };
  },
});
