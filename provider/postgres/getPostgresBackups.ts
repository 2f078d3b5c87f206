// The backups of a cluster (docs/interface.md#backups).
import { z } from "zod";
import { postgres } from "../../api/postgres.ts";
import { required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { clusterInput, detailsOf } from "./details.ts";

const item = detailsOf("PostgresBackupDetails", postgres.listBackups.answer.shape.data.element);

export const getPostgresBackups = defineFunction({
  name: "getPostgresBackups",
  summary: "Lists the backups of a Postgres cluster.",
  inputs: z.object({ cluster: clusterInput }),
  outputs: z.object({ backups: required(z.array(item), "The backups, newest first.") }),

  async call({ inputs: { cluster }, api }) {
    return { backups: (await api.postgres.listBackups({ postgresClusterId: cluster })).data };
  },
});
