// Apps (docs/interface.md#apps).
import { z } from "zod";
import { appName, appNameParam } from "./names.ts";
import { operations } from "./operation.ts";
import { duration, needed, optional, required } from "./schema.ts";

const organization = z.object({
  name: optional(z.string(), "Display name of the organization."),
  slug: optional(z.string(), "Slug of the organization."),
  internal_numeric_id: optional(z.int(), "Number of the organization within the platform."),
});

/** An App as the service returns it. */
export const app = z.object({
  id: optional(z.string(), "Opaque identifier of 16 characters."),
  internal_numeric_id: optional(z.int(), "Number of the App within the platform."),
  name: required(z.string(), "Name, unique on the whole platform."),
  status: optional(z.string(), "`pending` (no Machine yet), `deployed` or `suspended`; the full set is not known."),
  network: optional(z.string(), "IPv6 private network the App is on."),
  network_cidr: optional(z.string(), "Address range of that network."),
  machine_count: optional(z.int(), "Number of Machines."),
  volume_count: optional(z.int(), "Number of volumes."),
  organization: optional(organization, "Organization that owns the App."),
  cname_target: optional(z.string(), "Host name a CNAME record for the App points at."),
  app_role: optional(z.string(), "Role of the App, for example `postgres_cluster`."),
  http_url: optional(
    z.string(),
    "URL of the App's HTTP services on the service's computer. Only a service that runs Machines on its own computer sets it.",
  ),
  https_url: optional(z.string(), "The same URL for HTTPS services."),
});

/** Body of a request that creates an App. The platform's text names the first field `app_name`; both are accepted. */
export const createApp = z.object({
  name: needed(appName, "Name of the App. Required; `app_name` is accepted in its place."),
  app_name: optional(appName, "Another spelling of `name`."),
  org_slug: needed(z.string(), "Slug of the organization; `personal` is the caller's own. Required."),
  network: optional(z.string(), "IPv6 private network to put the App on; the default network when left out."),
  enable_subdomains: optional(z.boolean(), "Reserved by the platform."),
  app_role_id: optional(z.string(), "Role of the App."),
  idempotency_key: optional(z.string(), "A second request with the same key and name answers the App of the first."),
});

/** The answer to a create: the new App. The specification promises none of its fields. */
export const createdApp = app.partial().extend({
  created_at: optional(z.int(), "Milliseconds since 1970."),
});

export const apps = operations("apps", {
  list: {
    method: "GET",
    path: "/v1/apps",
    source: "docs/interface.md#apps, docs/interface.md#paging",
    summary: "Lists the Apps of an organization.",
    params: z.object({}),
    query: z.object({
      org_slug: required(z.string(), "Slug of the organization; `personal` is the caller's own."),
      app_role: optional(z.string(), "Only Apps of this role."),
      limit: optional(z.int().min(1).max(5000), "Apps in one answer, 1 to 5000."),
      cursor: optional(z.string(), "`next_cursor` of the previous answer."),
    }),
    status: 200,
    answer: z.object({
      total_apps: optional(z.int(), "Number of Apps in the organization."),
      apps: required(z.array(app), "The Apps."),
      next_cursor: optional(z.string(), "Where the next answer begins; absent at the end."),
    }),
    failures: {
      400: "org_slug missing, or a bad limit or cursor",
      403: "another organization",
      404: "no such organization",
    },
    repeat: "read",
  },
  create: {
    method: "POST",
    path: "/v1/apps",
    source: "docs/interface.md#apps",
    summary: "Creates an App.",
    params: z.object({}),
    body: createApp,
    status: 201,
    answer: createdApp.optional(),
    failures: {
      400: "org_slug or name missing, or bad field",
      403: "another organization",
      404: "no such organization",
      422: "name taken (`name_taken`) or not allowed",
    },
    repeat: "once",
  },
  get: {
    method: "GET",
    path: "/v1/apps/{app_name}",
    source: "docs/interface.md#apps",
    summary: "Shows an App.",
    params: z.object({ app_name: appNameParam }),
    status: 200,
    answer: app,
    failures: { 403: "the App is another organization's", 404: "no such App" },
    repeat: "read",
  },
  delete: {
    method: "DELETE",
    path: "/v1/apps/{app_name}",
    source: "docs/interface.md#apps",
    summary: "Deletes an App with all its parts; finished asynchronously.",
    params: z.object({ app_name: appNameParam }),
    query: z.object({ force: optional(z.boolean(), "Stops Machines and deletes at once.") }),
    status: 202,
    failures: { 403: "the App is another organization's", 404: "no such App" },
    repeat: "repeatable",
  },
  createDeployToken: {
    method: "POST",
    path: "/v1/apps/{app_name}/deploy_token",
    source: "docs/interface.md#deploy-tokens",
    summary: "Creates an access token for one App.",
    params: z.object({ app_name: appNameParam }),
    body: z.object({
      expiry: optional(duration(), 'Time the token is good for, for example `"720h"`.', { wireDefault: "175200h" }),
    }),
    status: 200,
    answer: z.object({ token: required(z.string(), "The token; it is shown only once.", { secret: true }) }),
    failures: {
      400: "bad expiry",
      403: "the App is another organization's",
      404: "no such App",
      422: "the App has as many tokens as it may",
    },
    repeat: "once",
  },
});
