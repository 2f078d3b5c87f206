// Access tokens (docs/interface.md#organizations-and-tokens), from the platform's published description, because the
// specification omits them.
import { z } from "zod";
import { operations } from "./operation.ts";
import { optional, required } from "./schema.ts";

/** The permissions of a token; never the token itself. */
export const tokenInfo = z.object({
  token_id: optional(z.string(), "Identifier of the token. It gives no access."),
  org_slug: optional(z.string(), "Slug of the organization."),
  organization: optional(z.string(), "Display name of the organization."),
  apps: optional(z.array(z.string()), "Names of the Apps it is valid for; absent if it is valid for all of them."),
  user: optional(z.string(), "User it stands for, if it stands for one."),
  restricted_to_machine: optional(z.string(), "Machine it is valid for, if it is valid for only one."),
  source_machine_id: optional(z.string(), "Machine that sends the request, if it is one."),
});

export const tokens = operations("tokens", {
  current: {
    method: "GET",
    path: "/v1/tokens/current",
    source: "docs/interface.md#organizations-and-tokens",
    summary: "Shows the scope of the request's token.",
    params: z.object({}),
    status: 200,
    answer: z.object({ tokens: required(z.array(tokenInfo), "The token; several when a request carries several.") }),
    failures: {},
    repeat: "read",
  },
});
