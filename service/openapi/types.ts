// Types of an OpenAPI document, as far as this service uses them.
import type { JsonSchema } from "./jsonSchema.ts";

/** An OpenAPI document. */
export interface OpenApi {
  readonly openapi: string;
  readonly info: Readonly<Record<string, unknown>>;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> } & Readonly<Record<string, unknown>>;
}

/** An operation in an OpenAPI document. */
export interface DescribedOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Described>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

/** A parameter of the path, the query or the headers. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly [more: string]: unknown;
}

/** A body of one media type. */
export interface Media {
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

/** An answer of one status. */
export interface Described {
  readonly description: string;
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly links?: Readonly<Record<string, Link>>;
}

/** A link from an answer to a following operation. */
export interface Link {
  readonly operationId: string;
  readonly parameters: Readonly<Record<string, string>>;
}
