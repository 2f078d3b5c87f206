// Starts and stops Machines for requests: the service does it in its store, and a proxy of its own asks the service.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { Context } from "../context.ts";
import { configOf, findMachine, operate } from "../lifecycle/machines.ts";
import type { MachineState } from "../states/machineStates.ts";
import type { MachineRow } from "../store/rows.ts";

/** What starts and stops Machines for a proxy. */
export interface Power {
  /** Starts a Machine that sleeps. Returns whether a request may wait for it. */
  wake(machine: string): boolean;
  /** A Machine has got a request, or its last one has ended. */
  loaded(machine: string): void;
  /** A Machine has changed. */
  changed(machine: string): void;
  close(): void;
}

const asleep: readonly MachineState[] = ["stopped", "suspended"];

/** Whether a Machine is one that a request may start. */
export const isAsleep = ({ state, cordoned }: Pick<MachineRow, "state" | "cordoned">): boolean =>
  cordoned === 0 && asleep.includes(state);

/** Whether a configuration lets a request start its Machine. */
const startsByRequest = ({ services = [] }: MachineConfig): boolean =>
  services.some(({ autostart, ports }) => autostart === true && ports?.length);

/** Starts a Machine for a request, in a transaction of the store, if its configuration lets a request do that and it sleeps. */
export function startForRequest(context: Context, id: string): void {
  const machine = findMachine(context, id);
  if (!machine || !isAsleep(machine) || !startsByRequest(configOf(context, machine))) return;
  operate(context, machine, "start", { type: "start", source: "flyd", changes: { launch: 1, restarts: 0 } });
}
