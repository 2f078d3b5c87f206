// Secret inputs that are sent to the service and never stored. The engine stores the inputs that check returns, so check
// removes them, and the memory of the run keeps them until create or update in the same process.
import { z } from "zod";
import { fieldOf, optional, type WriteOnly } from "../../api/schema.ts";
import { MachinesError } from "../client/errors.ts";
import type { Problem, Resource, Values } from "./resource.ts";
import { hasUnknown } from "./values.ts";

/** The version of a write-only value whose program gives none. */
const firstVersion = 0;

type WaysToGive<N extends string, S extends z.ZodType> = {
  [Name in N | `${N}Wo`]: z.ZodOptional<S>;
} & { [Name in `${N}Version`]: z.ZodOptional<z.ZodInt> };

/**
 * Three inputs: a secret value `name` that the state keeps encrypted; `nameWo`, the same value, never stored; and
 * `nameVersion`, whose change writes `nameWo` again. A program gives one of the two values, or none if the schema is optional.
 */
export function secretInput<const N extends string, S extends z.ZodType>(
  name: N,
  schema: S,
  description: string,
): WaysToGive<N, S> {
  const version = `${name}Version`;
  const isRequired = !fieldOf(schema).optional;
  const writeOnly: WriteOnly = { insteadOf: name, version, isRequired };
  const made = {
    [name]: optional(
      schema,
      `${description} The state stores it, encrypted.${isRequired ? ` Required, unless \`${name}Wo\` is set.` : ""}`,
      { secret: true, presence: true },
    ),
    [`${name}Wo`]: optional(
      schema,
      `Write-only form of \`${name}\`, used in its place. It is sent to the service and never stored, not even encrypted. Changing only it does nothing: raise \`${version}\` to write it.`,
      { secret: true, presence: true, writeOnly },
    ),
    [version]: optional(
      z.int().min(0),
      `Version of \`${name}Wo\`; changing it writes \`${name}Wo\` again. Only with \`${name}Wo\`; ${firstVersion} when left out.`,
    ),
  };
  return made as unknown as WaysToGive<N, S>;
}

/**
 * The value to send: the write-only one, or else the stored one.
 * @throws MachinesError if the program gives neither. Check accepts that where an object keeps its value.
 */
export function valueToSend<V>(name: string, writeOnly: V | undefined, stored: V | undefined): V {
  const value = writeOnly ?? stored;
  if (value !== undefined) return value;
  throw new MachinesError(
    "invalid-input",
    `${name}: is needed for this change, but neither ${name} nor ${name}Wo is given. If ignoreChanges names one of them, remove it there.`,
  );
}

type Fields = Pick<Resource, "inputFields">;

const writeOnlyInputs = ({ inputFields }: Fields): readonly (WriteOnly & { readonly name: string })[] =>
  Object.entries(inputFields).flatMap(([name, { meta }]) => (meta.writeOnly ? [{ ...meta.writeOnly, name }] : []));

/** The write-only ones of some inputs. */
export const writeOnlyIn = (resource: Fields, values: Values): Values =>
  Object.fromEntries(
    writeOnlyInputs(resource).flatMap(({ name }) => (values[name] == null ? [] : [[name, values[name]]])),
  );

/** The values that may be stored. */
export const withoutWriteOnly = (resource: Fields, values: Values): Values => {
  const names = writeOnlyInputs(resource).map(({ name }) => name);
  return names.length === 0
    ? values
    : Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
};

/**
 * Fills in the versions of write-only values, and returns what is wrong with how the values are given.
 * ASSUMED: an existing object keeps a value that its state does not have and that the program does not give. It was imported,
 * or `ignoreChanges` names the write-only input, which the engine then removes.
 */
export function completeWriteOnly(resource: Fields, olds: Values, inputs: Values, isMade: boolean): readonly Problem[] {
  return writeOnlyInputs(resource).flatMap(({ name, insteadOf, version, isRequired }): readonly Problem[] => {
    const [value, stored] = [inputs[name], inputs[insteadOf]];
    if (value !== undefined && stored !== undefined) {
      // An unknown one may turn out to be missing.
      if (hasUnknown(value) || hasUnknown(stored)) return [];
      return [{ path: [name], message: `cannot be given together with ${insteadOf}; leave one of them out` }];
    }
    if (value !== undefined) {
      inputs[version] ??= firstVersion;
      return [];
    }
    const isKept = stored === undefined && isMade && olds[insteadOf] === undefined;
    if (isKept && olds[version] !== undefined) inputs[version] ??= olds[version];
    if (inputs[version] !== undefined && !(isKept && inputs[version] === olds[version]))
      return [
        {
          path: [version],
          message:
            stored !== undefined
              ? `is the version of ${name}, which is not given; leave it out, or give ${name} instead of ${insteadOf}`
              : `is new, so ${name} must be written, but it is not given. Give ${name}; if ignoreChanges names it, remove it there, or name ${version} there too`,
        },
      ];
    if (stored !== undefined || isKept || !isRequired) return [];
    return [{ path: [insteadOf], message: `is required, unless there is a ${name}` }];
  });
}
