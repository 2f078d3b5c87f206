// The versions of a Machine's configuration (docs/interface.md#versions).
import { z } from "zod";
import { named, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { config, fromService } from "./settings.ts";
import { ofMachine } from "../shared/fields.ts";
import { clearValues } from "./details.ts";

const machineVersion = z.object({
  version: optional(z.string(), "Identifier of the version, 26 characters."),
  config: optional(config, "Configuration of that version, as a Machine takes it."),
});

export const getMachineVersions = defineFunction({
  name: "getMachineVersions",
  summary: "Lists the versions of a Machine's configuration, newest first.",
  description: clearValues,
  inputs: z.object(ofMachine),
  outputs: z.object({
    versions: required(z.array(named("MachineVersionDetails", machineVersion)), "The versions, newest first."),
  }),

  async call({ inputs: { app, machine }, api }) {
    const found = await api.machines.versions({ appName: app, machineId: machine });
    return {
      versions: found.map(({ version, userConfig }) => ({
        version,
        config: userConfig && fromService(userConfig, undefined),
      })),
    };
  },
});
