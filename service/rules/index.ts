// All rules by group. A missing one does not compile.
import type { contract } from "../../api/index.ts";
import { apps } from "./apps.ts";
import { certificates } from "./certificates.ts";
import { ipAssignments } from "./ipAssignments.ts";
import { machines } from "./machines.ts";
import { orgs } from "./orgs.ts";
import { platform } from "./platform.ts";
import { postgres } from "./postgres.ts";
import type { Rules } from "./rule.ts";
import { secretKeys } from "./secretKeys.ts";
import { secrets } from "./secrets.ts";
import { tokens } from "./tokens.ts";
import { volumes } from "./volumes.ts";

/** The rules of all rows of the contract. */
export const rules: { readonly [G in keyof typeof contract]: Rules<(typeof contract)[G]> } = {
  apps,
  ipAssignments,
  machines,
  certificates,
  volumes,
  secrets,
  secretKeys,
  orgs,
  platform,
  tokens,
  postgres,
};
