// Databases of a Postgres cluster (docs/interface.md#databases).
import { z } from "zod";
import { databaseName } from "../../api/names.ts";
import { required } from "../../api/schema.ts";
import { deleteWithin, readWithin, whenReady } from "./clusters.ts";
import type { Api } from "../client/api.ts";
import type { Waiting } from "../client/poll.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { fixed, pathId } from "../core/ids.ts";
import { behaviour, defineResource } from "../core/resource.ts";
import { databaseNames, platformDatabases } from "./credentials.ts";

const inputs = z.object({
  cluster: required(
    z.string(),
    "Cluster the database is in: the `id` of a PostgresCluster. Changing it replaces the database.",
    { format: "reference" },
  ),
  name: required(
    databaseName,
    "Name, 1 to 63 letters, digits, `-` and `_`, unique in the cluster. Changing it replaces the database.",
  ),
  allowDataLoss: behaviour(z.boolean().default(false)).describe(
    "Allows a change that replaces the database and destroys its data.",
  ),
});

export const postgresDatabase = defineResource({
  name: "PostgresDatabase",
  summary: "A database of a Postgres cluster.",
  inputs,
  outputs: z.object({ name: required(z.string(), "Name of the database.") }),
  id: pathId("cluster", fixed("database"), "name"),
  within: { kind: "cluster", part: "cluster" },
  list: {
    objects: async (pass, cluster) =>
      (await databaseNames(pass, cluster))
        .filter((name) => !platformDatabases.includes(name))
        .map((name) => ({ parts: { cluster, name } })),
    shownBy: "postgres.listDatabases",
    deletedBy: "postgres.deleteDatabase",
  },
  namedAs: "database",
  replaceOn: ["cluster", "name"],
  uniqueBy: ["cluster", "name"],
  losesData: "its data",

  async create({ inputs: { cluster, name }, owner, ...call }) {
    await createExactlyOnce(call, {
      what: `database ${name} of cluster ${cluster}`,
      owner,
      place: `databases of cluster ${cluster}`,
      name,
      unique: true,
      list: () => databasesOf(call, cluster),
      keyOf: (database) => database.name,
      send: async () => (await call.api.postgres.createDatabase({ postgresClusterId: cluster, body: { name } })).data,
      pick: (fresh) => fresh.find((database) => database.name === name),
    });
    return { cluster, name };
  },

  read: ({ id, state, ...call }) =>
    readWithin(call, state, async () => {
      const found = (await databasesOf(call, id.cluster)).find(({ name }) => name === id.name);
      return found && { cluster: id.cluster, name: found.name };
    }),

  // Every input but the behaviour ones replaces: there is nothing to send.
  update: ({ inputs: { cluster, name } }) => Promise.resolve({ cluster, name }),

  async delete({ id, ...call }) {
    const key = { postgresClusterId: id.cluster, database: id.name };
    await deleteWithin(call, id.cluster, `database ${id.name}`, () => call.api.postgres.deleteDatabase(key));
  },
});

const databasesOf = async (call: Waiting<Api>, cluster: string) =>
  (await whenReady(call, cluster, () => call.api.postgres.listDatabases({ postgresClusterId: cluster }))).data;
