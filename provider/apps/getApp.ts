// An existing App (docs/interface.md#apps).
import { z } from "zod";
import { optional, required } from "../../api/schema.ts";
import { appName } from "../../api/names.ts";
import type { AnswerOf } from "../client/api.ts";
import { defineFunction } from "../core/function.ts";

const inputs = z.object({
  name: required(appName, "Name of the App: the `id` of an App."),
});

/** Where an App can be opened. */
export const appUrls = {
  httpUrl: optional(
    z.string(),
    "Where the computer of the service opens the App's HTTP services. Only of a service whose Machines run on its computer.",
  ),
  httpsUrl: optional(z.string(), "The same for HTTPS services."),
};

/** An App in the answers of functions. */
export const appDetails = z.object({
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

/** The outputs of functions about an App. */
export const toAppDetails = (live: AnswerOf<"apps", "get">) => ({
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
  inputs,
  outputs: appDetails,

  async call({ inputs: { name }, api }) {
    return toAppDetails(await api.apps.get({ appName: name }));
  },
});
