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

/** Every operation as a union: the type of `contract[group][method]`. */
type Rows = {
  [Group in keyof typeof contract]: {
    [Method in keyof (typeof contract)[Group] & string]: {
      readonly id: `${Group}.${Method}`;
      readonly row: (typeof contract)[Group][Method];
    };
  }[keyof (typeof contract)[Group] & string];
}[keyof typeof contract];

/** Name of an operation that accepts a body. */
export type OperationWithBody = Extract<Rows, { readonly row: { readonly body: unknown } }>["id"];

/** Name of a parameter in the path of an operation. */
export type PathParameter = Rows extends infer One
  ? One extends { readonly row: { readonly params: { readonly shape: infer Shape } } }
    ? keyof Shape & string
    : never
  : never;
