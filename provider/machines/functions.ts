// The functions about Machines.
import { z } from "zod";
import { camelSchema } from "../../api/case.ts";
import { machines, waitState } from "../../api/machines.ts";
import { ulid } from "../../api/names.ts";
import { orgMachine, orgs } from "../../api/orgs.ts";
import { getPlacements as placementBody, placement, platform } from "../../api/platform.ts";
import { named, optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { isNotFound } from "../client/errors.ts";
import { everyOrgMachine } from "../client/pages.ts";
import { versionOf } from "../client/machine.ts";
import { reached } from "../client/wait.ts";
import { defineFunction, listFunction } from "../core/function.ts";
import { camelObject, commaSeparated, inApp, ofMachine, ofOrganization } from "../shared/fields.ts";
import { clearValues, machineDetails, machineEventDetails, toMachineDetails, withoutTags } from "./details.ts";
import { config, fromService } from "./settings.ts";

// docs/interface.md#machine
const listedStates = named(
  "ListedMachineState",
  optional(
    z.array(z.enum(["created", "started", "stopped", "suspended"])),
    "Only Machines in one of these states; in any when left out.",
  ),
);

export const getMachine = defineFunction({
  name: "getMachine",
  summary: "Looks up a Machine.",
  description: clearValues,
  inputs: z.object(ofMachine),
  outputs: machineDetails,
  call: async ({ inputs: { app, machine }, api }) =>
    toMachineDetails(app, await api.machines.get({ appName: app, machineId: machine })),
});

export const getMachines = listFunction({
  name: "getMachines",
  summary: "Lists the Machines of an App.",
  description: clearValues,
  inputs: {
    ...inApp,
    region: optional(z.string(), "Only Machines in this region."),
    states: listedStates,
    includeDeleted: optional(z.boolean(), "Whether destroyed Machines are listed too."),
    metadata: optional(z.record(z.string(), z.string()), "Only Machines with these metadata values."),
  },
  items: ["machines", "The Machines.", named("MachineDetails", machineDetails)],
  async list({ app, states, ...filters }, api) {
    const found = await api.machines.list({ appName: app, state: commaSeparated(states), ...filters });
    return found.map((live) => toMachineDetails(app, live));
  },
});

// docs/interface.md#organization-lists
const { region, includeDeleted, updatedAfter } = camelObject(orgs.machines.query).shape;

const orgMachineDetails = z.object({
  id: required(z.string(), "Id of the Machine, `app/machineId`, as inputs and `pulumi import` take it."),
  app: required(z.string(), "App the Machine belongs to."),
  machineId: required(z.string(), "Identifier within the App; stable for life."),
  ...camelObject(orgMachine).pick({
    name: true,
    region: true,
    state: true,
    privateIp: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  }).shape,
  ...camelObject(orgMachine.shape.config.unwrap()).shape,
});

const toOrgMachine = (live: AnswerOf<"orgs", "machines">["machines"][number]) => ({
  id: `${live.appName}/${live.id}`,
  app: live.appName,
  machineId: live.id,
  name: live.name,
  region: live.region,
  state: live.state,
  privateIp: live.privateIp,
  version: live.version ?? live.instanceId,
  createdAt: live.createdAt,
  updatedAt: live.updatedAt,
  image: live.config?.image,
  guest: live.config?.guest,
  metadata: live.config?.metadata && withoutTags(live.config.metadata),
});

export const getOrgMachines = defineFunction({
  name: "getOrgMachines",
  summary: "Lists the Machines of an organization, in the order of their last change, the oldest first.",
  description:
    "The list may be a few seconds old: Machines that were just created or destroyed may be missing from it.",
  inputs: z.object({
    ...ofOrganization,
    region,
    states: listedStates,
    includeDeleted,
    updatedAfter: optional(updatedAfter.unwrap(), "Only Machines that changed after this RFC 3339 time."),
  }),
  outputs: z.object({
    machines: required(z.array(named("OrgMachineDetails", orgMachineDetails)), "The Machines."),
    errorRegions: required(z.array(z.string()), "Regions that did not answer: their Machines are missing."),
  }),

  async call({ inputs: { organization, states, ...filters }, api }) {
    const orgSlug = organization ?? api.config.organization;
    const found = await everyOrgMachine(api, { orgSlug, state: commaSeparated(states), ...filters });
    return { machines: found.machines.map(toOrgMachine), errorRegions: found.errorRegions };
  },
});

// docs/interface.md#events
export const getMachineEvents = listFunction({
  name: "getMachineEvents",
  summary: "Lists the latest events of a Machine, newest first.",
  inputs: { ...ofMachine, ...camelObject(machines.events.query).shape },
  items: ["events", "The events, newest first.", machineEventDetails],
  list: ({ app, machine, limit }, api) => api.machines.events({ appName: app, machineId: machine, limit }),
});

// docs/interface.md#leases
export const getMachineLease = defineFunction({
  name: "getMachineLease",
  summary: "Shows whether a client holds the lease of a Machine, and which one; never its nonce.",
  inputs: z.object(ofMachine),
  outputs: z.object({
    held: required(z.boolean(), "Whether a client holds the lease now."),
    owner: optional(z.string(), "Who holds it."),
    description: optional(z.string(), "Why it is held."),
    expiresAt: optional(z.string(), "RFC 3339 time at which it ends unless it is renewed."),
    version: optional(z.string(), "Version of the Machine when it was granted."),
  }),

  async call({ inputs: { app, machine }, api }) {
    const key = { appName: app, machineId: machine };
    try {
      const answer = await api.machines.getLease(key);
      const { owner, description, expiresAt, version } = answer.data ?? answer;
      const at = expiresAt === undefined ? undefined : new Date(expiresAt * 1000).toISOString();
      return { held: true, owner, description, expiresAt: at, version };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // The same status is the answer for an unknown Machine.
      await api.machines.get(key);
      return { held: false };
    }
  },
});

// docs/interface.md#memory
export const getMachineMemory = defineFunction({
  name: "getMachineMemory",
  summary: "Shows the memory limit of a running Machine and what is available.",
  inputs: z.object(ofMachine),
  outputs: camelObject(machines.getMemory.answer),
  call: ({ inputs: { app, machine }, api }) => api.machines.getMemory({ appName: app, machineId: machine }),
});

// docs/interface.md#metadata
export const getMachineMetadata = defineFunction({
  name: "getMachineMetadata",
  summary: "Shows the metadata of a Machine; the provider's own tags are left out.",
  inputs: z.object(ofMachine),
  outputs: z.object({ metadata: required(z.record(z.string(), z.string()), "Values by key.") }),

  async call({ inputs: { app, machine }, api }) {
    return { metadata: withoutTags(await api.machines.getMetadata({ appName: app, machineId: machine })) };
  },
});

// docs/interface.md#processes-and-signals
const { sortBy, order } = camelObject(machines.processes.query).shape;

export const getMachineProcesses = listFunction({
  name: "getMachineProcesses",
  summary: "Lists the processes that run in a Machine.",
  inputs: { ...ofMachine, sortBy, order },
  items: [
    "processes",
    "The processes, in the requested order.",
    named("ProcessDetails", camelObject(machines.processes.answer.element)),
  ],
  list: ({ app, machine, ...sorting }, api) => api.machines.processes({ appName: app, machineId: machine, ...sorting }),
});

// docs/interface.md#versions
const machineVersion = z.object({
  version: optional(z.string(), "Identifier of the version, 26 characters."),
  config: optional(config, "Configuration of that version, with the fields of a Machine's `config`."),
});

export const getMachineVersions = listFunction({
  name: "getMachineVersions",
  summary: "Lists the versions of a Machine's configuration, newest first.",
  description: clearValues,
  inputs: ofMachine,
  items: ["versions", "The versions, newest first.", named("MachineVersionDetails", machineVersion)],
  list: async ({ app, machine }, api) =>
    (await api.machines.versions({ appName: app, machineId: machine })).map(({ version, userConfig }) => ({
      version,
      config: userConfig && fromService(userConfig, undefined),
    })),
});

// docs/interface.md#placements
export const getPlacements = listFunction({
  name: "getPlacements",
  summary: "Simulates placing Machines into regions; nothing is reserved.",
  inputs: { ...ofOrganization, ...camelObject(placementBody).omit({ orgSlug: true }).shape },
  items: ["regions", "Regions with room, the preferred one first.", named("PlacementDetails", camelObject(placement))],
  async list({ organization, ...wanted }, api) {
    const orgSlug = organization ?? api.config.organization;
    return (await api.platform.placements({ body: { orgSlug, ...wanted } })).regions;
  },
});

// docs/interface.md#regions
export const getRegions = defineFunction({
  name: "getRegions",
  summary: "Lists the regions.",
  inputs: z.object({}),
  outputs: camelSchema(platform.regions.answer),
  call: ({ api }) => api.platform.regions({}),
});

// docs/interface.md#waits
export const waitForMachine = defineFunction({
  name: "waitForMachine",
  summary:
    "Waits until a Machine is in one of several states. In a preview it does not wait: its answer is unknown, or the present state if the engine accepts no unknown answer.",
  inputs: z.object({
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
  }),
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
