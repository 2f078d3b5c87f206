// The clusters of an organization (docs/interface.md#managed-postgres).
import { z } from "zod";
import { named, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { attachedNames, summaryFields } from "./details.ts";

const inputs = z.object({
  organization: optional(z.string(), "Slug of the organization; the provider's `organization` when left out."),
  includeDeleted: z.boolean().default(false).describe("Whether deleted clusters are listed too."),
});

const summary = z.object({
  ...summaryFields,
  deletedAt: optional(z.string(), "RFC 3339 time of deletion."),
});

export const getPostgresClusters = defineFunction({
  name: "getPostgresClusters",
  summary: "Lists the Postgres clusters of an organization.",
  inputs,
  outputs: z.object({
    clusters: required(z.array(named("PostgresClusterSummary", summary)), "The clusters."),
  }),

  async call({ inputs: { organization, includeDeleted }, api }) {
    const orgSlug = organization ?? api.config.organization;
    const { data } = await api.postgres.list({ orgSlug, includeDeleted: includeDeleted || undefined });
    return {
      clusters: data.map(({ id, attachedApps, ...rest }) => ({
        ...rest,
        clusterId: id,
        attachedApps: attachedNames(attachedApps),
      })),
    };
  },
});
