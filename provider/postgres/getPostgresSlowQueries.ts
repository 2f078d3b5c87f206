// The slowest queries of a cluster (docs/interface.md#queries).
import { z } from "zod";
import { postgres } from "../../api/postgres.ts";
import { duration, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { clusterInput, detailsOf } from "./details.ts";

const item = detailsOf("PostgresSlowQuery", postgres.slowQueries.answer.shape.data.element);

export const getPostgresSlowQueries = defineFunction({
  name: "getPostgresSlowQueries",
  summary: "Lists the queries of a Postgres cluster that took longest lately, the slowest first.",
  inputs: z.object({
    cluster: clusterInput,
    range: optional(duration(), "How far to look back, for example `24h`; 24 hours when left out."),
  }),
  outputs: z.object({ queries: required(z.array(item), "The queries.") }),

  async call({ inputs: { cluster, range }, api }) {
    return { queries: (await api.postgres.slowQueries({ postgresClusterId: cluster, range })).data };
  },
});
