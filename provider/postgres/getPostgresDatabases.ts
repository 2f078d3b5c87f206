// The databases of a cluster (docs/interface.md#databases).
import { z } from "zod";
import { postgres } from "../../api/postgres.ts";
import { required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { clusterInput, detailsOf } from "./details.ts";

const item = detailsOf("PostgresDatabaseDetails", postgres.listDatabases.answer.shape.data.element);

export const getPostgresDatabases = defineFunction({
  name: "getPostgresDatabases",
  summary: "Lists the databases of a Postgres cluster.",
  inputs: z.object({ cluster: clusterInput }),
  outputs: z.object({ databases: required(z.array(item), "The databases.") }),

  async call({ inputs: { cluster }, api }) {
    return { databases: (await api.postgres.listDatabases({ postgresClusterId: cluster })).data };
  },
});
