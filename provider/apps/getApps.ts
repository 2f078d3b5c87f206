// The Apps of an organization (docs/interface.md#apps).
import { z } from "zod";
import { named, optional, required } from "../../api/schema.ts";
import { everyApp } from "../client/pages.ts";
import { defineFunction } from "../core/function.ts";
import { appDetails, toAppDetails } from "./getApp.ts";

const inputs = z.object({
  organization: optional(z.string(), "Slug of the organization; the provider's `organization` when left out."),
  role: optional(z.string(), "Only Apps of this role."),
});

const outputs = z.object({
  apps: required(z.array(named("AppDetails", appDetails)), "The Apps."),
});

export const getApps = defineFunction({
  name: "getApps",
  summary: "Lists the Apps of an organization.",
  inputs,
  outputs,

  async call({ inputs: { organization, role }, api }) {
    const found = await everyApp(api, { orgSlug: organization ?? api.config.organization, appRole: role });
    return { apps: found.map(toAppDetails) };
  },
});
