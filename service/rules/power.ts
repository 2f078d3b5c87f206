// Operations whose effect depends on the state (states/machineStates.ts).
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { machines } from "../../api/machines.ts";
import { parseDuration } from "../../api/schema.ts";
import { configOf, operate, type Cause } from "../lifecycle/machines.ts";
import type { PowerOperation } from "../states/machineStates.ts";
import { refuse } from "../refusal.ts";
import type { StopRequest } from "../runtime/runtime.ts";
import { stopRequest } from "../runtime/stopRequest.ts";
import type { MachineRow } from "../store/rows.ts";
import { liveMachineOf, machineOf } from "./find.ts";
import type { Input, Rules } from "./rule.ts";

// ASSUMED: the retries of a restart policy are counted within five minutes (docs/interface.md#limits); an operation of a client
// resets the count.
const byUser = (type: string, changes: Partial<MachineRow> = {}): Cause => ({
  type,
  source: "user",
  changes: { restarts: 0, ...changes },
});

type StopConfig = NonNullable<MachineConfig["stop_config"]>;

/** How to stop the process: as requested, else as configured. */
function requestOf(input: Input, signal: StopConfig["signal"], timeout: string | undefined): StopRequest {
  const { stop_config } = configOf(input.context, liveMachineOf(input));
  if (timeout !== undefined && parseDuration(timeout) === undefined) {
    const got = JSON.stringify(timeout.slice(0, 40));
    throw refuse(400, `invalid timeout, got ${got}, must be a duration or a number of seconds`);
  }
  const said = { ...(signal === undefined ? {} : { signal }), ...(timeout === undefined ? {} : { timeout }) };
  return stopRequest({ ...stop_config, ...said });
}

function act(input: Input, operation: PowerOperation, cause: Cause) {
  operate(input.context, liveMachineOf(input), operation, cause);
  return { ok: true };
}

/** The rules of start, stop, suspend, restart and destroy. */
export const power: Pick<Rules<typeof machines>, "start" | "stop" | "suspend" | "restart" | "destroy"> = {
  start(input) {
    const machine = liveMachineOf(input);
    operate(input.context, machine, "start", byUser("start", { launch: 1 }));
    return { previous_state: machine.state, migrated: false, new_host: "" };
  },

  stop(input) {
    const { signal, timeout } = input.body;
    return act(input, "stop", { ...byUser("stop"), stop: requestOf(input, signal, timeout) });
  },
  suspend: (input) => act(input, "suspend", byUser("suspend")),

  restart(input) {
    const { timeout, signal, force_stop } = input.query;
    const asked = timeout !== undefined && /^\d+$/.test(timeout) ? `${timeout}s` : timeout;
    const stop = requestOf(input, force_stop ? "SIGKILL" : signal, asked);
    return act(input, "restart", { ...byUser("restart"), stop });
  },

  destroy(input) {
    const { force, kill } = input.query;
    const machine = machineOf(input);
    // ASSUMED: destroying a Machine again is 200 while it is still shown.
    if (machine.destroyed_at !== null) return { ok: true };
    return act(input, force || kill ? "kill" : "destroy", byUser("destroy"));
  },
};
