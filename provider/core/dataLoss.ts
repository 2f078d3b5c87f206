// R9: which switch lets a resource's data be destroyed, and how a refusal says so. No I/O.
import { MachinesError } from "./errors.ts";
import type { Resource, Values } from "./resource.ts";

/** Whether a type is protected until it is told otherwise, from being deleted too. */
export const isProtected = (resource: Resource): boolean => Object.hasOwn(resource.inputFields, "deletionProtection");

/** Whether these values allow that what the resource holds is destroyed: `deletionProtection: false`, or `allowDataLoss: true`. */
export const mayLoseData = (resource: Resource, values: Values): boolean =>
  isProtected(resource) ? values["deletionProtection"] === false : values["allowDataLoss"] === true;

/** What to set to allow it. */
export const switchOf = (resource: Resource): string =>
  isProtected(resource) ? "deletionProtection: false" : "allowDataLoss: true";

/** The refusal of a replacement that a changed input asks for, with the ways out. */
export function dataLoss(resource: Resource, input: string): string {
  const rescue = resource.rescue?.(input);
  return (
    `changing it replaces the ${resource.name} and destroys ${resource.losesData}; ` +
    (rescue === undefined ? "" : `${rescue}; otherwise `) +
    `set ${switchOf(resource)} to allow that, or keep the old value`
  );
}

/** The refusal of a replacement that no input asks for. */
export const unseenReplacement = (resource: Resource): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} would be replaced together with its provider or its App, or by force, and ${resource.losesData} destroyed; ` +
      `set ${switchOf(resource)} to allow that, also to end a replacement that was begun. If the provider's endpoint or organization was wrong for a while, run \`pulumi refresh --run-program\` with the right one first.`,
  );

/** The refusal of a deletion under protection. */
export const protectedFrom = (resource: Resource, id: string): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} ${id} is protected: its deletion would destroy ${resource.losesData}. ` +
      "To delete it, set deletionProtection: false on it, run up, and then delete it.",
  );
