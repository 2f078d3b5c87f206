// provider/schema.json, Pulumi's package schema, from the resource declarations.
import { configKeys } from "../../provider/core/config.ts";
import { kindOf, type Resource } from "../../provider/core/resource.ts";
import { resources } from "../../provider/resources/index.ts";
import type { Field, Shape } from "../../api/schema.ts";

/** A property in Pulumi's package schema, as far as we use it. */
export interface Property {
  type?: "string" | "integer" | "number" | "boolean" | "array" | "object";
  $ref?: string;
  items?: Property;
  additionalProperties?: Property;
  oneOf?: Property[];
  description?: string;
  default?: unknown;
  defaultInfo?: { environment: string[] };
  secret?: boolean;
  willReplaceOnChanges?: boolean;
  deprecationMessage?: string;
}

/** An object or enum type. */
export interface TypeSpec {
  type: string;
  description?: string;
  properties?: Record<string, Property>;
  required?: string[];
  enum?: { value: string }[];
}

/** A resource. */
export interface ResourceSpec {
  description: string;
  properties: Record<string, Property>;
  required: string[];
  inputProperties: Record<string, Property>;
  requiredInputs: string[];
}

/** The package. */
export interface PackageSpec {
  [key: string]: unknown;
  types: Record<string, TypeSpec>;
  resources: Record<string, ResourceSpec>;
}

const pascal = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const singular = (name: string): string =>
  name
    .replace(/ies$/, "y")
    .replace(/sses$/, "ss")
    .replace(/(?<=[^s])s$/, "");
const token = (name: string): string => `machines:index:${name}`;

/** The package schema for a version. */
export function packageSchema(version: string): PackageSpec {
  const types: Record<string, TypeSpec> = {};
  const seen = new Map<string, Shape>();
  const made = new Map<Shape["schema"], string>();

  const claim = (name: string, shape: Shape): string => {
    const other = seen.get(name);
    if (other && other.schema !== shape.schema)
      throw new Error(`two types would be named ${name}; give one a typeName`);
    seen.set(name, shape);
    return name;
  };

  const typeOf = (field: Field, name: string): Property => {
    const { shape } = field;
    if (shape.kind === "array") return { type: "array", items: typeOf(shape.item, singular(name)) };
    if (shape.kind === "record") return { type: "object", additionalProperties: typeOf(shape.value, singular(name)) };
    if (shape.kind === "object") {
      const known = made.get(shape.schema);
      const given = field.meta.typeName ?? name;
      if (known === undefined) {
        made.set(shape.schema, claim(given, shape));
        types[token(given)] = objectType(shape, given);
      }
      return { $ref: `#/types/${token(known ?? given)}` };
    }
    if (shape.values) {
      types[token(claim(name, shape))] = { type: "string", enum: shape.values.map((value) => ({ value })) };
      return { $ref: `#/types/${token(name)}` };
    }
    if (shape.type === "stringOrBoolean") return { oneOf: [{ type: "string" }, { type: "boolean" }] };
    return shape.type === "any" ? { $ref: "pulumi.json#/Any" } : { type: shape.type };
  };

  const property = (field: Field, name: string): Property => {
    const { description, secret, deprecationMessage } = field.meta;
    const standard = field.default;
    return {
      ...typeOf(field, name),
      ...(description === undefined ? {} : { description: describe(field) }),
      ...(standard === undefined ? {} : { default: standard }),
      ...(secret ? { secret } : {}),
      ...(deprecationMessage === undefined ? {} : { deprecationMessage }),
    };
  };

  const objectType = (shape: Extract<Shape, { kind: "object" }>, name: string): TypeSpec => {
    const entries = Object.entries(shape.fields);
    // The configuration of a Machine is the Machine: its parts are named MachineService, not MachineConfigService.
    const base = name.replace(/Config$/, "") || name;
    return {
      type: "object",
      properties: Object.fromEntries(entries.map(([key, field]) => [key, property(field, base + pascal(key))])),
      required: entries.filter(([, field]) => !field.optional).map(([key]) => key),
    };
  };

  const resourceSpec = (resource: Resource): ResourceSpec => {
    const inputs = Object.entries(resource.inputFields);
    const replacing = new Set(resource.replaceOn.filter((path) => !path.includes(".")));
    const inputProperties = Object.fromEntries(
      inputs.map(([key, field]) => [
        key,
        {
          ...property(field, resource.name + pascal(key)),
          ...(replacing.has(key) ? { willReplaceOnChanges: true } : {}),
        },
      ]),
    );
    const outputs = Object.entries(resource.outputFields);
    const properties = {
      ...Object.fromEntries(Object.entries(inputProperties).map(([key, { default: _, ...rest }]) => [key, rest])),
      ...Object.fromEntries(outputs.map(([key, field]) => [key, property(field, resource.name + pascal(key))])),
    };
    const always = [
      ...inputs.filter(([, field]) => !field.optional || field.default !== undefined),
      ...outputs.filter(([, field]) => !field.optional),
    ];
    return {
      description:
        resource.description === undefined ? resource.summary : `${resource.summary}\n\n${resource.description}`,
      properties,
      required: [...new Set(always.map(([key]) => key))],
      inputProperties,
      requiredInputs: inputs
        .filter(([, field]) => !field.optional && field.default === undefined && kindOf(field) === "default")
        .map(([key]) => key),
    };
  };

  const variables = Object.fromEntries(
    Object.entries(configKeys).map(([key, spec]) => [
      key,
      {
        type: spec.type,
        description: spec.description,
        defaultInfo: { environment: [spec.environment] },
        ...("default" in spec ? { default: spec.default } : {}),
        ...("secret" in spec ? { secret: true } : {}),
      },
    ]),
  );

  const resourceSpecs = Object.fromEntries(
    Object.values(resources).map((resource) => [token(resource.name), resourceSpec(resource)]),
  );
  return {
    name: "machines",
    displayName: "Machines",
    version,
    description: "Apps, Machines and volumes of the Machines Control Service.",
    keywords: ["pulumi", "machines", "category/infrastructure", "kind/native"],
    license: "Apache-2.0",
    config: { variables },
    provider: { description: "How the provider reaches the service.", inputProperties: variables },
    types: Object.fromEntries(Object.entries(types).sort(([a], [b]) => (a < b ? -1 : 1))),
    resources: resourceSpecs,
  };
}

/** The description with the documented default of a field of the wire. */
function describe({ meta: { description, wireDefault } }: Field): string {
  const text = description ?? "";
  return wireDefault === undefined ? text : `${text} Default: ${JSON.stringify(wireDefault)}.`;
}
