// Everything of an organization, page by page (spec 4.6, bodies 9.1).
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../lifecycle/clock.ts";
import { deletePath } from "../lifecycle/volumeStates.ts";
import type { MachineExtras, MachineRow, VolumeRow } from "../store/rows.ts";
import type { World } from "../world.ts";
import { orgOf } from "./find.ts";
import { withMembers, withMetadata } from "./machineAnswer.ts";
import { cursorOf, placeOf } from "./pages.ts";
import { Text, type Input, type Rules } from "./rule.ts";
import { volumeAnswer } from "./volumeAnswer.ts";

type Group = typeof contract.orgs;
type Query = Input<Group["machines"]>["query"];

interface OfApp {
  readonly app_name: string;
}

const mostInPage = 1000;
// ASSUMED: a page of the organization ends early once it has 4 Mi characters: its limit is advice.
const longestPage = 4 * 2 ** 20;
const stays = `t.state NOT IN (${deletePath.map((state) => `'${state}'`).join(", ")})`;

type ListedMachine = Pick<
  MachineRow,
  "id" | "name" | "region" | "state" | "private_ip" | "version" | "created_at" | "updated_at" | "metadata"
> &
  Pick<MachineExtras, "brief">;

type Filters = Omit<Query, "state" | "summary"> & { readonly state?: string | undefined };

/**
 * A page of what changed after the cursor, or else after `updated_after` (rule 3: the cursor takes precedence), longest ago
 * first (rule 1). Filtered by the store: an organization may hold a hundred thousand Machines. The cross join keeps SQLite
 * on the index of times, where it would sort all of them for every page.
 */
function page<Row extends ListedMachine | VolumeRow>(
  world: World,
  table: "machines" | "volumes",
  columns: string,
  there: string,
  org: number,
  { cursor, updated_after, include_deleted, region, state, limit = mostInPage }: Filters,
) {
  const [time, id] = placeOf(cursor) ?? [updated_after === undefined ? 0 : Date.parse(updated_after), "\uffff"];
  const sql = `SELECT ${columns}, a.name AS app_name FROM ${table} t CROSS JOIN apps a ON a.id = t.app
     WHERE a.org = ?1 AND a.deleting < 2 AND (t.updated_at, t.id) > (?2, ?3) AND (?4 IS NULL OR t.region = ?4)
       AND (?5 IS NULL OR t.state IN (SELECT value FROM json_each(?5))) ${include_deleted ? "" : `AND ${there}`}
     ORDER BY t.updated_at, t.id LIMIT ?6`;
  const states = state === undefined ? null : JSON.stringify([...new Set(state.split(","))]);
  const rows: (Row & OfApp)[] = [];
  let [length, more] = [0, false];
  for (const row of world.store.each<Row & OfApp>(sql, org, time, id, region ?? null, states, limit + 1)) {
    more = rows.length >= limit || length > longestPage;
    if (more) break;
    rows.push(row);
    length += lengthOf(row);
  }
  const last = rows.at(-1);
  return { rows, last, next_cursor: last && more ? cursorOf([last.updated_at, last.id]) : "" };
}

/** Characters of what a client may have made as long as it likes. */
const lengthOf = (row: ListedMachine | VolumeRow): number =>
  "brief" in row ? row.brief.length + (row.metadata?.length ?? 0) : 0;

const ownColumns = "t.id, t.name, t.region, t.state, t.private_ip, t.version, t.created_at, t.updated_at";
const summaryColumns = `${ownColumns}, '' AS brief, NULL AS metadata`;
const columns = `${ownColumns}, t.brief, t.metadata`;

/** The rules of the organization lists. */
export const orgs: Rules<Group> = {
  machines(input) {
    const { world, params, query } = input;
    const org = orgOf(input, params.org_slug);
    const shown = query.summary ? summaryColumns : columns;
    const found = page<ListedMachine>(world, "machines", shown, "t.destroyed_at IS NULL", org.id, query);
    const { rows, last, next_cursor } = found;
    const rest = { next_cursor, ...(last && { last_machine_id: last.id, last_updated_at: rfc3339(last.updated_at) }) };
    return new Text(withMembers(`{"machines":[${rows.map(machineAnswer).join(",")}]}`, rest));
  },

  volumes(input) {
    const { world, params, query } = input;
    const org = orgOf(input, params.org_slug);
    const { rows, last, next_cursor } = page<VolumeRow>(world, "volumes", "t.*", stays, org.id, query);
    return {
      volumes: rows.map((volume) => ({
        ...volumeAnswer(volume, query.summary),
        app_name: volume.app_name,
        updated_at: rfc3339(volume.updated_at),
      })),
      next_cursor,
      ...(last ? { last_volume_id: last.id, last_updated_at: rfc3339(last.updated_at) } : {}),
    };
  },
};

/** A Machine as JSON text: its parts are in the store as text already. */
function machineAnswer({ brief, metadata, created_at, updated_at, ...machine }: ListedMachine & OfApp): string {
  const { id, name, app_name, region, state, private_ip, version } = machine;
  const text = JSON.stringify({
    ...{ id, name, app_name, region, state, private_ip, version, instance_id: version },
    created_at: rfc3339(created_at),
    updated_at: rfc3339(updated_at),
  });
  return brief === "" ? text : `${text.slice(0, -1)},"config":${withMetadata(brief, metadata)}}`;
}
