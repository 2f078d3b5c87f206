// The contents of Postgres clusters in the store: what a cluster is to contain, and the changes that its server does not have yet.
import type { Context } from "../context.ts";
import type { ClusterChange, ClusterContents, InstalledExtension } from "../runtime/postgresEngine.ts";
import type { DatabaseUserRow } from "../store/rows.ts";

/** Name for the encryption of a password. */
export const passwordName = (cluster: string, user: string): string => `cluster/${cluster}/${user}`;

/** What a cluster is to contain. */
export function contentsOf({ store }: Context, cluster: string): ClusterContents {
  const databases = store.all<{ name: string }>(
    "SELECT name FROM databases WHERE cluster = ? ORDER BY created_at, name",
    cluster,
  );
  return {
    databases: databases.map(({ name }) => name),
    extensions: store.all("SELECT database, name, schema, version FROM extensions WHERE cluster = ?", cluster),
    users: store.all("SELECT name, role FROM database_users WHERE cluster = ? ORDER BY created_at, name", cluster),
  };
}

/** The password of a user. */
export function passwordOf({ store, vault }: Context, cluster: string, user: string): string {
  const sql = "SELECT password FROM database_users WHERE cluster = ? AND name = ?";
  const found = store.get<Pick<DatabaseUserRow, "password">>(sql, cluster, user);
  if (!found) throw new Error(`cluster ${cluster} has no user ${user}`);
  return vault.open(passwordName(cluster, user), found.password).toString();
}

/** Adds a user with a new password. */
export function insertUser(context: Context, cluster: { readonly id: string }, name: string, role: string): void {
  context.store.insert("database_users", {
    cluster: cluster.id,
    name,
    role,
    password: context.vault.seal(passwordName(cluster.id, name), context.ids.password()),
    created_at: context.clock.now(),
  });
}

/** Adds a database. */
export const insertDatabase = ({ store, clock }: Context, cluster: string, name: string): void =>
  store.insert("databases", { cluster, name, created_at: clock.now() });

/** Adds an extension. */
export const insertExtension = (
  { store }: Context,
  cluster: string,
  { database, name, schema, version }: InstalledExtension,
) => store.insert("extensions", { cluster, database, name, schema, version });

/** Keeps a change until its server has it. */
export function keepChange({ store }: Context, cluster: string, change: ClusterChange): number {
  store.insert("cluster_changes", { cluster, change: JSON.stringify(change) });
  return store.get<{ number: number }>("SELECT last_insert_rowid() AS number")?.number ?? 0;
}

interface KeptChange {
  readonly number: number;
  readonly cluster: string;
  readonly change: string;
}

/** The oldest change that the server of a cluster does not have. */
export function nextChange({ store }: Context, cluster: string): { number: number; change: ClusterChange } | undefined {
  const sql = "SELECT number, cluster, change FROM cluster_changes WHERE cluster = ? ORDER BY number LIMIT 1";
  const found = store.get<KeptChange>(sql, cluster);
  return found && { number: found.number, change: JSON.parse(found.change) as ClusterChange };
}

function takeChange({ store }: Context, number: number): { cluster: string; change: ClusterChange } | undefined {
  const sql = "DELETE FROM cluster_changes WHERE number = ? RETURNING number, cluster, change";
  const found = store.get<KeptChange>(sql, number);
  return found && { cluster: found.cluster, change: JSON.parse(found.change) as ClusterChange };
}

/** The server of a cluster has a change. */
export function applied(context: Context, number: number): void {
  takeChange(context, number);
}

/** The server of a cluster refused a change: the store forgets it too. */
export function refused(context: Context, number: number): void {
  const taken = takeChange(context, number);
  if (!taken) return;
  const { cluster, change } = taken;
  const { store } = context;
  store.touch(cluster);
  switch (change.kind) {
    case "createDatabase":
      return store.run("DELETE FROM databases WHERE cluster = ? AND name = ?", cluster, change.database);
    case "dropDatabase":
      return insertDatabase(context, cluster, change.database);
    case "installExtension": {
      const sql = "DELETE FROM extensions WHERE cluster = ? AND database = ? AND name = ?";
      return store.run(sql, cluster, change.extension.database, change.extension.name);
    }
    case "removeExtension":
      return insertExtension(context, cluster, change.extension);
    case "createUser":
      return store.run("DELETE FROM database_users WHERE cluster = ? AND name = ?", cluster, change.user);
    case "changeRole":
    case "dropUser":
    case "setPassword":
      // These are applied until they succeed.
      return;
  }
}

/**
 * Takes the contents of a copy over. Users keep the passwords that the store has for them. ASSUMED: in a copy that is restored
 * to a time, users who were created between the backup and that time get new passwords.
 */
export function copied(context: Context, cluster: string, found: ClusterContents): void {
  const { store } = context;
  const known = contentsOf(context, cluster);
  store.run("DELETE FROM extensions WHERE cluster = ?", cluster);
  for (const name of known.databases)
    if (!found.databases.includes(name))
      store.run("DELETE FROM databases WHERE cluster = ? AND name = ?", cluster, name);
  for (const name of found.databases) if (!known.databases.includes(name)) insertDatabase(context, cluster, name);
  for (const extension of found.extensions) insertExtension(context, cluster, extension);
  for (const { name } of known.users)
    if (!found.users.some((user) => user.name === name))
      store.run("DELETE FROM database_users WHERE cluster = ? AND name = ?", cluster, name);
  for (const { name, role } of found.users)
    if (known.users.some((user) => user.name === name))
      store.run("UPDATE database_users SET role = ? WHERE cluster = ? AND name = ?", role, cluster, name);
    else insertUser(context, { id: cluster }, name, role);
  store.touch(cluster);
}
