// provider/schema.json, Pulumi's package schema, from the resource declarations.
import { configKeys } from "../../provider/client/config.ts";
import { kindOf, type Resource } from "../../provider/core/resource.ts";
import type { Component, Method } from "../../provider/core/component.ts";
import type { MachinesFunction } from "../../provider/core/function.ts";
import { components as allComponents, functions, resources } from "../../provider/registry.ts";
import { filtersOf } from "../../provider/plugin/list.ts";

import type { Field, Shape } from "../../api/schema.ts";
import { enumName } from "./enumName.ts";
import { languages, packageInfo } from "./packageInfo.ts";

/** Key of the values of today, for an input that takes others as well. A symbol: no JSON has it. */
export const openValues: unique symbol = Symbol("open values");

/** A property in Pulumi's package schema, as far as we use it. */
export interface Property {
  readonly [openValues]?: readonly string[];
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
  language?: { readonly csharp: { readonly name: string } };
}

/** An object or enum type. */
export interface TypeSpec {
  type: string;
  description?: string;
  properties?: Record<string, Property>;
  required?: string[];
  enum?: { name: string; value: string }[];
}

/** A resource. */
export interface ResourceSpec {
  description: string;
  properties: Record<string, Property>;
  required: string[];
  inputProperties: Record<string, Property>;
  requiredInputs: string[];
  listInputs?: { type: "object"; properties: Record<string, Property> };
  aliases?: { type: string }[];
  isComponent?: true;
  /** Tokens of the methods, by name. */
  methods?: Record<string, string>;
}

/** A function. */
export interface FunctionSpec {
  description: string;
  inputs: { type: "object"; properties: Record<string, Property>; required: string[] };
  outputs: { type: "object"; properties: Record<string, Property>; required: string[] };
}

/** The package. */
export interface PackageSpec {
  [key: string]: unknown;
  config: { variables: Record<string, Property> };
  provider: { description: string; inputProperties: Record<string, Property> };
  types: Record<string, TypeSpec>;
  resources: Record<string, ResourceSpec>;
  functions: Record<string, FunctionSpec>;
}

const pascal = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const singular = (name: string): string =>
  name
    .replace(/ies$/, "y")
    .replace(/sses$/, "ss")
    .replace(/(?<=[^s])s$/, "");
const token = (name: string): string => `machines:index:${name}`;

/** Names that Pulumi's generators reserve: in Go, `MachineState` is the lookup type of a Machine. */
const taken: Readonly<Record<string, string>> = { MachineState: "MachinePowerState" };

/** A use of a type. */
interface Use {
  /** Type and property. */
  readonly place: string;
  /** Whether the property is of the type itself, not a list or a map of it. */
  readonly single: boolean;
  readonly description: string | undefined;
}

/**
 * The package schema for a version.
 * @param components the components in it; the two SDKs for Node.js have classes of their own instead
 */
