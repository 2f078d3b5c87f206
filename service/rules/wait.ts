// Waiting for a state (docs/interface.md#waits).
import type { machines } from "../../api/machines.ts";
import { findMachine, isSettled } from "../lifecycle/machines.ts";
import { refuse } from "../refusal.ts";
import type { EventRow, MachineRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { appOf } from "./find.ts";
import { Deferred, type Rules } from "./rule.ts";

interface Wanted {
  readonly states: readonly string[];
  readonly version: string | undefined;
  /** States that the Machine left again count only since this event. */
  readonly after: string | undefined;
  /** Whether the current state counts only if it was entered since. */
  readonly isLater: boolean;
}

interface Reached {
  readonly ok: true;
  readonly state: string;
  readonly version?: string;
  readonly event_id?: string;
}

const gone = () => refuse(404, "not_found: machine not found");

const latestSql = "SELECT * FROM events WHERE machine = ? AND moved = 1 ORDER BY id DESC LIMIT 1";

function reached(context: Context, machine: MachineRow, wanted: Wanted): Reached | undefined {
  const { states, version, after, isLater } = wanted;
  const events = context.store.all<EventRow>(
    "SELECT * FROM events WHERE machine = ? AND id > ? AND moved = 1 ORDER BY id",
    machine.id,
    after ?? "",
  );
  if (!isLater || events.length > 0) {
    const counts = version === undefined || machine.version === version;
    if (counts && (states.includes(machine.state) || (states.includes("settled") && isSettled(context, machine)))) {
      const latest = events.at(-1) ?? context.store.get<EventRow>(latestSql, machine.id);
      return { ok: true, state: machine.state, version: machine.version, ...(latest ? { event_id: latest.id } : {}) };
    }
  }
  // ASSUMED: a state counts as reached even if the Machine left it again while the request was held, or since `from_event_id`.
  const passed =
    after === undefined
      ? undefined
      : events.find((event) => states.includes(event.status) && (version === undefined || event.version === version));
  return passed && { ok: true, state: passed.status, version: passed.version, event_id: passed.id };
}

/** The rule of the wait operation. */
export const wait: Pick<Rules<typeof machines>, "wait"> = {
  wait(input) {
    const { context, caller, query, onGone } = input;
    const app = appOf(input);
    const id = input.params.machine_id;
    if (findMachine(context, id)?.app !== app.id) throw gone();
    const states: readonly string[] = query.state ?? ["started"];
    const version = query.version ?? query.instance_id;
    // ASSUMED: a wait for a version that the Machine never had is 404.
    if (
      version !== undefined &&
      !context.store.get("SELECT 1 FROM machine_versions WHERE machine = ? AND version = ?", id, version)
    ) {
      throw refuse(404, "not_found: machine version not found");
    }
    let after = query.from_event_id;
    let last: MachineRow | undefined;

    const look = (): Reached | undefined => {
      const machine = findMachine(context, id);
      if (!machine || machine.destroyed_at !== null) {
        if (states.includes("destroyed"))
          return {
            ok: true,
            state: "destroyed",
            ...((last ?? machine) ? { version: (machine ?? last)?.version ?? "" } : {}),
          };
        throw gone();
      }
      last = machine;
      const found = reached(context, machine, { states, version, after, isLater: query.from_event_id !== undefined });
      if (found) return found;
      // ASSUMED: a wait for a version that was replaced is 412, so that clients do not repeat it; they look for `currently replaced` in the message.
      if (version !== undefined && machine.version !== version) {
        throw refuse(
          412,
          `failed_precondition: machine failed to reach desired state, ${states.join(",")}, currently replaced`,
        );
      }
      // Events before this check are handled; from now on only new ones count.
      after ??= context.store.get<{ id: string }>(
        "SELECT id FROM events WHERE machine = ? ORDER BY id DESC LIMIT 1",
        id,
      )?.id;
      return undefined;
    };

    const late = () =>
      refuse(
        408,
        `deadline_exceeded: machine failed to reach desired state, ${states.join(",")}, currently ${last?.state ?? "unknown"}`,
      );
    const timeoutMs = (query.timeout ?? 60) * 1000;
    return new Deferred(() =>
      context.waits.hold({ subject: id, org: caller.org, wanted: states.join(","), look, timeoutMs, late, onGone }),
    );
  },
};
