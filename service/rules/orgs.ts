// Everything of an organization, page by page (spec 4.6, bodies 9.1).
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../lifecycle/clock.ts";
import { configOf } from "../lifecycle/machines.ts";
import { deletePath } from "../lifecycle/volumeStates.ts";
import type { MachineRow, VolumeRow } from "../store/rows.ts";
import type { World } from "../world.ts";
import { orgOf } from "./find.ts";
import { cursorOf, placeOf } from "./pages.ts";
import type { Input, Rules } from "./rule.ts";
import { volumeAnswer } from "./volumeAnswer.ts";

type Group = typeof contract.orgs;
type Query = Input<Group["machines"]>["query"];

interface OfApp {
  readonly app_name: string;
}

const mostInPage = 1000;
const stays = `t.state NOT IN (${deletePath.map((state) => `'${state}'`).join(", ")})`;

type Filters = Omit<Query, "state" | "summary"> & { readonly state?: string | undefined };

/**
 * A page of what changed after the cursor, or else after `updated_after` (rule 3: the cursor takes precedence), longest ago
 * first (rule 1). Filtered by the store: an organization may hold a hundred thousand Machines. The cross join keeps SQLite
 * on the index of times, where it would sort all of them for every page.
 */
function page<Row extends MachineRow | VolumeRow>(
  world: World,
  table: "machines" | "volumes",
  there: string,
  org: number,
  { cursor, updated_after, include_deleted, region, state, limit = mostInPage }: Filters,
) {
  const [time, id] = placeOf(cursor) ?? [updated_after === undefined ? 0 : Date.parse(updated_after), "\uffff"];
  const rows = world.store.all<Row & OfApp>(
    `SELECT t.*, a.name AS app_name FROM ${table} t CROSS JOIN apps a ON a.id = t.app
     WHERE a.org = ?1 AND (t.updated_at, t.id) > (?2, ?3) AND (?4 IS NULL OR t.region = ?4)
       AND (?5 IS NULL OR t.state IN (SELECT value FROM json_each(?5))) ${include_deleted ? "" : `AND ${there}`}
     ORDER BY t.updated_at, t.id LIMIT ?6`,
    ...[
      org,
      time,
      id,
      region ?? null,
      state === undefined ? null : JSON.stringify([...new Set(state.split(","))]),
      limit + 1,
    ],
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    rows: shown,
    last,
    next_cursor: last && rows.length > limit ? cursorOf([last.updated_at, last.id]) : "",
  };
}

/** The rules of the organization lists. */
export const orgs: Rules<Group> = {
  machines(input) {
    const { world, params, query } = input;
    const org = orgOf(input, params.org_slug);
    const { rows, last, next_cursor } = page<MachineRow>(world, "machines", "t.destroyed_at IS NULL", org.id, query);
    return {
      machines: rows.map((machine) => machineAnswer(machine, query.summary === true)),
      next_cursor,
      ...(last ? { last_machine_id: last.id, last_updated_at: rfc3339(last.updated_at) } : {}),
    };
  },

  volumes(input) {
    const { world, params, query } = input;
    const org = orgOf(input, params.org_slug);
    const { rows, last, next_cursor } = page<VolumeRow>(world, "volumes", stays, org.id, query);
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

function machineAnswer(machine: MachineRow & OfApp, summary: boolean) {
  const { id, name, app_name, region, state, private_ip, version } = machine;
  const { image, guest } = configOf(machine);
  const metadata =
    machine.metadata === null ? {} : { metadata: JSON.parse(machine.metadata) as Record<string, string> };
  return {
    ...{ id, name, app_name, region, state, private_ip, version, instance_id: version },
    created_at: rfc3339(machine.created_at),
    updated_at: rfc3339(machine.updated_at),
    ...(summary ? {} : { config: { image, ...(guest ? { guest } : {}), ...metadata } }),
  };
}