export function packageSchema(version: string, components = allComponents): PackageSpec {
  const types: Record<string, TypeSpec> = {};
  const seen = new Map<string, Shape>();
  // By definition: a schema described again in another place is the same type.
  const made = new Map<Shape["schema"]["def"], string>();
  const uses = new Map<string, Use[]>();

  const claim = (name: string, shape: Shape): string => {
    const other = seen.get(name);
    if (other && other.schema.def !== shape.schema.def)
      throw new Error(`two types would be named ${name}; give one a typeName`);
    seen.set(name, shape);
    return name;
  };

  const reference = (name: string, use: Use): Property => {
    uses.set(name, [...(uses.get(name) ?? []), use]);
    return { $ref: `#/types/${token(name)}` };
  };

  const typeOf = (field: Field, name: string, use: Use): Property => {
    const { shape } = field;
    const within = { ...use, single: false };
    if (shape.kind === "array")
      return { type: "array", items: typeOf(shape.item, field.meta.typeName ?? singular(name), within) };
    if (shape.kind === "record")
      return { type: "object", additionalProperties: typeOf(shape.value, singular(name), within) };
    if (shape.kind === "object") {
      const known = made.get(shape.schema.def);
      const given = known ?? field.meta.typeName ?? name;
      if (known === undefined) {
        made.set(shape.schema.def, claim(given, shape));
        types[token(given)] = objectType(shape, given);
      }
      return reference(given, use);
    }
    const values = field.meta.open ?? shape.values;
    if (values && shape.type === "string") {
      const given = claim(field.meta.typeName ?? taken[name] ?? name, shape);
      types[token(given)] = {
        type: "string",
        enum: values.map((value) => ({ name: enumName(value), value })),
      };
      const known = reference(given, use);
      if (!field.meta.open) return known;
      // In a union with text, an enum is plain text to Go. Where text has always been allowed, that takes nothing away.
      const isText = shape.values === undefined || field.meta.format === "caseless";
      return isText ? { oneOf: [{ type: "string" }, known] } : { ...known, [openValues]: values };
    }
    if (shape.type === "stringOrBoolean") {
      const text: Property = { type: "string", ...(values ? { [openValues]: values } : {}) };
      return { oneOf: [text, { type: "boolean" }] };
    }
    return shape.type === "any" ? { $ref: "pulumi.json#/Any" } : { type: shape.type };
  };

  const property = (field: Field, owner: string, key: string, name: string): Property => {
    const { description, secret, deprecationMessage } = field.meta;
    const standard = field.default;
    return {
      ...typeOf(field, name, { place: `${owner}.${key}`, single: true, description }),
      ...(description === undefined ? {} : { description: describe(field) }),
      // The package schema cannot express a default that is an object or a list.
      ...(standard === undefined || typeof standard === "object" ? {} : { default: standard }),
      ...(secret ? { secret } : {}),
      ...(deprecationMessage === undefined ? {} : { deprecationMessage }),
      // C# refuses a member with the name of its class.
      ...(pascal(key) === owner ? { language: { csharp: { name: "Value" } } } : {}),
    };
  };

  const objectType = (shape: Extract<Shape, { kind: "object" }>, name: string): TypeSpec => {
    const entries = Object.entries(shape.fields);
    // The configuration of a Machine belongs to the Machine: its parts are named MachineService, not MachineConfigService.
    const base = name.replace(/Config$/, "") || name;
    return {
      type: "object",
      properties: Object.fromEntries(
        entries.map(([key, field]) => [key, property(field, name, key, base + pascal(key))]),
      ),
      required: entries.filter(([, field]) => !field.optional).map(([key]) => key),
    };
  };

  const resourceSpec = (resource: Resource): ResourceSpec => {
    const inputs = Object.entries(resource.inputFields);
    const replacing = new Set(resource.replaceOn.filter((path) => !path.includes(".")));
    const singly = Object.fromEntries(
      inputs.map(([key, field]) => [
        key,
        {
          ...property(field, resource.name, key, resource.name + pascal(key)),
          // Not replaceOnChanges, with which the engine also replaces for a value that is unknown at preview.
          ...(replacing.has(key) ? { willReplaceOnChanges: true } : {}),
        },
      ]),
    );
    const inputProperties = Object.fromEntries(
      inputs.map(([key, { meta }]) => [
        key,
        meta.format === "greatest" ? orList(singly[key] ?? {}) : (singly[key] ?? {}),
      ]),
    );
    const outputs = Object.entries(resource.outputFields);
    const properties = {
      ...Object.fromEntries(
        inputs.flatMap(([key, { meta }]) => {
          if (meta.writeOnly) return [];
          const { default: _, ...rest } = singly[key] ?? {};
          return [[key, rest]];
        }),
      ),
      ...Object.fromEntries(
        outputs.map(([key, field]) => [key, property(field, resource.name, key, resource.name + pascal(key))]),
      ),
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
      ...listInputsOf(resource),
      // A resource of the dynamic binding stays the same resource when a program switches to the plugin.
      aliases: [{ type: `pulumi-nodejs:dynamic/machines:${resource.name}` }],
    };
  };

  const componentSpec = ({
    name,
    summary,
    description,
    inputFields,
    outputFields,
    methods,
  }: Component): ResourceSpec => {
    const propertiesOf = (fields: Readonly<Record<string, Field>>) =>
      Object.fromEntries(
        Object.entries(fields).map(([key, field]) => [key, property(field, name, key, name + pascal(key))]),
      );
    const needed = (fields: Readonly<Record<string, Field>>) =>
      Object.entries(fields).flatMap(([key, field]) => (field.optional ? [] : [key]));
    return {
      isComponent: true,
      description: `${summary}\n\n${description}`,
      properties: propertiesOf(outputFields),
      required: needed(outputFields),
      inputProperties: propertiesOf(inputFields),
      requiredInputs: needed(inputFields),
      methods: Object.fromEntries(Object.keys(methods).map((method) => [method, `${token(name)}/${method}`])),
    };
  };

  const functionSpec = (called: MachinesFunction): FunctionSpec => {
    const owner = pascal(called.name);
    const object = (fields: Readonly<Record<string, Field>>, isNeeded: (field: Field) => boolean) => ({
      type: "object" as const,
      properties: Object.fromEntries(
        Object.entries(fields).map(([key, field]) => [key, property(field, called.name, key, owner + pascal(key))]),
      ),
      required: Object.entries(fields).flatMap(([key, field]) => (isNeeded(field) ? [key] : [])),
    });
    return {
      description: called.description === undefined ? called.summary : `${called.summary}\n\n${called.description}`,
      inputs: object(called.inputFields, (field) => !field.optional && field.default === undefined),
      outputs: object(called.outputFields, (field) => !field.optional),
    };
  };

  const resourceSpecs = Object.fromEntries(
    Object.values(resources).map((resource) => [token(resource.name), resourceSpec(resource)]),
  );
  const componentSpecs = Object.fromEntries(
    Object.values(components).map((component) => [token(component.name), componentSpec(component)]),
  );
  const functionSpecs = Object.fromEntries(
    Object.values(functions).map((called) => [token(called.name), functionSpec(called)]),
  );
  const methodSpecs = Object.fromEntries(
    Object.values(components).flatMap(({ name, methods }) =>
      Object.entries(methods).map(([method, spec]) => [`${token(name)}/${method}`, methodSpec(name, spec)]),
    ),
  );
  for (const [name, found] of uses) {
    const type = types[token(name)];
    if (type) types[token(name)] = { ...described(found), ...type };
  }
  markReplacing(types, resourceSpecs);
  return {
    ...packageInfo(version),
    config: { variables: configVariables() },
    provider: {
      description:
        "How the service is reached. A setting that is left out comes from the environment; if it is not there either, it has its default.",
      inputProperties: providerInputs(),
    },
    types: Object.fromEntries(Object.entries(types).sort(([a], [b]) => (a < b ? -1 : 1))),
    resources: { ...resourceSpecs, ...componentSpecs },
    functions: { ...functionSpecs, ...methodSpecs },
    language: languages,
  };
}

