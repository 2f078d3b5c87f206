// What happens to Machines, as the history has it.
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import type { Context } from "../context.ts";
import type { Checks, ExitOf } from "../history/entry.ts";
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

interface Around {
  readonly app: string;
  readonly org: string;
  readonly image: string | null;
  readonly has_checks: number;
}

/** The image of a Machine, as its configuration names it. */
export const imageNamed = ({ store }: Context, id: string): string =>
  store.get<{ image: string | null }>("SELECT brief ->> '$.image' AS image FROM machines WHERE id = ?", id)?.image ?? "";

/** Adds what happened to a Machine to the history, once it is durable. */
export function tellHistory(context: Context, machine: MachineRow, { type, source, request, from }: Happened): void {
  const { history, store } = context;
  if (history.isOff) return;
  const around = store.get<Around>(
    `SELECT a.name AS app, o.slug AS org, m.brief ->> '$.image' AS image, m.has_checks
     FROM machines m JOIN apps a ON a.id = m.app JOIN orgs o ON o.id = a.org WHERE m.id = ?`,
    machine.id,
  );
  // Results of checks that a Machine does not have mean nothing.
  if (!around || (type === "checks" && around.has_checks === 0)) return;
  const { id, name, region, state, version, metadata } = machine;
  const { [fleetTag]: fleet = null, [phaseTag]: phase = null } = metadata?.includes(fleetTag)
    ? (JSON.parse(metadata) as Readonly<Record<string, string>>)
    : {};
  const exit = exitIn(request);
  const event = {
    at: context.clock.now(),
    org: around.org,
    // The name of an App that is being removed has a suffix (removal.ts).
    app: around.app.split("/", 1)[0] ?? null,
    ...{ machine: id, name, region, fleet, phase, type, status: state, source, version, image: around.image ?? "" },
    ...(from === undefined || from === around.image ? {} : { from }),
    checks: state === "started" && around.has_checks === 1 ? (machine.checks as Checks) : null,
    ...(exit ? { exit } : {}),
  };
  // Whose request it was is known only now.
  const { sender } = history;
  store.onCommit(() => history.add({ kind: "event", ...event, ...(sender ? { by: sender } : {}) }));
}

function exitIn(request: object | undefined): ExitOf | undefined {
  const { exit_event: exit } = (request ?? {}) as { readonly exit_event?: Readonly<Record<string, unknown>> };
  if (!exit) return undefined;
  const { exit_code, guest_signal, oom_killed, requested_stop, restarting, error, last_lines } = exit;
  return {
    code: Number(exit_code),
    signal: Math.max(0, Number(guest_signal)),
    oom: oom_killed === true,
    requested: requested_stop === true,
    restarting: restarting === true,
    error: typeof error === "string" ? error : "",
    lines: Array.isArray(last_lines) ? (last_lines as string[]) : [],
  };
}
