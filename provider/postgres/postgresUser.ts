// Users of a Postgres cluster (docs/interface.md#users-and-credentials).
import { z } from "zod";
import { userName } from "../../api/names.ts";
import { postgresRole } from "../../api/postgres.ts";
import { required } from "../../api/schema.ts";
import { deleteWithin, readWithin, whenReady } from "./clusters.ts";
import { createExactlyOnce } from "../core/exactlyOnce.ts";
import { isAmbiguous, MachinesError } from "../client/errors.ts";
import { PartialStateError } from "../core/partialState.ts";
import { fixed, pathId } from "../core/ids.ts";
import { behaviour, defineResource, type Call } from "../core/resource.ts";
import { equal } from "../core/values.ts";
import { credentialsIfReported, credentialsOf } from "./credentials.ts";
import { triggers } from "../shared/triggers.ts";
import { platformUsers } from "./credentials.ts";

const inputs = z.object({
  cluster: required(
    z.string(),
    "Cluster the user is in: the `id` of a PostgresCluster. Changing it replaces the user.",
    { format: "reference" },
  ),
  username: required(
    userName,
    "Name, 1 to 63 lowercase letters, digits, `-` and `_`, unique in the cluster. Changing it replaces the user.",
  ),
  role: required(
    postgresRole,
    "Rights of the user: `schema_admin` (all, also changes of tables), `writer` (read and write) or `reader`.",
  ),
  rotationTriggers: triggers("the user gets a new password"),
  killSessions: behaviour(z.boolean().default(false)).describe(
    "Whether a new password ends the sessions the user has open.",
  ),
});

const outputs = z.object({
  password: required(z.string(), "The password, drawn by the service.", { secret: true }),
});

export const postgresUser = defineResource({
  name: "PostgresUser",
  summary: "A user of a Postgres cluster, with a password that the service draws.",
  inputs,
  outputs,
  id: pathId("cluster", fixed("user"), "username"),
  within: { kind: "cluster", part: "cluster" },
  list: {
    objects: async ({ api }, cluster) =>
      (await api.postgres.listUsers({ postgresClusterId: cluster })).data
        .filter(({ username }) => !platformUsers.includes(username))
        .map(({ username }) => ({ parts: { cluster, username } })),
    shownBy: "postgres.listUsers",
    deletedBy: "postgres.deleteUser",
  },
  replaceOn: ["cluster", "username"],
  uniqueBy: ["cluster", "username"],
  dependsOn: { password: ["rotationTriggers"] },

  async create({ inputs: { cluster, username, role }, owner, ...call }) {
    const key = { postgresClusterId: cluster, username };
    await createExactlyOnce(call, {
      what: `user ${username} of cluster ${cluster}`,
      owner,
      place: `users of cluster ${cluster}`,
      name: username,
      unique: true,
      list: () => usersOf(call, cluster),
      keyOf: (user) => user.username,
      send: async () =>
        (await call.api.postgres.createUser({ postgresClusterId: cluster, body: { username, role } })).data,
      pick: (fresh) => fresh.find((user) => user.username === username),
      // The interrupted run may have requested another role.
      adopt: async (user) => {
        if (user.role !== role)
          await whenReady(call, cluster, () => call.api.postgres.updateUser({ ...key, body: { role } }));
        return user;
      },
    });
    const live = { cluster, username, role };
    try {
      return { ...live, password: (await credentialsOf(call.api, cluster, username)).password };
    } catch (error) {
      throw new PartialStateError(live, error);
    }
  },

  read: ({ id, state, ...call }) => readWithin(call, state, () => find(call, id, state?.password)),

  // An ordinary failure: the state then keeps the old triggers, and the next up rotates.
  async update({ id, inputs: { role, rotationTriggers, killSessions }, old, unfinished, ...call }) {
    const key = { postgresClusterId: id.cluster, username: id.username };
    if (role !== old.role)
      await whenReady(call, id.cluster, () => call.api.postgres.updateUser({ ...key, body: { role } }));
    const rotates = !equal(rotationTriggers ?? {}, old.rotationTriggers ?? {});
    const password = rotates
      ? await whenReady(call, id.cluster, () => rotated(call, key, killSessions))
      : unfinished
        ? (await credentialsOf(call.api, id.cluster, id.username)).password
        : old.password;
    return { cluster: id.cluster, username: id.username, role, password };
  },

  async delete({ id, ...call }) {
    const key = { postgresClusterId: id.cluster, username: id.username };
    await deleteWithin(call, id.cluster, `user ${id.username}`, () => call.api.postgres.deleteUser(key));
  },
});

const usersOf = async (call: Call, cluster: string) =>
  (await whenReady(call, cluster, () => call.api.postgres.listUsers({ postgresClusterId: cluster }))).data;

async function find(
  call: Call,
  { cluster, username }: { readonly cluster: string; readonly username: string },
  known: string | undefined,
) {
  const found = (await usersOf(call, cluster)).find((user) => user.username === username);
  if (!found) return undefined;
  // A read-only token may refresh known values.
  const reported = known === undefined ? undefined : await credentialsIfReported(call, cluster, username);
  const password = reported?.password ?? known ?? (await credentialsOf(call.api, cluster, username)).password;
  return { cluster, ...found, password };
}

/**
 * Gives the user a new password and returns it. If the answer is lost, the password shows whether the change was
 * applied.
 */
async function rotated(
  { api }: Call,
  key: { readonly postgresClusterId: string; readonly username: string },
  killSessions: boolean,
): Promise<string> {
  const before = (await credentialsOf(api, key.postgresClusterId, key.username)).password;
  try {
    return (await api.postgres.rotatePassword({ ...key, body: { killSessions } })).data.password;
  } catch (error) {
    if (!isAmbiguous(error)) throw error;
    const now = (await credentialsOf(api, key.postgresClusterId, key.username)).password;
    if (now !== before) return now;
    throw new MachinesError(
      "api",
      `the password of ${key.username} in cluster ${key.postgresClusterId} was not rotated: ${(error as Error).message} It was looked for: nothing changed. Run up again.`,
      { cause: error },
    );
  }
}
