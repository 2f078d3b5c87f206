// The wire contract: every operation, by group.
import { apps } from "./apps.ts";
import { certificates } from "./certificates.ts";
import { ipAssignments } from "./ipAssignments.ts";
import { machines } from "./machines.ts";
import { orgs } from "./orgs.ts";
import { platform } from "./platform.ts";
import { postgres } from "./postgres.ts";
import { secretKeys } from "./secretKeys.ts";
import { secrets } from "./secrets.ts";
import { tokens } from "./tokens.ts";
import { volumes } from "./volumes.ts";

/** Every operation of the interface, as `contract.group.method`. */
export const contract = {
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

/** Name of an operation: `machines.create`. */
export type OperationId = {
  [Group in keyof typeof contract]: `${Group}.${keyof (typeof contract)[Group] & string}`;
}[keyof typeof contract];
