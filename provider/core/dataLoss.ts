// R9: decides which input permits the loss of a resource's data, and writes the refusals. No I/O.
import { MachinesError } from "../client/errors.ts";
import type { Resource, Values } from "./resource.ts";

/** Whether objects of the type are protected by default, also from deletion. */
export const isProtected = (resource: Resource): boolean => Object.hasOwn(resource.inputFields, "deletionProtection");

/** Whether these values permit data loss: `deletionProtection: false`, or `allowDataLoss: true`. */
export const mayLoseData = (resource: Resource, values: Values): boolean =>
  isProtected(resource) ? values["deletionProtection"] === false : values["allowDataLoss"] === true;

/** The input, with its value, that permits data loss. */
const permissionOf = (resource: Resource): string =>
  isProtected(resource) ? "deletionProtection: false" : "allowDataLoss: true";

/** The refusal of a changed input that would replace the resource. It says how to keep the data. */
export function inputChangeRefusal(resource: Resource, input: string): string {
  const advice = resource.keepDataBy?.(input);
  return (
    `changing it replaces the ${resource.name} and destroys ${resource.losesData}` +
    (advice === undefined ? ". Keep" : `; ${advice}. Otherwise keep`) +
    ` the old value, or set ${permissionOf(resource)} to allow the data loss`
  );
}

/**
 * The error if a guarded object would be replaced although none of its inputs changed. It is thrown by the create of the
 * replacement, or by the deletion of the original.
 */
export const guardedReplacementError = (resource: Resource, id: string | undefined): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} ${id ?? "of the state"} is guarded: the program still declares it, and replacing it (by \`--replace\`, by \`taint\`, or with its provider or parent) would destroy ${resource.losesData}. ` +
      "To keep it, run `npx pulumi-machines undo-replacement`, which restores the original. If it is tainted and was not replaced yet, run `pulumi state untaint` instead. " +
      `To allow the data loss, set ${permissionOf(resource)} and run up.`,
  );

/**
 * The refusal of a change that would replace the parent of guarded data. `isFromState`: the permission was looked up in
 * the inputs of the state, because the engine has not checked those of the program yet.
 */
export const parentReplacementRefusal = (resource: Resource, parent: string, isFromState: boolean): string => {
  const kind = resource.within.kind === "app" ? "App" : "cluster";
  const permit = `set ${permissionOf(resource)} on the ${resource.name}`;
  return (
    `${kind} ${parent} would be replaced, which would destroy this ${resource.name} and ${resource.losesData}. ` +
    `To keep the data, leave ${kind} ${parent} unchanged (its name, for example). ` +
    `To allow the data loss, ${permit}${isFromState ? ` or remove the ${resource.name} from the program, and first run \`pulumi up --target\` for the ${resource.name} alone` : ""}. ` +
    `If the ${kind} was replaced already, \`npx pulumi-machines undo-replacement\` restores the original.`
  );
};

/** The error if a deleted App or cluster contains guarded objects that the program still declares. */
export const parentDeletionError = (parent: string, guarded: readonly string[]): MachinesError =>
  new MachinesError(
    "refused",
    `${parent} contains objects that the program still declares and whose loss it does not allow: ${guarded.join(", ")}. ` +
      "To keep them, run `npx pulumi-machines undo-replacement`. To allow their loss, set allowDataLoss: true on each of them and run up.",
  );

/** The advice if a create conflicts with an existing object. The engine does not report that it replaces by `--replace`. */
export const deleteBeforeReplaceAdvice =
  "If this resource owns the existing object and you replace it by `--replace` or `taint`, set deleteBeforeReplace: true in the resource's options.";

/** The same in a replacement: an original whose deletion is pending holds the name until a run succeeds. */
export const pendingDeletionAdvice =
  "If this resource had that name before, an earlier replacement has not deleted its object yet: run up once with the previous inputs, which deletes it, and then make this change.";

/** The error if a protected object would be deleted. */
export const protectedDeletionError = (resource: Resource, id: string): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} ${id} is protected: its deletion would destroy ${resource.losesData}. ` +
      "To delete it, set deletionProtection: false on it and run up. Then delete it.",
  );

/**
 * The error if an object in a protected cluster would be deleted. Without the cluster's name in the program, the program does
 * not declare the cluster: everything is to be deleted, and what the engine deletes first may be gone.
 */
export const protectedParentError = (
  resource: Resource,
  id: string,
  parent: string,
  nameInProgram: string | undefined,
): MachinesError =>
  new MachinesError(
    "refused",
    `the ${resource.name} ${id} is in the protected cluster ${nameInProgram === undefined ? parent : `${JSON.stringify(nameInProgram)} (${parent})`}, so it is not deleted. ` +
      "To delete it, set deletionProtection: false on the PostgresCluster and run up. Then delete it." +
      (nameInProgram === undefined
        ? " Resources outside of the cluster may be deleted already: `pulumi up` creates them again. Pulumi's option `protect: true` on the cluster stops a destroy before it deletes anything."
        : ""),
  );
