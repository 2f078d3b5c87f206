// The machine-readable description of the service: OpenAPI 3.1, built from the rows of the contract.
import type { z } from "zod";
import { app, createApp, createdApp } from "../../api/apps.ts";
import {
  certificateDetail,
  certificateEntry,
  certificateSummary,
  createAcme,
  createCustom,
  dnsRecords,
  dnsRequirements,
} from "../../api/certificates.ts";
import { contract } from "../../api/index.ts";
import { assignIp, ipAssignment } from "../../api/ipAssignments.ts";
import { machineConfig } from "../../api/machineConfig.ts";
import { checkStatus, createMachine, lease, machine, machineEvent, updateMachine } from "../../api/machines.ts";
import type { Operation } from "../../api/operation.ts";
import { orgMachine, orgVolume } from "../../api/orgs.ts";
import { getPlacements, placement, region } from "../../api/platform.ts";
import { createPostgresCluster, postgresCluster, postgresClusterSummary } from "../../api/postgres.ts";
import { fieldOf, type Field } from "../../api/schema.ts";
import { secretKey } from "../../api/secretKeys.ts";
import { secret } from "../../api/secrets.ts";
import { tokenInfo } from "../../api/tokens.ts";
import { createVolume, volume, volumeSnapshot } from "../../api/volumes.ts";
import { bodyLimits, queryLimits } from "../validation/bodyLimits.ts";
import { isStrict } from "../validation/validate.ts";
import { bodySchema, jsonSchema, orEmpty, type Components, type JsonSchema } from "./jsonSchema.ts";
import { componentExamples, parameterExamples, requestExamples } from "./examples.ts";
import { metaOperations } from "./metaPaths.ts";
import type { Described, DescribedOperation, Link, Media, OpenApi, Parameter } from "./types.ts";

const named: Readonly<Record<string, z.ZodType>> = {
  App: app,
  CreatedApp: createdApp,
  CreateAppRequest: createApp,
  IpAssignment: ipAssignment,
  AssignIpRequest: assignIp,
  Machine: machine,
  MachineConfig: machineConfig,
  MachineEvent: machineEvent,
  CheckStatus: checkStatus,
  CreateMachineRequest: createMachine,
  UpdateMachineRequest: updateMachine,
  Lease: lease,
  CertificateDetail: certificateDetail,
  CertificateSummary: certificateSummary,
  CertificateEntry: certificateEntry,
  DnsRequirements: dnsRequirements,
  DnsRecords: dnsRecords,
  CreateAcmeCertificateRequest: createAcme,
  CreateCustomCertificateRequest: createCustom,
  Volume: volume,
  VolumeSnapshot: volumeSnapshot,
  CreateVolumeRequest: createVolume,
  Secret: secret,
  SecretKey: secretKey,
  OrgMachine: orgMachine,
  OrgVolume: orgVolume,
  Region: region,
  Placement: placement,
  GetPlacementsRequest: getPlacements,
  TokenInfo: tokenInfo,
  PostgresCluster: postgresCluster,
  PostgresClusterSummary: postgresClusterSummary,
  CreatePostgresClusterRequest: createPostgresCluster,
};

const tags: Readonly<Record<keyof typeof contract, string>> = {
  apps: "Apps hold everything else.",
  ipAssignments: "IP addresses of an App.",
  machines: "Machines of an App: lifecycle, leases, metadata, commands and waits.",
  certificates: "TLS certificates of an App's hostnames.",
  volumes: "Volumes of an App and their snapshots.",
  secrets: "Secrets of an App.",
  secretKeys: "Keys of an App, which are used by name and never leave the service.",
  orgs: "Machines and volumes of an organization, page by page.",
  platform: "Regions and simulated placements.",
  tokens: "Scope of the caller's token.",
  postgres: "Managed Postgres clusters.",
};

const text = { type: "string" };
const closed = { type: "object", additionalProperties: false };

const errors: Readonly<Record<string, JsonSchema>> = {
  Error: {
    ...closed,
    description: "Why a request failed.",
    properties: {
      error: { ...text, description: "One sentence." },
      status: { ...text, description: "A code for programs, such as `insufficient_capacity` or `name_taken`." },
      details: { type: "object", description: "More details.", deprecated: true },
    },
    required: ["error"],
  },
  PostgresError: {
    ...closed,
    description: "Why a request about a cluster failed.",
    properties: { error: { ...text, description: "One sentence." } },
    required: ["error"],
  },
  LeaseConflict: {
    ...closed,
    description: "Another client holds the lease.",
    properties: {
      status: { const: "error", description: "Always `error`." },
      message: { ...text, description: "The holder and the expiry of the lease." },
      code: { const: "invalid", description: "Always `invalid`." },
    },
    required: ["status", "message", "code"],
  },
};

