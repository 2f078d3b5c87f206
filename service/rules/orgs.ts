// Paged lists of an organization (docs/interface.md#organization-lists).
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../time/clock.ts";
import { deletePath } from "../states/volumeStates.ts";
import type { VolumeRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { orgOf } from "./find.ts";
import { withMembers } from "./machineAnswer.ts";
import { cursorOf, placeOf } from "./pages.ts";
import { Text, type Input, type Rules } from "./rule.ts";
import { volumeAnswer } from "./volumeAnswer.ts";

type Group = typeof contract.orgs;
type Query = Input<Group["machines"]>["query"];

const mostInPage = 1000;
// ASSUMED: a page of an organization's list ends once it has 4 Mi characters, because its limit is only advice.
const longestPage = 4 * 2 ** 20;
const stays = `t.state NOT IN (${deletePath.map((state) => `'${state}'`).join(", ")})`;

type Filters = Omit<Query, "state" | "summary"> & { readonly state?: string | undefined };

/** The position of a row in its list. */
interface Standing {
  readonly id: string;
  readonly updated_at: number;
}

/**
 * A page of the rows that changed after the cursor, or else after `updated_after` (rule 3: the cursor takes precedence), the oldest
 * change first (rule 1). The store filters, because an organization may hold a hundred thousand Machines. The cross join makes
 * SQLite use the index of the organization's times; otherwise it would sort all rows for every page.
 */
function page<Row extends Standing>(
  context: Context,
  table: "machines" | "volumes",
  columns: string,
  there: string,
  org: number,
  { cursor, updated_after, include_deleted, region, state, limit = mostInPage }: Filters,
  lengthOf: (row: Row) => number,
) {
  const start = updated_after === undefined ? 0 : Date.parse(updated_after);
  const place = placeOf(cursor) ?? [start, "\uffff"];
  // F93: what changed since then has earlier dates.
  // ASSUMED: a cursor that is later than now was made while the clock was ahead, and begins again.
  const [time, id] = cursor !== undefined && place[0] > context.clock.now() ? [0, "\uffff"] : place;
  const sql = `SELECT ${columns} FROM ${table} t CROSS JOIN apps a ON a.id = t.app
     WHERE t.org = ?1 AND a.deleting < 2 AND (t.updated_at, t.id) > (?2, ?3) AND (?4 IS NULL OR t.region = ?4)
       AND (?5 IS NULL OR t.state IN (SELECT value FROM json_each(?5))) ${include_deleted ? "" : `AND ${there}`}
     ORDER BY t.updated_at, t.id LIMIT ?6 + 0`;
  const states = state === undefined ? null : JSON.stringify([...new Set(state.split(","))]);
  const rows: Row[] = [];
  let [length, more] = [0, false];
  for (const row of context.store.each<Row>(sql, org, time, id, region ?? null, states, limit + 1)) {
    more = rows.length >= limit || length > longestPage;
    if (more) break;
    rows.push(row);
    length += lengthOf(row);
  }
  const last = rows.at(-1);
  return { rows, last, next_cursor: last && more ? cursorOf([last.updated_at, last.id]) : "" };
}

interface ListedMachine extends Standing {
  /** The Machine as JSON text. */
  readonly text: string;
}

interface ListedVolume extends VolumeRow {
  readonly app_name: string;
}

/** A time in the format of {@link rfc3339}. */
const time = (name: string): string => `strftime('%FT%TZ', t.${name} / 1000, 'unixepoch')`;

// The store builds the text: reading the columns and building it here would take several times as long. Identifiers of the
// service need no escapes. One `concat` copies the text once, but each `||` would copy all text before it.
const summary = `'{"id":"', t.id, '","name":', json_quote(t.name), ',"app_name":', json_quote(a.name),
  ',"region":', json_quote(t.region), ',"state":"', t.state, '","private_ip":"', t.private_ip,
  '","version":"', t.version, '","instance_id":"', t.version,
  '","created_at":"', ${time("created_at")}, '","updated_at":"', ${time("updated_at")}, '"'`;
const config = `',"config":', iif(t.metadata IS NULL, t.brief, substr(t.brief, 1, length(t.brief) - 1) || ',"metadata":' || t.metadata || '}')`;
const machineColumns = (text: string): string => `t.id, t.updated_at, concat(${text}, '}') AS text`;
const [summaryColumns, wholeColumns] = [machineColumns(summary), machineColumns(`${summary}, ${config}`)];

/** The rules of the organization lists. */
export const orgs: Rules<Group> = {
  machines(input) {
    const { context, params, query } = input;
    const org = orgOf(input, params.org_slug);
    const shown = query.summary ? summaryColumns : wholeColumns;
    const lengthOf = ({ text }: ListedMachine): number => text.length;
    const found = page<ListedMachine>(context, "machines", shown, "t.destroyed_at IS NULL", org.id, query, lengthOf);
    const { rows, last, next_cursor } = found;
    const rest = { next_cursor, ...(last && { last_machine_id: last.id, last_updated_at: rfc3339(last.updated_at) }) };
    return new Text(withMembers(`{"machines":[${rows.map(({ text }) => text).join(",")}]}`, rest));
  },

  volumes(input) {
    const { context, params, query } = input;
    const org = orgOf(input, params.org_slug);
    const { rows, last, next_cursor } = page<ListedVolume>(
      ...([context, "volumes", "t.*, a.name AS app_name", stays, org.id, query, () => 0] as const),
    );
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
