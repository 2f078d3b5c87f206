// The extensions of a database (docs/interface.md#extensions).
import { z } from "zod";
import { databaseName } from "../../api/names.ts";
import { postgres } from "../../api/postgres.ts";
import { required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { idOrName } from "../core/ids.ts";
import { clusterInput, detailsOf } from "./details.ts";

const item = detailsOf("PostgresExtensionDetails", postgres.listExtensions.answer.shape.data.element);

export const getPostgresExtensions = defineFunction({
  name: "getPostgresExtensions",
  summary: "Lists the extensions a database could have, and those it has.",
  inputs: z.object({
    cluster: clusterInput,
    database: required(
      idOrName(databaseName, "a PostgresDatabase"),
      "The database: the `id` of a PostgresDatabase, or a name.",
      {
        format: "reference",
      },
    ),
  }),
  outputs: z.object({ extensions: required(z.array(item), "The extensions.") }),

  async call({ inputs: { cluster, database }, api }) {
    return { extensions: (await api.postgres.listExtensions({ postgresClusterId: cluster, database })).data };
  },
});
