// Windows of an App's Machines for the console's table, and their groups.
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import { sizeOf, type MachineConfig } from "../../api/machineConfig.ts";
import { z } from "zod";
import { appOf } from "../rules/find.ts";
import { count } from "../rules/counts.ts";
import type { MachineRow, MachineExtras } from "../store/rows.ts";
import type { Asker } from "./ask.ts";
import type { Group, MachineItem, MachineWindow } from "./types.ts";

/** Number of Machines in one window. */
const mostInWindow = 500;

const text = z.string().max(200).optional();

/** The query of the list. */
export const windowQuery = z.strictObject({
  offset: z.coerce.number<string>().int().min(0).default(0),
  limit: z.coerce.number<string>().int().min(1).max(mostInWindow).default(100),
  sort: z.enum(["name", "region", "state", "image", "updated"]).default("name"),
  order: z.enum(["asc", "desc"]).default("asc"),
  /** Part of the name or the id. */
  text,
  state: text,
  region: text,
  image: text,
  fleet: text,
  /** Machines whose checks have this result, or that are cordoned. */
  only: z.enum(["passing", "warning", "critical", "cordoned"]).optional(),
});

const fleet = `m.metadata ->> '$."${fleetTag}"'`;
const phase = `m.metadata ->> '$."${phaseTag}"'`;
const image = "m.brief ->> '$.image'";

const sortedBy = { name: "m.name", region: "m.region", state: "m.state", image, updated: "m.updated_at" } as const;

type Row = Pick<
  MachineRow & MachineExtras,
  "id" | "name" | "region" | "state" | "version" | "cordoned" | "checks" | "brief" | "cpu_kind" | "updated_at"
> & { readonly fleet: string | null };

/** The conditions of the filters, with their values. */
function filters(query: z.infer<typeof windowQuery>): { readonly sql: string; readonly values: readonly string[] } {
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
  else if (only !== undefined) parts.push(["m.checks = ? AND m.state = 'started'", only]);
  return { sql: parts.map(([sql]) => ` AND ${sql}`).join(""), values: parts.flatMap(([, ...values]) => values) };
}

/** A window of the Machines of an App. */
export function windowOf(asker: Asker, name: string, query: z.infer<typeof windowQuery>): MachineWindow {
  const app = appOf({ ...asker, params: { app_name: name } });
  const { sql, values } = filters(query);
  const from = `FROM machines m WHERE m.app = ? AND m.destroyed_at IS NULL${sql}`;
  const { sort, order, limit, offset } = query;
  const direction = order === "desc" ? "DESC" : "ASC";
  const rows = asker.context.store.all<Row>(
    `SELECT m.id, m.name, m.region, m.state, m.version, m.cordoned, m.checks, m.brief, m.cpu_kind, m.updated_at, ${fleet} AS fleet
     ${from} ORDER BY ${sortedBy[sort]} ${direction}${sort === "name" ? "" : ", m.name"} LIMIT ? + 0 OFFSET ? + 0`,
    app.id,
    ...values,
    limit,
    offset,
  );
  const total = count(asker.context, `SELECT count(*) AS n ${from}`, app.id, ...values);
  return { total, offset, rows: rows.map(itemOf) };
}

/** The size of a Machine in words: `shared-cpu-1x, 256 MB`. */
function sizeText(guest: MachineConfig["guest"], kind: string): string {
  const { cpus, memoryMb } = sizeOf({ guest: { cpu_kind: kind as "shared" | "performance", ...guest } });
  return `${kind === "performance" ? "performance" : "shared-cpu"}-${cpus}x, ${memoryMb} MB`;
}

function itemOf({ brief, cordoned, cpu_kind, updated_at, checks, ...rest }: Row): MachineItem {
  const { image, guest } = JSON.parse(brief) as Pick<MachineConfig, "image" | "guest">;
  return {
    ...rest,
    image,
    cordoned: cordoned === 1,
    checks: rest.state === "started" ? checks : null,
    size: sizeText(guest, cpu_kind),
    updated: updated_at,
  };
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
export function groupsOf({ context }: Asker, app: string): readonly Group[] {
  const rows = context.store.all<GroupRow>(
    `SELECT m.region, ${image} AS image, ${fleet} AS fleet, ${phase} AS phase, m.state, count(*) AS n,
       sum(m.cordoned) AS cordoned, sum(m.checks = 'critical' AND m.state = 'started') AS critical
     FROM machines m WHERE m.app = ? AND m.destroyed_at IS NULL GROUP BY 1, 2, 3, 4, 5 ORDER BY 3, 1, 2, 4`,
    app,
  );
  const groups = new Map<string, { -readonly [K in keyof Group]: Group[K] }>();
  for (const { state, n, ...row } of rows) {
    const key = JSON.stringify([row.region, row.image, row.fleet, row.phase]);
    const group = groups.get(key);
    if (group) {
      group.states = { ...group.states, [state]: n };
      group.cordoned += row.cordoned;
      group.critical += row.critical;
    } else groups.set(key, { ...row, states: { [state]: n } });
  }
  return [...groups.values()];
}
