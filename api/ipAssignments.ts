// IP addresses of an App (docs/interface.md#ip-addresses).
import { z } from "zod";
import { appNameParam, ipParam, regionCode } from "./names.ts";
import { operations } from "./operation.ts";
import { needed, optional, required } from "./schema.ts";

/** Kinds of addresses. */
export const ipType = z.enum(["v4", "v6", "shared_v4", "private_v6", "egress_v4", "egress_v6", "egress_pair"]);

/** An IP address as the service returns it. */
export const ipAssignment = z.object({
  ip: optional(z.string().nullable(), "The address; null in the answer to an `egress_pair`."),
  region: optional(z.string(), "Region the address leads to; `global` when it leads to all."),
  shared: optional(z.boolean(), "Whether other Apps share the address."),
  service_name: optional(z.string(), "Service the address is for."),
  created_at: optional(z.string(), "RFC 3339 time of the assignment."),
  egress: optional(z.boolean(), "Whether it is for connections the App opens."),
  network: optional(
    z
      .object({
        name: optional(z.string(), "Name of the private network."),
        org_slug: optional(z.string(), "Organization that owns it."),
      })
      .nullable(),
    "Private network of a `private_v6`, or null.",
  ),
  ip_pair: optional(
    z.object({
      v4: optional(z.string(), "IPv4 address of the pair."),
      v6: optional(z.string(), "IPv6 address of the pair."),
    }),
    "Both addresses of an `egress_pair`; only in the answer to the assignment.",
  ),
});

/** Body of a request that assigns an address. */
export const assignIp = z.object({
  type: needed(ipType, "Kind of address. Required in practice."),
  region: optional(regionCode.or(z.literal("global")), "Region the address leads to; all when left out."),
  network: optional(z.string(), "For `private_v6`: the private network; the App's own when left out."),
  org_slug: optional(z.string(), "For `private_v6`: the organization that owns the network."),
  service_name: optional(z.string(), "Service the address is for."),
});

const path = "/v1/apps/{app_name}/ip_assignments";

export const ipAssignments = operations("ipAssignments", {
  list: {
    method: "GET",
    path,
    source: "docs/interface.md#ip-addresses",
    summary: "Lists the IP addresses of an App.",
    params: z.object({ app_name: appNameParam }),
    status: 200,
    answer: z.object({ ips: required(z.array(ipAssignment), "The addresses, oldest first.") }),
    failures: { 404: "no such App" },
    repeat: "read",
  },
  assign: {
    method: "POST",
    path,
    source: "docs/interface.md#ip-addresses",
    summary: "Assigns an IP address to an App.",
    params: z.object({ app_name: appNameParam }),
    body: assignIp,
    status: 200,
    answer: ipAssignment,
    failures: {
      400: "bad field",
      404: "no such App or organization",
      422: "the App has its shared address already, or too many; no such region; no address is free",
    },
    repeat: "once",
  },
  release: {
    method: "DELETE",
    path: `${path}/{ip}`,
    source: "docs/interface.md#ip-addresses",
    summary: "Releases an IP address of an App.",
    params: z.object({ app_name: appNameParam, ip: ipParam }),
    status: 204,
    failures: { 404: "no such App, or not its address" },
    repeat: "repeatable",
  },
});
