// An App as it was at a moment, and the difference to now. Only a service whose members share a store has its past: their log.
import { z } from "zod";
import type { MachineConfig } from "../../api/machineConfig.ts";
import { refuse } from "../refusal.ts";
import { withMetadata } from "../rules/machineAnswer.ts";
import type { AppRow } from "../store/rows.ts";
import type { StoreReader } from "../store/readOnlyStore.ts";
import type { Asker } from "./ask.ts";
import { compare, type Objects } from "./compare.ts";
import type { Work } from "../time/costly.ts";
import { partsOf, inPart } from "./parts.ts";
import type { ComparedPart, Fields, PastPart, PastView } from "./types.ts";
import { isFor } from "../store/tokens.ts";

/** The store at past moments. */
export interface Past {
  /** Reads the store as it was at a moment. Throws a Refusal if that is not possible. */
  read<T>(moment: number, use: (store: StoreReader) => T | Promise<T>): Promise<T>;
}

/** The query of a moment. */
export const momentQuery = z.strictObject({
  at: z.iso
    .datetime({ offset: true, error: "must be a time with its zone, such as 2026-11-26T10:00:00Z" })
    .transform((text) => Date.parse(text)),
});

/** Objects of a part that are shown. */
const mostShown = 200;

const machineSql = `SELECT m.id AS key, m.name, m.region, m.state, coalesce(m.brief ->> '$.image', '') AS image,
    m.version, iif(m.cordoned, 'cordoned', 'in service') AS traffic, m.metadata
  FROM machines m WHERE ${inPart} ORDER BY m.name`;

/** The other parts; each has the App as its only value. */
const partSql: Readonly<Record<Exclude<PastPart, "machines">, string>> = {
  volumes: `SELECT id AS key, name, state, region, size_gb, machine AS attached_to, snapshot_retention
    FROM volumes WHERE app = ? ORDER BY created_at, id`,
  addresses: "SELECT ip AS key, type, region, service_name AS service FROM ips WHERE app = ? ORDER BY number",
  certificates: `SELECT hostname AS key, acme_status AS acme, custom_status AS own,
      iif(owned_at IS NULL, 'no', 'yes') AS owned
    FROM hostnames WHERE app = ? ORDER BY hostname`,
  secrets: "SELECT name AS key, digest FROM secrets WHERE app = ? ORDER BY name",
  secretKeys: "SELECT name AS key, type, updated_at AS set_at FROM secret_keys WHERE app = ? ORDER BY name",
  clusters: `SELECT c.id AS key, c.name, c.status, c.plan, c.region
    FROM attachments a JOIN clusters c ON c.id = a.cluster WHERE a.app = ? ORDER BY c.number`,
};

type Row = Fields & { readonly key: string };

function add(objects: Map<string, Fields>, rows: readonly Row[]): void {
  for (const { key, ...fields } of rows) objects.set(key, fields);
}

async function machinesOf(store: StoreReader, app: string | undefined, work: Work): Promise<Objects> {
  const found = new Map<string, Fields>();
  if (app === undefined) return found;
  for await (const names of partsOf({ store }, app, work)) add(found, store.all<Row>(machineSql, app, ...names));
  return found;
}

function objectsOf(store: StoreReader, app: string | undefined, sql: string): Objects {
  const found = new Map<string, Fields>();
  if (app !== undefined) add(found, store.all<Row>(sql, app));
  return found;
}

/** The App of that name in a store, if the caller may see it. */
function appIn(store: StoreReader, { caller }: Asker, name: string): string | undefined {
  const app = store.get<Pick<AppRow, "id" | "org" | "network">>(
    "SELECT id, org, network FROM apps WHERE name = ?",
    name,
  );
  const isSeen = app?.org === caller.org && isFor(caller, app);
  return isSeen ? app.id : undefined;
}

/** The App in both stores. Throws a Refusal if the caller sees it in neither. */
function appsOf(asker: Asker, before: StoreReader, name: string) {
  const [was, is] = [appIn(before, asker, name), appIn(asker.context.store, asker, name)];
  if (was === undefined && is === undefined) throw refuse(404, "app not found");
  return { was, is };
}

/** An App as it was in a store of a past moment, and the difference to now. */
export async function pastView(asker: Asker, before: StoreReader, name: string, work: Work) {
  const { store: present } = asker.context;
  const { was, is } = appsOf(asker, before, name);
  const both = async (read: (store: StoreReader, app: string | undefined) => Objects | Promise<Objects>) => {
    const compared = compare(await read(before, was), await read(present, is), mostShown);
    await work.pause();
    return compared;
  };
  const parts: Partial<Record<PastPart, ComparedPart>> = {};
  parts.machines = await both((store, app) => machinesOf(store, app, work));
  for (const [part, sql] of Object.entries(partSql))
    parts[part as PastPart] = await both((store, app) => objectsOf(store, app, sql));
  const app = was === is ? "unchanged" : was === undefined ? "created" : is === undefined ? "deleted" : "replaced";
  return { app, parts } as PastView;
}

/** The configuration of a Machine in a store of a past moment, and now; null where there is none. */
export function pastMachineView(asker: Asker, before: StoreReader, name: string, machine: string) {
  const { was, is } = appsOf(asker, before, name);
  const [then, now] = [configIn(before, was, machine), configIn(asker.context.store, is, machine)];
  if (then === null && now === null) throw refuse(404, "not_found: machine not found");
  return { was: then, is: now };
}

/** What the page gets of a Machine at a moment. */
export type PastMachineView = ReturnType<typeof pastMachineView>;

function configIn(store: StoreReader, app: string | undefined, machine: string): MachineConfig | null {
  if (app === undefined) return null;
  const found = store.get<{ readonly config: string; readonly metadata: string | null }>(
    `SELECT v.config, m.metadata FROM machines m JOIN machine_versions v ON v.machine = m.id AND v.version = m.version
      WHERE m.id = ? AND m.app = ? AND m.destroyed_at IS NULL`,
    machine,
    app,
  );
  return found ? (JSON.parse(withMetadata(found.config, found.metadata)) as MachineConfig) : null;
}
