// The Machines of an organization (docs/interface.md#organization-lists).
import { z } from "zod";
import { orgMachine, orgs } from "../../api/orgs.ts";
import { named, optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { everyOrgMachine } from "../client/pages.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, commaSeparated, ofOrganization } from "../shared/fields.ts";
import { listedStates } from "./getMachines.ts";
import { withoutTags } from "./details.ts";

const { region, includeDeleted, updatedAfter } = camelObject(orgs.machines.query).shape;
const wire = camelObject(orgMachine);
const partOfConfig = camelObject(orgMachine.shape.config.unwrap()).shape;

const orgMachineDetails = z.object({
  id: required(z.string(), "Id of the Machine, `app/machineId`, as inputs and `pulumi import` take it."),
  app: required(z.string(), "App the Machine belongs to."),
  machineId: required(z.string(), "Identifier within the App; stable for life."),
  ...wire.pick({
    name: true,
    region: true,
    state: true,
    privateIp: true,
    version: true,
    createdAt: true,
    updatedAt: true,
  }).shape,
  ...partOfConfig,
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
  summary: "Lists the Machines of an organization, the ones that changed longest ago first.",
  description:
    "The list may be a few seconds old: Machines that were just created or destroyed may be missing from it.",
  inputs: z.object({
    ...ofOrganization,
    region,
    states: named(
      "ListedMachineState",
      optional(listedStates, "Only Machines in one of these states; in any when left out."),
    ),
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
