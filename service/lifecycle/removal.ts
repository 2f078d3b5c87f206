// Deletes Apps and clusters with very many parts in batches, each in a separate transaction, so that no request waits long.
// The object is hidden at once, and the timer in the store resumes the removal after a kill.
import { releaseSet } from "../store/secretValues.ts";
import { touch, type Context } from "../context.ts";
import { keepLimits } from "./hostnameLimits.ts";
import { findHostname } from "./hostnames.ts";
import { findMachine, subjectOf } from "./machines.ts";

/** Rows and pages of the store that are freed in one transaction: about 5 ms. */
export const unitsAtOnce = 500;

const rowsAtOnce = 200;

interface Part {
  readonly table: string;
  /** The column with the owner. */
  readonly key: string;
  /** The subject of its timers, in SQL; undefined if it has none. */
  readonly subject?: string;
  /** Rows and pages that are deleted with it, in SQL. */
  readonly units: string;
  /** Further effects of its removal. */
  readonly with?: (context: Context, key: string, owner: string) => void;
}

interface Found {
  readonly key: string;
  readonly subject: string | null;
  readonly units: number;
}

/** Stops the running Machine. Its timers are deleted afterwards, including those that this sets. */
function endMachine(context: Context, id: string): void {
  const machine = findMachine(context, id);
  if (machine?.destroyed_at === null) context.runtime.destroy(subjectOf(context, machine));
  touch(context, id);
}

/** Lets the runtime discard the data of a volume or snapshot, once the row is deleted. */
function discard(context: Context, id: string): void {
  context.runtime.volumeChanged?.(id);
  touch(context, id);
}

function removeHostname(context: Context, hostname: string, app: string): void {
  const row = findHostname(context, app, hostname);
  if (row) keepLimits(context, row);
}

/** The tables with rows of an App: all that refer to `apps`, as a test compares. */
export const partsOfApp: readonly Part[] = [
  {
    table: "machines",
    key: "id",
    subject: "id",
    units: `5 + (SELECT count(*) + coalesce(sum(size), 0) / 4096 FROM machine_versions v WHERE v.machine = t.id)
      + (SELECT count(*) FROM events e WHERE e.machine = t.id)`,
    with: endMachine,
  },
  { table: "volumes", key: "id", subject: "id", units: "2", with: discard },
  { table: "snapshots", key: "id", subject: "id", units: "2", with: discard },
  {
    table: "hostnames",
    key: "hostname",
    subject: "t.app || '/' || hostname",
    units: "2 + (coalesce(octet_length(custom_chain), 0) + coalesce(octet_length(issued_chain), 0)) / 4096",
    with: removeHostname,
  },
  { table: "ips", key: "number", units: "1" },
  { table: "secrets", key: "name", units: "1 + octet_length(value) / 4096" },
  { table: "secret_keys", key: "name", units: "1 + octet_length(value) / 4096" },
  { table: "secret_sets", key: "id", units: "1 + octet_length(value) / 4096" },
  { table: "attachments", key: "cluster", units: "1" },
  { table: "token_apps", key: "token", units: "1" },
  { table: "trust_apps", key: "trust", units: "1" },
  { table: "app_quotas", key: "kind", units: "1" },
];

/** The tables with rows of a cluster, likewise. */
export const partsOfCluster: readonly Part[] = [
  { table: "attachments", key: "app", units: "1" },
  {
    table: "databases",
    key: "name",
    units: "1 + (SELECT count(*) FROM extensions e WHERE e.cluster = t.cluster AND e.database = t.name)",
  },
  { table: "database_users", key: "name", units: "1" },
  { table: "backups", key: "id", subject: "id", units: "1 + octet_length(contents) / 4096" },
  { table: "cluster_changes", key: "number", units: "1" },
];

/** Removes parts up to the size of a batch. True when none are left. */
function removeSome(context: Context, owner: "app" | "cluster", id: string, parts: readonly Part[]): boolean {
  const { store } = context;
  let units = 0;
  for (const { table, key, subject = "NULL", units: size, with: more } of parts) {
    const sql = `SELECT ${key} AS key, ${subject} AS subject, ${size} AS units FROM ${table} t WHERE ${owner} = ? LIMIT ${rowsAtOnce}`;
    for (let some = store.all<Found>(sql, id); some.length > 0; some = store.all<Found>(sql, id))
      for (const found of some) {
        if (units >= unitsAtOnce) return false;
        units += found.units;
        more?.(context, found.key, id);
        if (found.subject !== null) context.timers.cancel(found.subject);
        store.run(`DELETE FROM ${table} WHERE ${owner} = ? AND ${key} = ?`, id, found.key);
      }
  }
  return true;
}

/**
 * Removes an App with all its parts (docs/interface.md#apps). The App is hidden and its name is free from the beginning.
 */
export function removeApp(context: Context, id: string): void {
  const { store, timers } = context;
  const app = store.get<{ name: string; deleting: number }>("SELECT name, deleting FROM apps WHERE id = ?", id);
  if (!app) return;
  if (app.deleting < 2) store.update("apps", "id", id, { deleting: 2, name: `${app.name}/${id}` });
  touch(context, id);
  if (removeSome(context, "app", id, partsOfApp)) store.run("DELETE FROM apps WHERE id = ?", id);
  else timers.resume("app.remove", id);
}

/** Removes the contents of a deleted cluster. */
export function clearCluster(context: Context, id: string): void {
  if (!removeSome(context, "cluster", id, partsOfCluster)) context.timers.resume("cluster.clear", id);
}

/** Removes a destroyed Machine that is no longer shown. */
export function forgetMachine(context: Context, id: string): void {
  const set = findMachine(context, id)?.secret_set ?? null;
  context.store.run("DELETE FROM machines WHERE id = ?", id);
  releaseSet(context.store, set);
  touch(context, id);
}
