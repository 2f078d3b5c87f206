// The volumes of an organization (docs/interface.md#organization-lists).
import { z } from "zod";
import { orgs, orgVolume } from "../../api/orgs.ts";
import { named, optional, required } from "../../api/schema.ts";
import { everyOrgVolume } from "../client/pages.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, commaSeparated, ofOrganization } from "../shared/fields.ts";
import { toVolumeDetails, volumeDetails } from "./details.ts";

const { region, includeDeleted, updatedAfter } = camelObject(orgs.volumes.query).shape;

const orgVolumeDetails = volumeDetails.extend(camelObject(orgVolume).pick({ updatedAt: true }).shape);

export const getOrgVolumes = defineFunction({
  name: "getOrgVolumes",
  summary: "Lists the volumes of an organization, the ones that changed longest ago first.",
  description: "The list may be a few seconds old: volumes that were just created or deleted may be missing from it.",
  inputs: z.object({
    ...ofOrganization,
    region,
    states: optional(
      z.array(z.string()),
      "Only volumes in one of these states, for example `created`; in any when left out.",
    ),
    includeDeleted,
    updatedAfter: optional(updatedAfter.unwrap(), "Only volumes that changed after this RFC 3339 time."),
  }),
  outputs: z.object({
    volumes: required(z.array(named("OrgVolumeDetails", orgVolumeDetails)), "The volumes."),
  }),

  async call({ inputs: { organization, states, ...filters }, api }) {
    const orgSlug = organization ?? api.config.organization;
    const found = await everyOrgVolume(api, { orgSlug, state: commaSeparated(states), ...filters });
    return {
      volumes: found.map(({ appName, updatedAt, ...live }) => ({ ...toVolumeDetails(appName, live), updatedAt })),
    };
  },
});
