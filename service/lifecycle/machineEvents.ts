// What happens to Machines, as the history has it.
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { Context } from "../context.ts";
import { exitIn } from "../history/exits.ts";
import { checksOf } from "../runtime/checks.ts";
import type { MachineRow } from "../store/rows.ts";

/** What happened. */
export interface Happened {
  readonly type: string;
  readonly source: string;
  /** As in the event of the interface. */
  readonly request?: object | undefined;
  /** The image that was replaced. */
  readonly from?: string | undefined;
}

interface Place {
  readonly org: string;
  readonly app: string;
}

/** The App and the organization of Machines, by the id of the App: neither gets another name. */
const places = new WeakMap<Context, Map<string, Place>>();
const mostPlaces = 10_000;

function placeOf(context: Context, app: string): Place | undefined {
  let known = places.get(context);
  if (!known || known.size > mostPlaces) places.set(context, (known = new Map()));
  const before = known.get(app);
  if (before) return before;
  const found = context.store.get<Place>(
    "SELECT o.slug AS org, a.name AS app FROM apps a JOIN orgs o ON o.id = a.org WHERE a.id = ?",
    app,
  );
  if (!found) return undefined;
  // The name of an App that is being removed has a suffix (removal.ts).
  const place = { org: found.org, app: found.app.split("/", 1)[0] ?? "" };
  known.set(app, place);
  return place;
}

/** Adds what happened to a Machine to the history, once it is durable. */
export function tellHistory(
  context: Context,
  machine: MachineRow,
  config: () => Readonly<MachineConfig>,
  { type, source, request, from }: Happened,
): void {
  const { history, store } = context;
  if (history.isOff) return;
  const configured = config();
  const { image } = configured;
  const hasChecks = checksOf(configured).length > 0;
  // Results of checks that a Machine does not have mean nothing.
  const place = type === "checks" && !hasChecks ? undefined : placeOf(context, machine.app);
  if (!place) return;
  const { id, name, region, state, version, metadata } = machine;
  const { [fleetTag]: fleet = null, [phaseTag]: phase = null } = metadata?.includes(fleetTag)
    ? (JSON.parse(metadata) as Readonly<Record<string, string>>)
    : {};
  const exit = exitIn(request);
  const event = {
    at: context.clock.now(),
    ...place,
    ...{ machine: id, name, region, fleet, phase, type, status: state, source, version, image },
    ...(from === undefined || from === image ? {} : { from }),
    checks: state === "started" && hasChecks ? machine.checks : null,
    ...(exit ? { exit } : {}),
  };
  // Whose request it was is known only now.
  const { sender } = history;
  store.onCommit(() => history.add({ kind: "event", ...event, ...(sender ? { by: sender } : {}) }));
}