/** A method, which takes a list of resources. */
function methodSpec(component: string, method: Method): FunctionSpec {
  const reference = (name: string): Property => ({ $ref: `#/resources/${token(name)}` });
  const taken: Property = {
    type: "array",
    items: { oneOf: Object.keys(method.takes).map(reference) },
    description: method.argumentDescription,
  };
  const answered: Property = { $ref: "pulumi.json#/Any", description: method.resultDescription };
  return {
    description: method.description,
    inputs: {
      type: "object",
      properties: { __self__: reference(component), [method.argument]: taken },
      required: ["__self__", method.argument],
    },
    outputs: { type: "object", properties: { [method.result]: answered }, required: [method.result] },
  };
}

/** The stack's configuration, as programs read it. */
const configVariables = (): Record<string, Property> =>
  Object.fromEntries(
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

/**
 * The arguments of an explicit provider. Without defaults: an SDK would write the environment's token into the stack in
 * plain text (Node.js), and ignore a 0. The provider reads the environment itself.
 */
const providerInputs = (): Record<string, Property> =>
  Object.fromEntries(
    Object.entries(configKeys).map(([key, spec]) => [
      key,
      {
        type: spec.type,
        description: `${spec.description} Environment: \`${spec.environment}\`.${"default" in spec ? ` Default: \`${spec.default}\`.` : ""}`,
        ...("secret" in spec ? { secret: true } : {}),
      },
    ]),
  );

/** An input of which a program may give one or a list. */
const orList = ({ type, ...rest }: Property): Property =>
  type === undefined ? rest : { oneOf: [{ type }, { type: "array", items: { type } }], ...rest };

/** What a type is, in the words of the property that is of it. */
function described([first, ...others]: readonly Use[]): { description?: string } {
  if (first?.description === undefined) return {};
  if (first.single) return { description: first.description };
  const places = [first, ...others].map(({ place }) => `\`${place}\``);
  return { description: `One of ${places.join(", ")}. ${first.description}` };
}

/** Marks nested input properties whose change replaces the resource; top-level ones are marked already. */
/** The filters of a type that can be listed. */
function listInputsOf(resource: Resource): Pick<ResourceSpec, "listInputs"> {
  if (resource.list === undefined && resource.partOf === undefined) return {};
  const filters = filtersOf(resource).map((name): [string, Property] => [
    name,
    {
      type: "string",
      description: `Lists only objects with this \`${name}\`: an id, or the name that is its last part.`,
    },
  ]);
  return { listInputs: { type: "object", properties: Object.fromEntries(filters) } };
}

function markReplacing(types: Record<string, TypeSpec>, specs: Record<string, ResourceSpec>): void {
  const at = (property: Property | undefined, name: string): Property | undefined =>
    name === "*"
      ? (property?.items ?? property?.additionalProperties)
      : types[property?.$ref?.replace("#/types/", "") ?? ""]?.properties?.[name];
  for (const { name, replaceOn } of Object.values(resources)) {
    for (const [first = "", ...rest] of replaceOn.map((path) => path.split("."))) {
      const property = rest.reduce(at, specs[token(name)]?.inputProperties[first]);
      if (!property) throw new Error(`${name} replaces on ${[first, ...rest].join(".")}, which it does not have`);
      if (rest.length > 0) property.willReplaceOnChanges = true;
    }
  }
}

/** The description with the default. Pulumi's generators write no other word about it. */
function describe({ default: standard, meta: { description = "", wireDefault } }: Field): string {
  const shown = JSON.stringify(standard ?? wireDefault);
  return shown === undefined || shown === "{}" ? description : `${description} Default: \`${shown}\`.`;
}
