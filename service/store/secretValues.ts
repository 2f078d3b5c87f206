// Decrypts the values of an App's secrets for code that needs them in plain text. A Machine keeps the values of its last
// update: the secrets of a version are encrypted as one set, which all its Machines share.
import type { AppRow, MachineRow, SecretRow } from "./rows.ts";
import type { Store } from "./database.ts";
import type { Vault } from "./vault.ts";

type Values = Readonly<Record<string, string>>;

/** Name under which a secret's value is sealed. */
export const sealedName = (app: string, name: string): string => `secret/${app}/${name}`;

interface Access {
  readonly store: Store;
  readonly vault: Vault;
}

interface SetRow {
  readonly version: number | null;
  readonly value: Uint8Array;
}

/** Name under which a set is sealed: its App and version; sets of older schemas have the name of their Machine. */
const setName = (version: number | null, { app, id }: Pick<MachineRow, "app" | "id">): string =>
  version === null ? `machine/${id}` : `secrets/${app}/${version}`;

/** The set with the current secrets of an App, created if needed; null without any secrets. */
export function currentSet({ store, vault }: Access, { id: app, secrets_version }: AppRow): number | null {
  if (secrets_version === 0) return null;
  const sql = "SELECT id FROM secret_sets WHERE app = ? AND version = ?";
  const there = store.get<{ id: number }>(sql, app, secrets_version);
  if (there) return there.id;
  const rows = store.all<Pick<SecretRow, "name" | "value">>(
    "SELECT name, value FROM secrets WHERE app = ? ORDER BY name",
    app,
  );
  if (rows.length === 0) return null;
  const values = rows.map(({ name, value }) => [name, vault.open(sealedName(app, name), value).toString()]);
  const name = setName(secrets_version, { app, id: "" });
  const value = vault.seal(name, JSON.stringify(Object.fromEntries(values)));
  store.insert("secret_sets", { app, version: secrets_version, value });
  return store.get<{ id: number }>(sql, app, secrets_version)?.id ?? null;
}

/** Releases a Machine's set. It is deleted with its last Machine, unless it is the current one of the App. */
export function releaseSet(store: Store, set: number | null): void {
  if (set === null) return;
  store.run(
    `DELETE FROM secret_sets WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM machines WHERE secret_set = ?1)
       AND NOT EXISTS (SELECT 1 FROM apps a WHERE a.id = secret_sets.app AND a.secrets_version = secret_sets.version)`,
    set,
  );
}

/** Deletes the set of the previous version, unless a Machine has it. */
export function releaseVersion(store: Store, app: string, version: number): void {
  const sql = "SELECT id FROM secret_sets WHERE app = ? AND version = ?";
  releaseSet(store, store.get<{ id: number }>(sql, app, version)?.id ?? null);
}

/** The values a Machine has, by name. */
export function secretsOf({ store, vault }: Access, machine: Pick<MachineRow, "app" | "id" | "secret_set">): Values {
  if (machine.secret_set === null) return {};
  const set = store.get<SetRow>("SELECT version, value FROM secret_sets WHERE id = ?", machine.secret_set);
  return set ? (JSON.parse(vault.open(setName(set.version, machine), set.value).toString()) as Values) : {};
}
