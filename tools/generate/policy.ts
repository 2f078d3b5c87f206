// What policies see of the resources, from the package schema: plain values, and a typed helper for each resource.
import type { PackageSpec, Property, ResourceSpec } from "./schema.ts";
import { banner, doc, members, nameOf, objectTypes } from "./sdk.ts";

/** Inputs as policies see them: after the check, which makes one number of a list of versions. */
const checkedInputs = ({ inputProperties }: ResourceSpec): Record<string, Property> =>
  Object.fromEntries(
    Object.entries(inputProperties).map(([name, property]) => {
      const { oneOf = [], ...rest } = property;
      const [single] = oneOf;
      return [name, single && oneOf.some(({ items }) => items) ? { ...single, ...rest } : property];
    }),
  );

/** The text of policy/resources.ts. */
export function policyResources(schema: PackageSpec): string {
  const resources = Object.entries(schema.resources).map(([token, spec]) => ({ name: nameOf(token), spec }));
  const interfaces = resources.map(
    ({ name, spec }) => `/** What a program declares of a ${name}, with the defaults filled in. */
export interface ${name}Inputs {
${members(schema, { properties: checkedInputs(spec), required: spec.requiredInputs }, false, "")}}

/** What the stack holds of a ${name}: its inputs, and what the service decided. */
export interface ${name}Outputs {
${members(schema, { properties: spec.properties, required: spec.required }, false, "")}}
`,
  );
  return `${banner}
${objectTypes(schema, false)}
${interfaces.join("\n")}
/** Inputs and outputs by type of resource. */
export interface ResourceTypes {
${resources.map(({ name }) => `  ${name}: { inputs: ${name}Inputs; outputs: ${name}Outputs };\n`).join("")}}

/** A type of resource. */
export type ResourceName = keyof ResourceTypes;
`;
}

/** The text of policy/validators.ts. */
export function policyValidators(schema: PackageSpec): string {
  const helpers = Object.entries(schema.resources).map(([token, { description }]) => {
    const name = nameOf(token);
    return `${doc("", { description: `Checks every ${name} of a stack before it is created or changed. ${description}` })}export const validate${name} = validating("${name}");
/** Repairs every ${name} of a stack before it is checked, created or changed. */
export const remediate${name} = remediating("${name}");
`;
  });
  return `${banner}import { remediating, validating } from "./core/validate.ts";

${helpers.join("\n")}`;
}
