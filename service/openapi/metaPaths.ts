// The description of the routes that are not part of the interface (http/metaRoutes.ts).
import type { DescribedOperation } from "./types.ts";

const open = { security: [], tags: ["service"] };
const error = { $ref: "#/components/schemas/Error" };
const refused = { content: { "application/json": { schema: error } } };
const foreign = {
  description: "the host name is not allowed, or the request comes from a page of another origin",
  ...refused,
};
const status = {
  type: "object",
  properties: { status: { const: "ok", description: "Always `ok`." } },
  required: ["status"],
  additionalProperties: false,
};
const well = { description: "Done.", content: { "application/json": { schema: status } } };

/** Their descriptions. */
export const metaOperations: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>> = {
  "/healthz": {
    get: {
      ...open,
      operationId: "service.health",
      summary: "Answers while the process serves requests.",
      responses: { 200: well, 403: foreign },
    },
  },
  "/readyz": {
    get: {
      ...open,
      operationId: "service.ready",
      summary: "Shows whether the service accepts requests: its store can be written, and it is not closing.",
      responses: {
        200: well,
        403: foreign,
        503: { description: "the service is shutting down, or its store cannot be written", ...refused },
      },
    },
  },
  "/metrics": {
    get: {
      operationId: "service.metrics",
      tags: ["service"],
      summary: "Shows metrics for Prometheus; needs a token of organization `personal`.",
      responses: {
        200: { description: "Done.", content: { "text/plain": { schema: { type: "string" } } } },
        401: { description: "no token, or an unknown one", ...refused },
        403: foreign,
      },
    },
  },
};
