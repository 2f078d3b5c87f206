// provider/schema.json: the package schema as the CLI asks the plugin for it. The generators of the SDKs take the schema without these
// changes.
import { forCli } from "./packageInfo.ts";
import type { PackageSpec, Property } from "./schema.ts";

/**
 * Text that may be a listed value, such as a region, as text alone. Both accept the same values, but `pulumi do` makes flags only for
 * plain types. SDKs keep the listed values.
 */
export const asFlag = (property: Property): Property => {
  const { oneOf, ...rest } = property;
  return oneOf?.length === 2 &&
    oneOf.some(({ type }) => type === "string") &&
    oneOf.some(({ $ref }) => $ref !== undefined)
    ? { type: "string", ...rest }
    : property;
};

const changed = <T>(properties: Readonly<Record<string, T>>, change: (property: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, change(property)]));

/** The schema for the CLI. */
export const cliSchema = (schema: PackageSpec): PackageSpec => ({
  ...schema,
  ...forCli,
  resources: changed(schema.resources, (resource) => ({
    ...resource,
    inputProperties: changed(resource.inputProperties, asFlag),
  })),
});
