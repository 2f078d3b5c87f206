// The values of an App's secrets, opened. Only what needs them in clear text asks here.
import type { SecretRow } from "./rows.ts";
import type { Store } from "./database.ts";
import type { Vault } from "./vault.ts";

type Values = Readonly<Record<string, string>>;

/** Name a secret's value is sealed under. */
export const sealedName = (app: string, name: string): string => `secret/${app}/${name}`;

const machineName = (machine: string): string => `machine/${machine}`;

/** The secrets of an App as they are now, sealed for a Machine that keeps them until its next update; null without any. */
export function sealFor(
  { store, vault }: { readonly store: Store; readonly vault: Vault },
  app: string,
  machine: string,
): Uint8Array | null {
  const rows = store.all<SecretRow>("SELECT * FROM secrets WHERE app = ? ORDER BY name", app);
  if (rows.length === 0) return null;
  const values = rows.map(({ name, value }) => [name, vault.open(sealedName(app, name), value).toString()]);
  return vault.seal(machineName(machine), JSON.stringify(Object.fromEntries(values)));
}

/** What was sealed for a Machine, by name. */
export const openFor = ({ vault }: { readonly vault: Vault }, machine: string, sealed: Uint8Array | null): Values =>
  sealed === null ? {} : (JSON.parse(vault.open(machineName(machine), sealed).toString()) as Values);
