// Windows of an App's Machines for the console's table, and their groups.
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import type { MachineConfig } from "../../api/machineConfig.ts";
import { z } from "zod";
import { checks, count } from "../rules/counts.ts";
import { machineStates } from "../states/machineStates.ts";
import type { MachineRow, MachineExtras } from "../store/rows.ts";
import type { Asker } from "./ask.ts";
import type { Work } from "../time/costly.ts";
import { inPart, partsOf } from "./parts.ts";
import { sizeIn } from "./size.ts";
import { sortedInParts } from "./sorted.ts";
import type { Group, MachineItem, MachineWindow } from "./types.ts";

/** Number of Machines in one window. */
const mostInWindow = 500;

const text = z.string().max(200).optional();

const isState = (name: string): boolean => (machineStates as readonly string[]).includes(name);

/** The query of the list. */
export const windowQuery = z.strictObject({
  offset: z.coerce.number<string>().int().min(0).default(0),
  limit: z.coerce.number<string>().int().min(1).max(mostInWindow).default(100),
  sort: z.enum(["name", "region", "state", "image", "updated"]).default("name"),
  order: z.enum(["asc", "desc"]).default("asc"),
  /** Part of the name or the id. */
  text,
  /** States, with commas. */
  state: text.refine(
    (states) => states === undefined || states.split(",").every(isState),
    `must be states with commas between them: ${machineStates.join(", ")}`,
  ),
  region: text,
  image: text,
  fleet: text,
  /** Machines whose checks have this result, or that are cordoned. */
  only: z.enum(["passing", "warning", "critical", "cordoned"]).optional(),
});

type Query = z.infer<typeof windowQuery>;

const fleet = `m.metadata ->> '$."${fleetTag}"'`;
const phase = `m.metadata ->> '$."${phaseTag}"'`;
const image = "coalesce(m.brief ->> '$.image', '')";

// Those by name are all in one: parts are in the order of their names.
const sortedBy = { name: "0", region: "m.region", state: "m.state", image, updated: "m.updated_at" } as const;

type Row = Pick<
  MachineRow & MachineExtras,
  "id" | "name" | "region" | "state" | "version" | "cordoned" | "brief" | "size" | "cpu_kind" | "updated_at"
> & {
  readonly row: number;
  readonly checks: MachineRow["checks"] | null;
  readonly fleet: string | null;
};

const columns = `m.rowid AS row, m.id, m.name, m.region, m.state, m.version, m.cordoned, m.brief, m.size, m.cpu_kind,
  m.updated_at, ${checks} AS checks, ${fleet} AS fleet`;

/** The conditions of the filters, with their values. */
function filters(query: Query): { readonly sql: string; readonly values: readonly string[] } {
  const { text, state, region, image: wanted, fleet: of, only } = query;
  const parts: [sql: string, ...values: string[]][] = [];
  // LIKE would treat % and _ of the user as patterns.
  if (text !== undefined) parts.push(["(instr(lower(m.name), lower(?)) > 0 OR instr(m.id, lower(?)) > 0)", text, text]);
  if (state !== undefined)
    parts.push(["m.state IN (SELECT value FROM json_each(?))", JSON.stringify(state.split(","))]);
  if (region !== undefined) parts.push(["m.region = ?", region]);
  if (wanted !== undefined) parts.push([`${image} = ?`, wanted]);
  if (of !== undefined) parts.push([`${fleet} = ?`, of]);
  if (only === "cordoned") parts.push(["m.cordoned = 1"]);
  else if (only !== undefined) parts.push([`${checks} = ?`, only]);
  return { sql: parts.map(([sql]) => ` AND ${sql}`).join(""), values: parts.flatMap(([, ...values]) => values) };
}

/** A window of the Machines of an App. */
export async function windowOf(asker: Asker, app: string, query: Query, work: Work): Promise<MachineWindow> {
  const { context } = asker;
  const { offset } = query;
  const { sql, values } = filters(query);
  if (sql === "" && query.sort === "name") return windowByName(asker, app, query);
  const { total, wanted } = await rowsOf(asker, app, query, work, sql, values);
  const shown = context.store.all<Row>(
    `SELECT ${columns} FROM json_each(?) w JOIN machines m ON m.rowid = w.value ORDER BY w.key`,
    JSON.stringify(wanted),
  );
  return { total, offset, rows: shown.map(itemOf) };
}

