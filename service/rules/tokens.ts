// The token of the request (docs/interface.md#organizations-and-tokens).
import type { contract } from "../../api/index.ts";
import { ownApps } from "../store/tokens.ts";
import { callerOrg } from "./find.ts";
import type { Rules } from "./rule.ts";

/** The rules of the token operations. */
export const tokens: Rules<typeof contract.tokens> = {
  // ASSUMED: every token may show itself, of any role and scope. The answer has its id, its organization,
  // and its Apps if it is restricted to some; tokens belong to no user and no Machine.
  current(input) {
    const { context, caller } = input;
    const { slug, name } = callerOrg(input);
    const apps = ownApps(context.store, caller);
    return {
      tokens: [
        {
          token_id: caller.id,
          org_slug: slug,
          organization: name,
          ...(apps && { apps: apps.map((app) => app.name) }),
        },
      ],
    };
  },
};
