// R9: which switch lets a resource's data be destroyed, and how a refusal says so. No I/O.
import { MachinesError } from "../client/errors.ts";
import type { Resource, Values } from "./resource.ts";

/** Whether a type is protected by default, also from deletion. */
export const isProtected = (resource: Resource): boolean => Object.hasOwn(resource.inputFields, "deletionProtection");

/** Whether these values permit data loss: `deletionProtection: false`, or `allowDataLoss: true`. */
export const mayLoseData = (resource: Resource, values: Values): boolean =>
  isProtected(resource) ? values["deletionProtection"] === false : values["allowDataLoss"] === true;

/** The input to set to permit it. */
export const switchOf = (resource: Resource): string =>
  isProtected(resource) ? "deletionProtection: false" : "allowDataLoss: true";

/** The refusal of a replacement that a changed input asks for, with the ways out. */
export function dataLoss(resource: Resource, input: string): string {
  const rescue = resource.keepDataBy?.(input);
  return (
    `changing it replaces the ${resource.name} and destroys ${resource.losesData}; ` +
    (rescue === undefined ? "" : `${rescue}; otherwise `) +
    `set ${switchOf(resource)} to allow that, or keep the old value`
  );
}

/** The refusal of a replacement that no input asks for: in its create, or in the deletion of the original. */
export const unseenReplacement = (resource: Resource, id: string | undefined): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} ${id ?? "of the state"} is guarded: the program still has it, and its replacement (by force, by \`taint\`, or with its provider or parent) would destroy ${resource.losesData}. ` +
      "To keep it, run `npx pulumi-machines undo-replacement`, which makes the original the resource's own again; after `taint`, run `pulumi state untaint`. " +
      `To lose it on purpose, set ${switchOf(resource)} and run up.`,
  );

/** The refusal of a change that replaces the parent of the data. `isStored`: the state's inputs were judged, not the program's. */
export const parentReplaced = (resource: Resource, parent: string, isStored: boolean): string =>
  `${resource.within.kind === "app" ? "App" : "cluster"} ${parent} would be replaced, and with it this ${resource.name} and ${resource.losesData} destroyed. ` +
  `Keep ${parent} unchanged (its name, for example), or set ${switchOf(resource)} on the ${resource.name}` +
  `${isStored ? ", or remove it from the program, and run `pulumi up --target` for it alone first" : " to lose it on purpose"}. ` +
  "If it was replaced already, `npx pulumi-machines undo-replacement` brings it back.";

/** The refusal to delete an App or a cluster that contains guarded objects of the program. */
export const lossWithParent = (parent: string, lost: readonly string[]): MachinesError =>
  new MachinesError(
    "refused",
    `${parent} holds objects that the program still has and does not permit to be lost: ${lost.join(", ")}. ` +
      "To keep it, run `npx pulumi-machines undo-replacement`; to lose it on purpose, set allowDataLoss: true on each and run up.",
  );

/** The advice if a create conflicts with its own original: the engine does not report that it replaces by force. */
export const byForce =
  "If it is this resource's own and you replace it by force, set deleteBeforeReplace: true in the resource's options.";

/** The refusal of a deletion under protection. */
export const protectedFrom = (resource: Resource, id: string): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} ${id} is protected: its deletion would destroy ${resource.losesData}. ` +
      "To delete it, set deletionProtection: false on it, run up, and then delete it.",
  );
