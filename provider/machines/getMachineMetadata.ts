// The metadata of a Machine (docs/interface.md#metadata).
import { z } from "zod";
import { required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { ofMachine } from "../shared/fields.ts";
import { withoutTags } from "./details.ts";

export const getMachineMetadata = defineFunction({
  name: "getMachineMetadata",
  summary: "Shows the metadata of a Machine; the provider's own tags are left out.",
  inputs: z.object(ofMachine),
  outputs: z.object({ metadata: required(z.record(z.string(), z.string()), "Values by key.") }),

  async call({ inputs: { app, machine }, api }) {
    return { metadata: withoutTags(await api.machines.getMetadata({ appName: app, machineId: machine })) };
  },
});
