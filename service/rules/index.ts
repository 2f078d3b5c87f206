// Every rule, by group. The type makes a missing one a compile error.
import type { contract } from "../../api/index.ts";
import { apps } from "./apps.ts";
import { machines } from "./machines.ts";
import { platform } from "./platform.ts";
import type { Rules } from "./rule.ts";
import { volumes } from "./volumes.ts";

/** The behaviour behind every row of the contract. */
export const rules: { readonly [G in keyof typeof contract]: Rules<(typeof contract)[G]> } = {
  apps,
  machines,
  volumes,
  platform,
};
