// The memory of a running Machine (docs/interface.md#memory).
import { z } from "zod";
import { machines } from "../../api/machines.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, ofMachine } from "../shared/fields.ts";

export const getMachineMemory = defineFunction({
  name: "getMachineMemory",
  summary: "Shows the memory limit of a running Machine and what is available.",
  inputs: z.object(ofMachine),
  outputs: camelObject(machines.getMemory.answer),

  call: ({ inputs: { app, machine }, api }) => api.machines.getMemory({ appName: app, machineId: machine }),
});
