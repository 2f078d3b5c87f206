// The processes of a Machine (docs/interface.md#processes-and-signals).
import { z } from "zod";
import { machines } from "../../api/machines.ts";
import { named, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, ofMachine } from "../shared/fields.ts";

const { sortBy, order } = camelObject(machines.processes.query).shape;

export const getMachineProcesses = defineFunction({
  name: "getMachineProcesses",
  summary: "Lists the processes that run in a Machine.",
  inputs: z.object({
    ...ofMachine,
    sortBy,
    order,
  }),
  outputs: z.object({
    processes: required(
      z.array(named("ProcessDetails", camelObject(machines.processes.answer.element))),
      "The processes, in the order asked for.",
    ),
  }),

  async call({ inputs: { app, machine, ...sorting }, api }) {
    return { processes: await api.machines.processes({ appName: app, machineId: machine, ...sorting }) };
  },
});
