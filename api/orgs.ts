// Paged lists of an organization (docs/interface.md#organization-lists).
import { z } from "zod";
import { machineConfig } from "./machineConfig.ts";
import { stateFilter } from "./machines.ts";
import { orgSlugParam } from "./names.ts";
import { operations } from "./operation.ts";
import { optional, required } from "./schema.ts";
import { volume } from "./volumes.ts";

const time = z.iso.datetime({ offset: true, error: 'must be a time such as "2026-01-31T12:00:00Z"' });

const page = {
  include_deleted: optional(z.boolean(), "Whether destroyed Machines are listed too."),
  region: optional(z.string(), "Only Machines in this region."),
  summary: optional(z.boolean(), "Leave out details."),
  updated_after: optional(time, "Only what changed after this RFC 3339 time; `cursor` takes precedence."),
  cursor: optional(z.string(), "`next_cursor` of the previous answer."),
  limit: optional(z.int().min(1).max(1000), "Advice on how many to answer, 1 to 1000.", { wireDefault: 1000 }),
};

/** A Machine in the list of its organization. */
export const orgMachine = z.object({
  id: required(z.string(), "Identifier."),
  name: optional(z.string(), "Name."),
  app_name: required(z.string(), "App it belongs to."),
  region: optional(z.string(), "Region."),
  state: optional(z.string(), "State."),
  private_ip: optional(z.string(), "IPv6 address on the private network."),
  version: optional(z.string(), "Identifier of the configuration's version."),
  instance_id: optional(z.string(), "The same as `version`.", { deprecationMessage: "Use `version`." }),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  updated_at: optional(z.string(), "RFC 3339 time of the last change."),
  config: optional(
    z.object({
      image: optional(z.string(), "Image."),
      guest: optional(machineConfig.shape.guest.unwrap(), "Size."),
      metadata: optional(z.record(z.string(), z.string()), "Metadata."),
    }),
    "Part of the configuration; left out of a summary.",
  ),
});

/** A volume in the list of its organization. */
export const orgVolume = volume.extend({
  app_name: required(z.string(), "App it belongs to."),
  updated_at: optional(z.string(), "RFC 3339 time of the last change."),
});

const params = z.object({ org_slug: orgSlugParam });
const failures = { 400: "bad filter, cursor or limit", 403: "another organization", 404: "no such organization" };

export const orgs = operations("orgs", {
  machines: {
    method: "GET",
    path: "/v1/orgs/{org_slug}/machines",
    source: "docs/interface.md#organization-lists",
    summary: "Lists the Machines of an organization, ordered by their last change.",
    params,
    query: z.object({ ...page, state: optional(stateFilter, "Only Machines in these states, comma-separated.") }),
    status: 200,
    answer: z.object({
      machines: required(z.array(orgMachine), "The Machines."),
      next_cursor: optional(z.string(), "Where the next answer begins; empty or absent at the end."),
      last_machine_id: optional(z.string(), "The last Machine of this answer."),
      last_updated_at: optional(z.string(), "When that one changed."),
      error_regions: optional(z.array(z.string()), "Regions that did not answer."),
    }),
    failures,
    repeat: "read",
  },
  volumes: {
    method: "GET",
    path: "/v1/orgs/{org_slug}/volumes",
    source: "docs/interface.md#organization-lists",
    summary: "Lists the volumes of an organization, ordered by their last change.",
    params,
    query: z.object({ ...page, state: optional(z.string(), "Only volumes in these states, comma-separated.") }),
    status: 200,
    answer: z.object({
      volumes: required(z.array(orgVolume), "The volumes."),
      next_cursor: optional(z.string(), "Where the next answer begins; empty or absent at the end."),
      last_volume_id: optional(z.string(), "The last volume of this answer."),
      last_updated_at: optional(z.string(), "When that one changed."),
    }),
    failures,
    repeat: "read",
  },
});
