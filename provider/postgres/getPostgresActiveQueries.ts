// The queries that run in a cluster now (docs/interface.md#queries).
import { z } from "zod";
import { postgres } from "../../api/postgres.ts";
import { optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { clusterInput, detailsOf } from "./details.ts";

const item = detailsOf("PostgresActiveQuery", postgres.activeQueries.answer.shape.data.element);

export const getPostgresActiveQueries = defineFunction({
  name: "getPostgresActiveQueries",
  summary: "Lists the queries that run in a Postgres cluster now.",
  inputs: z.object({
    cluster: clusterInput,
    database: optional(z.string(), "Only queries in this database: the `id` of a PostgresDatabase, or a name.", {
      format: "reference",
    }),
  }),
  outputs: z.object({ queries: required(z.array(item), "The queries.") }),

  async call({ inputs: { cluster, database }, api }) {
    return { queries: (await api.postgres.activeQueries({ postgresClusterId: cluster, database })).data };
  },
});
