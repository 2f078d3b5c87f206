// An existing Machine (docs/interface.md#machine).
import { z } from "zod";
import { defineFunction } from "../core/function.ts";
import { ofMachine } from "../shared/fields.ts";
import { clearValues, machineDetails, toMachineDetails } from "./details.ts";

export const getMachine = defineFunction({
  name: "getMachine",
  summary: "Looks up a Machine.",
  description: clearValues,
  inputs: z.object(ofMachine),
  outputs: machineDetails,

  async call({ inputs: { app, machine }, api }) {
    return toMachineDetails(app, await api.machines.get({ appName: app, machineId: machine }));
  },
});