const json = (schema: JsonSchema, example?: unknown): Readonly<Record<string, Media>> => ({
  "application/json": { schema, ...(example === undefined ? {} : { example }) },
});

/** The schema of an error of an operation. */
const errorRef = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

const retryAfter = {
  "retry-after": { description: "Seconds to wait before a retry.", schema: { type: "integer" } },
};

/** Answers that any operation may give, in addition to those of its row. */
function generalFailures({ id, method, body }: Operation): Readonly<Record<number, string>> {
  const postgres = id.startsWith("postgres.");
  return {
    ...(postgres ? { 422: "a parameter is invalid" } : { 400: "a parameter or the body is invalid" }),
    ...(postgres && body ? { 400: "the body is not JSON" } : {}),
    401: "no token, or an unknown one",
    403: "it belongs to another organization, or the token does not allow this",
    ...(method === "GET" ? {} : { 413: "the body is larger than 4 MiB" }),
    429: "too many requests",
    503: "the service is shutting down, or its store cannot be written",
  };
}

function failures(row: Operation): Record<string, Described> {
  const usual = row.id.startsWith("postgres.") ? "PostgresError" : "Error";
  const all = { ...generalFailures(row), ...row.failures };
  return Object.fromEntries(
    Object.entries(all).map(([status, description]) => {
      const body = row.id === "machines.acquireLease" && status === "409" ? "LeaseConflict" : usual;
      const headers = status === "429" || status === "503" ? { headers: retryAfter } : {};
      return [status, { description, content: json(errorRef(body)), ...headers }];
    }),
  );
}

const nonceHeader = {
  name: "svc-machine-lease-nonce",
  in: "header",
  schema: text,
} as const;

const nonceTexts: Readonly<Record<string, string>> = {
  "machines.acquireLease": "Nonce of the lease to refresh; empty or absent to take a new lease.",
  "machines.releaseLease": "Nonce of the lease to release.",
};

/**
 * The schema of a parameter of the query. Generators give up on a flag that may also be a text or a number, so it is described
 * as a boolean, and an empty value, which counts as absent, is not described. `lenient` describes all that is accepted.
 */
function asQueried(row: Operation, schema: JsonSchema, { lenient }: Components): JsonSchema {
  if (schema["type"] === "array") {
    const items = schema["items"] as JsonSchema;
    // An empty list parses as a list of one empty value.
    return { ...schema, items: lenient ? orEmpty(items) : items, maxItems: queryLimits.items };
  }
  if (!lenient || isStrict(row)) return schema;
  return schema["type"] === "boolean" ? { anyOf: [schema, { enum: ["", 0, 1] }] } : orEmpty(schema);
}

/** One parameter of the path or the query. */
function parameter(
  row: Operation,
  place: "path" | "query",
  name: string,
  field: Field,
  components: Components,
): Parameter {
  const { description = "", deprecationMessage, wireDefault } = field.meta;
  const isMap = field.shape.kind === "record";
  const described = isMap ? text : jsonSchema(field, "answer", components);
  const schema = isMap || place === "path" ? described : asQueried(row, described, components);
  const example = parameterExamples[name];
  return {
    // Each entry of a map is a separate parameter, whose name cannot be described.
    name: isMap ? `${name}.{key}` : name,
    in: place,
    required: place === "path" || !field.optional,
    description,
    schema: wireDefault === undefined ? schema : { ...schema, default: wireDefault },
    ...(place === "path" && example !== undefined ? { example } : {}),
    ...(deprecationMessage === undefined ? {} : { deprecated: true }),
    ...(field.shape.kind === "array" ? { style: "form", explode: true } : {}),
  };
}

function parameters(row: Operation, components: Components): Parameter[] {
  const of = (place: "path" | "query", schema: z.ZodType | undefined): Parameter[] => {
    const shape = schema && fieldOf(schema).shape;
    const fields = shape?.kind === "object" ? Object.entries(shape.fields) : [];
    return fields.map(([name, field]) => parameter(row, place, name, field, components));
  };
  const nonce =
    row.lease === undefined
      ? []
      : [
          {
            ...nonceHeader,
            required: row.id === "machines.releaseLease",
            description: nonceTexts[row.id] ?? "Nonce of the lease; required while a lease is held.",
          },
        ];
  return [...of("path", row.params), ...of("query", row.query), ...nonce];
}

