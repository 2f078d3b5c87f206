// Extensions of databases (docs/interface.md#extensions).
import { z } from "zod";
import { databaseName, extensionParam } from "../../api/names.ts";
import { required } from "../../api/schema.ts";
import { deleteWithin, readWithin, whenReady } from "./clusters.ts";
import type { Api } from "../client/api.ts";
import type { Waiting } from "../client/poll.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { ApiError, MachinesError } from "../client/errors.ts";
import { fixed, idOrName, pathId } from "../core/ids.ts";
import { behaviour, defineResource } from "../core/resource.ts";
import { databaseNames } from "./credentials.ts";

const inputs = z.object({
  cluster: required(
    z.string(),
    "Cluster the database is in: the `id` of a PostgresCluster. Changing it replaces the extension.",
    { format: "reference" },
  ),
  database: required(
    idOrName(databaseName, "a PostgresDatabase"),
    "Database to install the extension in: the `id` of a PostgresDatabase, or a name. Changing it replaces the extension.",
    { format: "reference" },
  ),
  name: required(extensionParam, "Name of the extension, for example `vector`. Changing it replaces the extension."),
  schema: databaseName.default("public").describe("Schema to install it in. Changing it replaces the extension."),
  createSchema: behaviour(z.boolean().default(false)).describe(
    "Whether to create the schema if it does not exist. Used only at creation.",
  ),
  forceDestroy: behaviour(z.boolean().default(false)).describe(
    "Allows removing the extension together with everything that depends on it, including columns of tables.",
  ),
});

const outputs = z.object({
  version: z.string().optional().describe("Version that is installed."),
});

export const postgresExtension = defineResource({
  name: "PostgresExtension",
  summary: "An extension installed in a database of a Postgres cluster.",
  inputs,
  outputs,
  id: pathId("cluster", fixed("extension"), "database", "name"),
  within: { kind: "cluster", part: "cluster" },
  list: {
    objects: async (pass, cluster) => {
      const lists = (await databaseNames(pass, cluster)).map(async (database) =>
        (await pass.api.postgres.listExtensions({ postgresClusterId: cluster, database })).data
          .filter(({ installed, system }) => installed != null && system !== true)
          .map(({ name }) => ({ parts: { cluster, database, name } })),
      );
      return (await Promise.all(lists)).flat();
    },
    shownBy: "postgres.listExtensions",
    deletedBy: "postgres.removeExtension",
  },
  replaceOn: ["cluster", "database", "name", "schema"],
  uniqueBy: ["cluster", "database", "name"],
  observed: ["version"],

  async create({ inputs: { cluster, database, name, schema, createSchema }, owner, ...call }) {
    const key = { cluster, database, name };
    const body = { name, schema, createSchema: createSchema || undefined };
    const send = async () => {
      try {
        await call.api.postgres.installExtension({ postgresClusterId: cluster, database, body });
        return key;
      } catch (error) {
        throw explained(error, name);
      }
    };
    await createExactlyOnce(call, {
      what: `extension ${name} of database ${database} of cluster ${cluster}`,
      owner,
      place: `extensions of database ${database} of cluster ${cluster}`,
      name,
      unique: true,
      list: () => installedIn(call, key),
      keyOf: (extension) => extension.name,
      send,
      pick: (fresh) => (fresh.some((extension) => extension.name === name) ? key : undefined),
      // The interrupted run may have requested another schema. Nothing uses the extension yet, so it is not removed by force.
      async adopt() {
        if ((await find(call, key))?.schema === schema) return key;
        const installed = { postgresClusterId: cluster, database, extension: name };
        await deleteWithin(call, cluster, `extension ${name}`, () => call.api.postgres.removeExtension(installed));
        return send();
      },
    });
    // The extension exists, even if the read after its creation fails.
    const created = await find(call, key).catch(() => undefined);
    return created ?? { ...key, schema };
  },

  read: ({ id, state, ...call }) => readWithin(call, state, () => find(call, id)),

  // Every input but the behaviour ones replaces: there is nothing to send.
  update: ({ id, old }) => Promise.resolve({ ...id, schema: old.schema, version: old.version }),

  async delete({ id: { cluster, database, name }, state, ...call }) {
    const key = { postgresClusterId: cluster, database, extension: name };
    const force = state.forceDestroy === true ? true : undefined;
    await deleteWithin(call, cluster, `extension ${name}`, () => call.api.postgres.removeExtension({ ...key, force }));
  },
});

interface ExtensionKey {
  readonly cluster: string;
  readonly database: string;
  readonly name: string;
}

async function installedIn({ api, ...rest }: Waiting<Api>, { cluster, database }: ExtensionKey) {
  const ask = () => api.postgres.listExtensions({ postgresClusterId: cluster, database });
  return (await whenReady({ api, ...rest }, cluster, ask)).data.filter(({ installed }) => installed != null);
}

async function find(call: Waiting<Api>, { cluster, database, name }: ExtensionKey) {
  const found = (await installedIn(call, { cluster, database, name })).find((one) => one.name === name);
  return found && { cluster, database, name, schema: found.installed?.schema, version: found.installed?.version };
}

/** The advice after a refusal, if the cause is known. */
function explained(error: unknown, name: string): unknown {
  if (!(error instanceof ApiError)) return error;
  if (error.status === 409 && /postgis/i.test(error.reason) && !/installed/i.test(error.reason))
    return new MachinesError(
      "refused",
      `${name}: ${error.message} Set postgisEnabled: true on the PostgresCluster; this replaces it, so restore or copy the data yourself.`,
      { cause: error },
    );
  if (error.status === 422 && error.reason.includes("schema"))
    return new MachinesError("refused", `${name}: ${error.message} Set createSchema: true to have it created.`, {
      cause: error,
    });
  return error;
}
