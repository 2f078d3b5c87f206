// The Machines of an App (docs/interface.md#machine).
import { z } from "zod";
import { named, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { commaSeparated, inApp } from "../shared/fields.ts";
import { clearValues, machineDetails, toMachineDetails } from "./details.ts";

/** States that filter a list of Machines (docs/interface.md#machine). */
export const listedStates = z.array(z.enum(["created", "started", "stopped", "suspended"]));

const inputs = z.object({
  ...inApp,
  region: optional(z.string(), "Only Machines in this region."),
  states: named(
    "ListedMachineState",
    optional(listedStates, "Only Machines in one of these states; in any when left out."),
  ),
  includeDeleted: optional(z.boolean(), "Whether destroyed Machines are listed too."),
  metadata: optional(z.record(z.string(), z.string()), "Only Machines with these metadata values."),
});

export const getMachines = defineFunction({
  name: "getMachines",
  summary: "Lists the Machines of an App.",
  description: clearValues,
  inputs,
  outputs: z.object({ machines: required(z.array(named("MachineDetails", machineDetails)), "The Machines.") }),

  async call({ inputs: { app, states, ...filters }, api }) {
    const found = await api.machines.list({ appName: app, state: commaSeparated(states), ...filters });
    return { machines: found.map((live) => toMachineDetails(app, live)) };
  },
});
