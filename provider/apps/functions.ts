// The functions about Apps.
import { z } from "zod";
import { ipAssignment } from "../../api/ipAssignments.ts";
import { appName } from "../../api/names.ts";
import { named, optional, required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { everyApp } from "../client/pages.ts";
import { defineFunction, listFunction } from "../core/function.ts";
import { camelObject, inApp, ofOrganization } from "../shared/fields.ts";
import { appUrls } from "./urls.ts";

// docs/interface.md#apps
const appDetails = z.object({
  name: required(z.string(), "Name of the App."),
  appId: optional(z.string(), "Opaque identifier within the platform."),
  organization: optional(z.string(), "Slug of the organization that owns the App."),
  network: optional(z.string(), "IPv6 private network the App is on."),
  networkCidr: optional(z.string(), "Address range of that network."),
  status: optional(z.string(), "`pending` (no Machine yet), `deployed` or `suspended`."),
  machineCount: optional(z.int(), "Number of Machines."),
  volumeCount: optional(z.int(), "Number of volumes."),
  cnameTarget: optional(z.string(), "Host name a CNAME record for the App points at."),
  role: optional(z.string(), "Role of the App, for example `postgres_cluster`."),
  ...appUrls,
});

const toAppDetails = (live: AnswerOf<"apps", "get">) => ({
  name: live.name,
  appId: live.id,
  organization: live.organization?.slug,
  network: live.network,
  networkCidr: live.networkCidr,
  status: live.status,
  machineCount: live.machineCount,
  volumeCount: live.volumeCount,
  cnameTarget: live.cnameTarget,
  role: live.appRole,
  httpUrl: live.httpUrl,
  httpsUrl: live.httpsUrl,
});

export const getApp = defineFunction({
  name: "getApp",
  summary: "Looks up an App.",
  inputs: z.object({ name: required(appName, "Name of the App: the `id` of an App.") }),
  outputs: appDetails,
  call: async ({ inputs: { name }, api }) => toAppDetails(await api.apps.get({ appName: name })),
});

export const getApps = listFunction({
  name: "getApps",
  summary: "Lists the Apps of an organization.",
  inputs: { ...ofOrganization, role: optional(z.string(), "Only Apps of this role.") },
  items: ["apps", "The Apps.", named("AppDetails", appDetails)],
  list: async ({ organization, role }, api) =>
    (await everyApp(api, { orgSlug: organization ?? api.config.organization, appRole: role })).map(toAppDetails),
});

// docs/interface.md#ip-addresses
const ipDetails = z.object({
  id: required(z.string(), "Id of the address, `app/ip`, as `pulumi import` takes it."),
  ip: required(z.string(), "The address."),
  ...camelObject(ipAssignment).pick({ region: true, shared: true, serviceName: true, createdAt: true, egress: true })
    .shape,
  network: named(
    "IpNetworkDetails",
    optional(camelObject(ipAssignment.shape.network.unwrap().unwrap()), "Private network of a `private_v6`."),
  ),
});

export const getIpAssignments = listFunction({
  name: "getIpAssignments",
  summary: "Lists the IP addresses of an App.",
  inputs: inApp,
  items: ["ips", "The addresses, oldest first.", named("IpAssignmentDetails", ipDetails)],
  list: async ({ app }, api) =>
    (await api.ipAssignments.list({ appName: app })).ips.flatMap(({ ip, network, ipPair: _, ...live }) =>
      ip == null ? [] : [{ ...live, id: `${app}/${ip}`, ip, network: network ?? undefined }],
    ),
});
