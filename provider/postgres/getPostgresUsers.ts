// The users of a cluster (docs/interface.md#users-and-credentials).
import { z } from "zod";
import { postgres } from "../../api/postgres.ts";
import { required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { clusterInput, detailsOf } from "./details.ts";

const item = detailsOf("PostgresUserDetails", postgres.listUsers.answer.shape.data.element);

export const getPostgresUsers = defineFunction({
  name: "getPostgresUsers",
  summary: "Lists the users of a Postgres cluster.",
  inputs: z.object({ cluster: clusterInput }),
  outputs: z.object({ users: required(z.array(item), "The users.") }),

  async call({ inputs: { cluster }, api }) {
    return { users: (await api.postgres.listUsers({ postgresClusterId: cluster })).data };
  },
});
