// Operations whose outcome the table of states decides (lifecycle/machineStates.ts).
import type { machines } from "../../api/machines.ts";
import { parseDuration } from "../../api/schema.ts";
import { operate, type Cause } from "../lifecycle/machines.ts";
import type { PowerOperation } from "../lifecycle/machineStates.ts";
import { refuse } from "../refusal.ts";
import type { MachineRow } from "../store/rows.ts";
import { liveMachineOf, machineOf } from "./find.ts";
import type { Input, Rules } from "./rule.ts";

// A client's operation begins a new count of restarts.
const byUser = (type: string, changes: Partial<MachineRow> = {}): Cause => ({
  type,
  source: "user",
  changes: { restarts: 0, ...changes },
});

function act(input: Input, operation: PowerOperation, cause: Cause) {
  operate(input.world, liveMachineOf(input), operation, cause);
  return { ok: true };
}

/** The rules of start, stop, suspend, restart and destroy. */
export const power: Pick<Rules<typeof machines>, "start" | "stop" | "suspend" | "restart" | "destroy"> = {
  start(input) {
    const machine = liveMachineOf(input);
    operate(input.world, machine, "start", byUser("start", { launch: 1 }));
    return { previous_state: machine.state, migrated: false, new_host: "" };
  },

  stop: (input) => act(input, "stop", byUser("stop")),
  suspend: (input) => act(input, "suspend", byUser("suspend")),

  restart(input) {
    const { timeout } = input.query;
    if (timeout !== undefined && !/^\d+$/.test(timeout) && parseDuration(timeout) === undefined) {
      throw refuse(
        400,
        `invalid timeout, got ${JSON.stringify(timeout.slice(0, 40))}, must be a duration or a number of seconds`,
      );
    }
    return act(input, "restart", byUser("restart"));
  },

  destroy(input) {
    const { force, kill } = input.query;
    const machine = machineOf(input);
    // ASSUMED: destroying what is already destroyed succeeds for as long as it is shown.
    if (machine.destroyed_at !== null) return { ok: true };
    return act(input, force || kill ? "kill" : "destroy", byUser("destroy"));
  },
};