/** The field that names the created object in the paths of other operations. */
const flows: Readonly<Record<string, readonly [parameter: string, expression: string]>> = {
  "apps.create": ["app_name", "$request.body#/name"],
  "ipAssignments.assign": ["ip", "$response.body#/ip"],
  "machines.create": ["machine_id", "$response.body#/id"],
  "machines.setMetadataKey": ["key", "$request.path.key"],
  "certificates.createAcme": ["hostname", "$response.body#/hostname"],
  "certificates.createCustom": ["hostname", "$response.body#/hostname"],
  "volumes.create": ["volume_id", "$response.body#/id"],
  "secrets.set": ["secret_name", "$request.path.secret_name"],
  "secretKeys.set": ["secret_name", "$request.path.secret_name"],
  "secretKeys.generate": ["secret_name", "$request.path.secret_name"],
  "postgres.create": ["postgres_cluster_id", "$response.body#/data/id"],
  "postgres.attach": ["app_name", "$response.body#/data/app_name"],
  "postgres.createDatabase": ["database", "$response.body#/data/name"],
  "postgres.createUser": ["username", "$response.body#/data/username"],
};

const parametersIn = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");

const rows: readonly Operation[] = Object.values(contract).flatMap((group): Operation[] => Object.values(group));

/** Links from a created object to the operations on it. */
function links(row: Operation): Record<string, Link> {
  const [created, expression] = flows[row.id] ?? [];
  if (created === undefined || expression === undefined) return {};
  const known = new Map([
    ...parametersIn(row.path).map((name): [string, string] => [name, `$request.path.${name}`]),
    [created, expression] as const,
  ]);
  const group = row.id.split(".")[0];
  const next = rows.filter(({ id, path }) => {
    const needed = parametersIn(path);
    const concerned = created === "app_name" || id.startsWith(`${group}.`);
    return id !== row.id && concerned && needed.includes(created) && needed.every((name) => known.has(name));
  });
  return Object.fromEntries(
    next.map(({ id, path }) => [
      id,
      {
        operationId: id,
        parameters: Object.fromEntries(parametersIn(path).map((name) => [name, known.get(name) ?? ""])),
      },
    ]),
  );
}

const cursorHeaders = {
  "svc-next-cursor": { description: "Cursor of the next page; absent on the last one.", schema: text },
};

function successes(row: Operation, components: Components): Record<string, Described> {
  const next = links(row);
  const answered: Omit<Described, "description"> = {
    ...(row.answer ? { content: json(bodySchema(row.answer, "answer", components)) } : {}),
    ...(row.id === "machines.list" ? { headers: cursorHeaders } : {}),
    ...(Object.keys(next).length > 0 ? { links: next } : {}),
  };
  const others = Object.entries(row.otherSuccesses ?? {});
  return Object.fromEntries(
    [[String(row.status), "Done."] as const, ...others].map(([status, description]) => [
      status,
      { description, ...answered },
    ]),
  );
}

function described(row: Operation, components: Components): DescribedOperation {
  const all = parameters(row, components);
  const content = row.body && json(bodySchema(row.body, "request", components), requestExamples[row.id]);
  return {
    operationId: row.id,
    tags: [row.id.split(".")[0] ?? ""],
    summary: row.summary,
    ...(row.held ? { description: "The request is held until it can be answered, for up to 60 seconds." } : {}),
    ...(all.length > 0 ? { parameters: all } : {}),
    ...(content ? { requestBody: { required: row.bodyOptional !== true, content } } : {}),
    responses: { ...successes(row, components), ...failures(row) },
  };
}

/**
 * The description of the service. A `strict` one refuses unknown fields. A `lenient` one also describes the other spellings of
 * values in the query and of absent texts, for tests that look for what should have been refused.
 */
export function openapi({
  strict,
  lenient = false,
}: {
  readonly strict: boolean;
  readonly lenient?: boolean;
}): OpenApi {
  const names = new Map(Object.entries(named).map(([name, schema]) => [schema.def as unknown, name]));
  const components: Components = { names, schemas: { ...errors }, strict, lenient };
  const paths: Record<string, Record<string, DescribedOperation>> = {};
  for (const row of rows) (paths[row.path] ??= {})[row.method.toLowerCase()] = described(row, components);
  const schemas = Object.entries(components.schemas)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => {
      const example = componentExamples[name];
      return [name, example === undefined ? schema : { ...schema, examples: [example] }] as const;
    });
  return {
    openapi: "3.1.0",
    info: {
      title: "Machines Control Service",
      version: "1.0",
      summary: "Runs and manages Machines and what belongs to them.",
      description: `A body holds at most ${bodyLimits.values} values, ${bodyLimits.levels} levels deep; an object in it has at most ${bodyLimits.entries} fields.`,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }],
    tags: [
      ...Object.entries(tags).map(([name, description]) => ({ name, description })),
      { name: "service", description: "Health, metrics and description of the service." },
    ],
    paths: { ...paths, ...metaOperations },
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "An access token." } },
      schemas: Object.fromEntries(schemas),
    },
  } as OpenApi;
}