/** The window of all Machines by name, which an index has in this order. */
function windowByName({ context }: Asker, app: string, { order, limit, offset }: Query): MachineWindow {
  const from = "FROM machines m WHERE m.app = ? AND m.destroyed_at IS NULL";
  const rows = context.store.all<Row>(
    `SELECT ${columns} ${from} ORDER BY m.name ${order === "desc" ? "DESC" : "ASC"} LIMIT ? + 0 OFFSET ? + 0`,
    app,
    limit,
    offset,
  );
  return { total: count(context, `SELECT count(*) AS n ${from}`, app), offset, rows: rows.map(itemOf) };
}

/** The rows of the Machines in a window, and the number of all that the filters leave. */
async function rowsOf(
  { context }: Asker,
  app: string,
  { sort, order, limit, offset }: Query,
  work: Work,
  filter: string,
  values: readonly string[],
): Promise<{ readonly total: number; readonly wanted: readonly number[] }> {
  const part = `SELECT m.rowid AS row, ${sortedBy[sort]} AS key FROM machines m WHERE ${inPart}${filter} ORDER BY m.name`;
  const found = new Map<string | number, number[]>();
  let total = 0;
  for await (const names of partsOf(context, app, work))
    for (const { row, key } of context.store.all<Found>(part, app, ...names, ...values)) {
      total++;
      const rows = found.get(key);
      if (rows) rows.push(row);
      else found.set(key, [row]);
    }
  const keys = await sortedInParts([...found.keys()], work);
  if (order === "desc") keys.reverse();
  const wanted: number[] = [];
  let passed = 0;
  for (const key of keys) {
    // Machines with the same key are in the order of their names, whichever the order of the keys is.
    const rows = found.get(key) ?? [];
    const inOrder = sort === "name" && order === "desc" ? rows.reverse() : rows;
    const from = Math.max(0, offset - passed);
    wanted.push(...inOrder.slice(from, from + limit - wanted.length));
    passed += rows.length;
    if (wanted.length === limit) break;
  }
  return { total, wanted };
}

function itemOf({ row: _row, brief, size, cordoned, cpu_kind, updated_at, ...rest }: Row): MachineItem {
  const { image, guest } = JSON.parse(brief) as Pick<MachineConfig, "image" | "guest">;
  const { kind, cpus, memoryMb } = sizeIn({ guest, size, cpu_kind });
  return {
    ...rest,
    image,
    cordoned: cordoned === 1,
    size: `${kind === "performance" ? "performance" : "shared-cpu"}-${cpus}x, ${memoryMb} MB`,
    updated: updated_at,
  };
}

interface Found {
  readonly row: number;
  readonly key: string | number;
}

interface GroupRow {
  readonly region: string;
  readonly image: string;
  readonly fleet: string | null;
  readonly phase: string | null;
  readonly state: string;
  readonly n: number;
  readonly cordoned: number;
  readonly critical: number;
}

/** The Machines of an App by region, image, fleet and phase. */
export async function groupsOf({ context }: Asker, app: string, work: Work): Promise<readonly Group[]> {
  const part = `SELECT m.region, ${image} AS image, ${fleet} AS fleet, ${phase} AS phase, m.state, count(*) AS n,
      sum(m.cordoned) AS cordoned, sum(${checks} IS 'critical') AS critical
    FROM machines m WHERE ${inPart} GROUP BY 1, 2, 3, 4, 5`;
  const groups = new Map<string, { -readonly [K in keyof Group]: Group[K] }>();
  for await (const names of partsOf(context, app, work))
    for (const { state, n, cordoned, critical, ...row } of context.store.all<GroupRow>(part, app, ...names)) {
      const key = JSON.stringify([row.fleet ?? "", row.region, row.image, row.phase ?? ""]);
      const group = groups.get(key) ?? { ...row, states: {}, cordoned: 0, critical: 0 };
      groups.set(key, group);
      const states: Readonly<Record<string, number>> = group.states;
      group.states = { ...states, [state]: (states[state] ?? 0) + n };
      group.cordoned += cordoned;
      group.critical += critical;
    }
  const keys = await sortedInParts([...groups.keys()], work);
  return keys.flatMap((key) => groups.get(key) ?? []);
}
