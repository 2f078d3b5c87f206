import type { ResourceValidationPolicy } from "@pulumi/policy";
import { z } from "zod";
import { defineSettings } from "../core/settings.ts";
import { validateIpAssignment } from "../validators.ts";

const settings = defineSettings({
  allow: z
    .array(z.enum(["v4", "shared_v4"]))
    .default([])
    .describe("Kinds of public IPv4 address that are allowed: `shared_v4`, which costs nothing, or `v4`."),
});

/** A public IPv4 address has to be a conscious decision. */
export const noPublicIpv4: ResourceValidationPolicy = {
  name: "no-public-ipv4",
  description: "No App has a public IPv4 address, unless it is allowed.",
  severity: "medium",
  remediationSteps:
    "Use an address of type `v6`, or `private_v6` if only your own network needs it; or add the kind to `allow`.",
  configSchema: settings.schema,
  validateResource: validateIpAssignment(({ type }, args, report) => {
    const { allow } = settings.of(args);
    if ((type === "v4" || type === "shared_v4") && !allow.includes(type))
      report(
        `type is "${type}", a public IPv4 address. Allowed are ${[...allow, "v6"].map((kind) => `"${kind}"`).join(", ")} and "private_v6".`,
      );
  }),
};
