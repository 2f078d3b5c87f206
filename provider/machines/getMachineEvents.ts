// Events of a Machine (docs/interface.md#events).
import { z } from "zod";
import { machines } from "../../api/machines.ts";
import { required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, ofMachine } from "../shared/fields.ts";
import { machineEventDetails } from "./details.ts";

export const getMachineEvents = defineFunction({
  name: "getMachineEvents",
  summary: "Lists the latest events of a Machine, newest first.",
  inputs: z.object({ ...ofMachine, ...camelObject(machines.events.query).shape }),
  outputs: z.object({ events: required(z.array(machineEventDetails), "The events, newest first.") }),

  async call({ inputs: { app, machine, limit }, api }) {
    return { events: await api.machines.events({ appName: app, machineId: machine, limit }) };
  },
});
