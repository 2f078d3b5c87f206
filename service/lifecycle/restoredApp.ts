// One App from a backup, in a service that has lost it. Its volumes are in the engine already.
import type { DatabaseSync } from "node:sqlite";
import { touch, type Context } from "../context.ts";
import { isLeaving } from "../states/volumeStates.ts";
import { expireUploads } from "./certificates.ts";
import { holderAgainst, subjectOfHostname } from "./hostnames.ts";
import { type AppRow, type HostnameRow } from "../store/rows.ts";
import type { TimerKind } from "../time/timers.ts";
import { enginesLost } from "./machines.ts";

/** An App in the store of a backup. */
export interface StoredApp {
  readonly row: AppRow;
  /** Slug of its organization. */
  readonly org: string;
  /** Ids of the volumes and snapshots that have contents. */
  readonly volumes: readonly string[];
}

type Row = Readonly<Record<string, string | number | null | Uint8Array>>;

/** Finds an App by its name. */
export function storedApp(db: DatabaseSync, name: string): StoredApp | undefined {
  const row = db.prepare("SELECT * FROM apps WHERE name = ? AND deleting = 0").get(name) as unknown as
    | AppRow
    | undefined;
  if (!row) return undefined;
  const org = db.prepare("SELECT slug FROM orgs WHERE id = ?").get(row.org) as { slug: string };
  const contents = db
    .prepare(
      `SELECT id FROM volumes WHERE app = ?1 AND written = 1 AND state NOT IN ('scheduling_destroy', 'pending_destroy')
        UNION ALL SELECT id FROM snapshots WHERE app = ?1 AND written = 1`,
    )
    .all(row.id) as { id: string }[];
  return { row, org: org.slug, volumes: contents.map(({ id }) => id) };
}

/** What was added. */
export interface AddedApp {
  readonly machines: number;
  readonly volumes: number;
  /** What could not be, as sentences. */
  readonly missing: readonly string[];
}

/**
 * Adds an App of a backup, within a transaction. Its Machines are created again, and those that ran are started. `had` are the volumes
 * and snapshots that the engine has.
 */
export function addRestoredApp(
  context: Context,
  db: DatabaseSync,
  { row, org }: StoredApp,
  had: ReadonlySet<string>,
): AddedApp {
  const { store } = context;
  const missing: string[] = [];
  const owner = store.get<{ id: number }>("SELECT id FROM orgs WHERE slug = ?", org)?.id ?? 0;
  const { number: _number, ...app } = row;
  store.insert("apps", { ...app, org: owner, idempotency_key: null });
  const rowsOf = (table: string): readonly Row[] =>
    db.prepare(`SELECT * FROM ${table} WHERE app = ?`).all(row.id) as Row[];
  const add = (table: string, one: Row): void => store.insert(table, one);
  // The store counts what is used of them, from the rows below.
  for (const { used: _used, ...one } of rowsOf("app_quotas")) add("app_quotas", one);
  for (const table of ["secrets", "secret_keys"]) for (const one of rowsOf(table)) add(table, one);
  const sets = new Map<unknown, number>();
  for (const { id, ...one } of rowsOf("secret_sets")) {
    add("secret_sets", one);
    sets.set(id, store.get<{ id: number }>("SELECT last_insert_rowid() AS id")?.id ?? 0);
  }
  const machines = rowsOf("machines");
  for (const one of machines) {
    add("machines", { ...one, org: owner, secret_set: sets.get(one["secret_set"]) ?? null });
    for (const table of ["machine_versions", "events"])
      for (const part of db.prepare(`SELECT * FROM ${table} WHERE machine = ?`).all(String(one["id"])) as Row[])
        add(table, part);
  }
  const volumes = rowsOf("volumes").filter(({ state }) => !isLeaving(state as Parameters<typeof isLeaving>[0]));
  const keepsData = context.runtime.volumeChanged !== undefined;
  for (const one of volumes) {
    const id = String(one["id"]);
    // ASSUMED: as in a whole restore, a volume without its contents stays `restoring`.
    const isLost = keepsData && one["written"] === 1 && !had.has(id);
    if (isLost) missing.push(`volume ${id}: its contents could not be restored`);
    const lost = isLost ? { written: 0, source: "the-backup", state: "restoring" } : {};
    add("volumes", { ...one, org: owner, written: keepsData ? (one["written"] ?? null) : null, ...lost });
  }
  for (const one of rowsOf("snapshots"))
    if (!keepsData || had.has(String(one["id"]))) add("snapshots", { ...one, written: keepsData ? 1 : null });
    else missing.push(`snapshot ${String(one["id"])}: its contents could not be restored`);
  addNames(context, rowsOf, missing);
  for (const { cluster, attached_at } of rowsOf("attachments"))
    if (store.get("SELECT 1 FROM clusters WHERE id = ? AND status <> 'deleted'", String(cluster)))
      add("attachments", { cluster: cluster ?? null, app: row.id, attached_at: attached_at ?? 0 });
  addTimers(context, db, [
    row.id,
    ...[...machines, ...volumes, ...rowsOf("snapshots")].map(({ id }) => String(id)),
    ...store
      .all<Pick<HostnameRow, "app" | "hostname">>("SELECT app, hostname FROM hostnames WHERE app = ?", row.id)
      .map(subjectOfHostname),
  ]);
  expireUploads(context, row.id);
  for (const id of [row.id, ...machines.map((one) => String(one["id"]))]) touch(context, id);
  if (keepsData) startAgain(context, row.id);
  return {
    machines: machines.filter(({ destroyed_at }) => destroyed_at === null).length,
    volumes: volumes.length,
    missing,
  };
}

/** Addresses and hostnames, of which another App may have some by now. */
function addNames({ store }: Context, rowsOf: (table: string) => readonly Row[], missing: string[]): void {
  for (const { number: _number, ...one } of rowsOf("ips")) {
    const ip = String(one["ip"]);
    const isTaken = one["type"] !== "shared_v4" && store.get("SELECT 1 FROM ips WHERE ip = ?", ip) !== undefined;
    if (isTaken) missing.push(`address ${ip}: another App has it`);
    else store.insert("ips", one);
  }
  for (const one of rowsOf("hostnames")) {
    const hostname = String(one["hostname"]);
    const isTaken = holderAgainst({ store }, one as unknown as HostnameRow) !== undefined;
    // One that the App has not proven waits, as before.
    if (isTaken && one["owned_at"] !== null) missing.push(`hostname ${hostname}: it belongs to another App`);
    else store.insert("hostnames", one);
  }
}

function addTimers({ timers, clock }: Context, db: DatabaseSync, subjects: readonly string[]): void {
  const find = db.prepare("SELECT kind, due, data FROM timers WHERE subject = ?");
  for (const subject of subjects)
    for (const { kind, due, data } of find.all(subject) as { kind: TimerKind; due: number; data: string }[])
      // Those of a runtime belong to a run that has ended.
      if (!kind.startsWith("runtime.")) timers.after(Math.max(0, due - clock.now()), kind, subject, data);
}

/** The engine has no containers of it. */
function startAgain(context: Context, app: string): void {
  enginesLost(context, app);
  for (const { id } of context.store.all<{ id: string }>("SELECT id FROM volumes WHERE app = ?", app))
    context.runtime.volumeChanged?.(id);
}
