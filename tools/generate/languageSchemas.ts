// The package schema for the SDK of each language, and for programs that use it: what their generators and runtimes cannot express is
// left out.
import type { PackageSpec, Property } from "./schema.ts";

/** The schema for Python. Its programs write inputs as dictionaries of plain values, and a type checker refuses others. */
const forPython = (schema: PackageSpec): PackageSpec =>
  mapped(enumsAsText(schema), (property) => {
    // Pulumi's runtime for Python fails for a list where its type is a union.
    if (!property.oneOf?.some(({ items }) => items)) return undefined;
    const { oneOf: _, ...rest } = property;
    return { ...rest, $ref: "pulumi.json#/Any" };
  });

/** The schema whose lists of text or enums take only text: lists in Java and C# have items of one type. */
const textInLists = (schema: PackageSpec): PackageSpec =>
  mapped(schema, (property) =>
    property.items?.oneOf?.some(({ type }) => type === "string")
      ? { ...property, items: { type: "string" } }
      : undefined,
  );

/**
 * The schema with enums that accept plain text. The SDKs for Python and Java convert received text to a member of the enum:
 * a value that others have set, and that is unknown, would end every program with the resource. That for C# has no way to make such
 * a member.
 */
const enumsAsText = (schema: PackageSpec): PackageSpec =>
  mapped(schema, (property) => {
    if (!schema.types[property.$ref?.replace("#/types/", "") ?? ""]?.enum) return undefined;
    const { $ref = "", ...rest } = property;
    return { ...rest, oneOf: [{ type: "string" }, { $ref }] };
  });

/** The schema with other properties at any depth: `change` returns one, or undefined to change only its parts. */
function mapped(schema: PackageSpec, change: (property: Property) => Property | undefined): PackageSpec {
  const relax = (property: Property): Property => {
    const changed = change(property);
    if (changed !== undefined) return changed;
    return {
      ...property,
      ...(property.items ? { items: relax(property.items) } : {}),
      ...(property.additionalProperties ? { additionalProperties: relax(property.additionalProperties) } : {}),
    };
  };
  const all = (properties: Record<string, Property>): Record<string, Property> =>
    Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, relax(property)]));
  const types = Object.entries(schema.types).map(([token, type]) => [
    token,
    type.properties ? { ...type, properties: all(type.properties) } : type,
  ]);
  const resources = Object.entries(schema.resources).map(([token, resource]) => [
    token,
    { ...resource, properties: all(resource.properties), inputProperties: all(resource.inputProperties) },
  ]);
  return {
    ...schema,
    types: Object.fromEntries(types) as PackageSpec["types"],
    resources: Object.fromEntries(resources) as PackageSpec["resources"],
  };
}

const same = (schema: PackageSpec): PackageSpec => schema;
const withTexts = (schema: PackageSpec): PackageSpec => textInLists(enumsAsText(schema));

/** By the name of the generator. */
export const schemaFor = {
  nodejs: same,
  python: forPython,
  dotnet: withTexts,
  go: same,
  yaml: same,
  java: withTexts,
} as const;
