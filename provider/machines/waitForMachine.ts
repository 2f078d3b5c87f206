// Waiting for a Machine (docs/interface.md#waits).
import { z } from "zod";
import { waitState } from "../../api/machines.ts";
import { ulid } from "../../api/names.ts";
import { named, optional, required } from "../../api/schema.ts";
import { versionOf } from "../client/machine.ts";
import { reached } from "../client/wait.ts";
import { isNotFound } from "../client/errors.ts";
import { defineFunction } from "../core/function.ts";
import { ofMachine } from "../shared/fields.ts";

const inputs = z.object({
  ...ofMachine,
  states: named(
    "AwaitedMachineState",
    optional(
      z.array(waitState).min(1, "must hold a state"),
      "States to wait for: the first that is reached ends the wait.",
      { wireDefault: ["started"] },
    ),
  ),
  version: optional(ulid, "Version of the configuration that must have reached the state; any when left out."),
  timeoutSeconds: z.int().min(1).max(86_400).default(300).describe("Seconds until the wait fails, 1 to 86400."),
});

export const waitForMachine = defineFunction({
  name: "waitForMachine",
  summary:
    "Waits until a Machine is in one of several states. In a preview it does not wait: its answer is unknown, or how the Machine is now where the engine takes no unknown answer.",
  inputs,
  outputs: z.object({
    state: required(z.string(), "State that was reached."),
    version: optional(z.string(), "Version of the configuration that reached it."),
  }),
  seconds: ({ timeoutSeconds }) => timeoutSeconds,

  async call({ inputs: { app, machine, states, version }, api, progress }) {
    const key = { appName: app, machineId: machine };
    const found = await reached(api, key, states ?? ["started"], { version, progress });
    // A wrong App or endpoint has no such Machine either (R8).
    if (found.state === "destroyed") await api.apps.get({ appName: app });
    return found;
  },

  async look({ inputs: { app, machine, states = [] }, api }) {
    try {
      const live = await api.machines.get({ appName: app, machineId: machine });
      return { state: live.state, version: versionOf(live) };
    } catch (error) {
      if (!isNotFound(error) || !states.includes("destroyed")) throw error;
      await api.apps.get({ appName: app });
      return { state: "destroyed" };
    }
  },
});
