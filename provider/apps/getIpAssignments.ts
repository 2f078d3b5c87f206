// The IP addresses of an App (docs/interface.md#ip-addresses).
import { z } from "zod";
import { ipAssignment } from "../../api/ipAssignments.ts";
import { named, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { camelObject, inApp } from "../shared/fields.ts";

const wire = camelObject(ipAssignment);

const ipDetails = z.object({
  id: required(z.string(), "Id of the address, `app/ip`, as `pulumi import` takes it."),
  ip: required(z.string(), "The address."),
  ...wire.pick({ region: true, shared: true, serviceName: true, createdAt: true, egress: true }).shape,
  network: named(
    "IpNetworkDetails",
    optional(camelObject(ipAssignment.shape.network.unwrap().unwrap()), "Private network of a `private_v6`."),
  ),
});

export const getIpAssignments = defineFunction({
  name: "getIpAssignments",
  summary: "Lists the IP addresses of an App.",
  inputs: z.object(inApp),
  outputs: z.object({
    ips: required(z.array(named("IpAssignmentDetails", ipDetails)), "The addresses, oldest first."),
  }),

  async call({ inputs: { app }, api }) {
    const { ips } = await api.ipAssignments.list({ appName: app });
    return {
      ips: ips.flatMap(({ ip, network, ipPair: _, ...live }) =>
        ip == null ? [] : [{ ...live, id: `${app}/${ip}`, ip, network: network ?? undefined }],
      ),
    };
  },
});
