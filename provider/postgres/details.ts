// Shared parts of the functions about Postgres (docs/interface.md#managed-postgres).
import { z } from "zod";
import { camelSchema } from "../../api/case.ts";
import { optional, required } from "../../api/schema.ts";

/** The cluster that a function reads. */
export const clusterInput = required(z.string(), "The cluster: the `id` of a PostgresCluster.", {
  format: "reference",
});

/** A type of the interface in the form of programs, with its own name. */
export const detailsOf = <S extends z.ZodType>(typeName: string, schema: S) => camelSchema(schema).meta({ typeName });

/** Apps to which a cluster is attached. */
export const attachedAppsField = required(z.array(z.string()), "Names of the Apps it is attached to.");

/** Their names. */
export const attachedNames = (apps: readonly { readonly name?: string | undefined }[] | undefined): string[] =>
  (apps ?? []).flatMap(({ name }) => (name === undefined ? [] : [name]));

/** Outputs that a cluster and its entry in a list share. */
export const summaryFields = {
  clusterId: required(z.string(), "Identifier."),
  name: required(z.string(), "Name."),
  region: optional(z.string(), "Region."),
  plan: optional(z.string(), "Size."),
  status: optional(z.string(), "`creating`, `initializing`, `ready`, `deleting`, `deleted` or `failed`."),
  createdAt: optional(z.string(), "RFC 3339 time of creation."),
  attachedApps: attachedAppsField,
};
