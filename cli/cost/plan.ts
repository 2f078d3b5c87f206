// The resources of a stack before and after a plan of the engine: what `pulumi preview --save-plan` writes, with the stack's state.
import { isObject } from "../../api/schema.ts";
import type { Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import type { Priced } from "../../provider/cost/report.ts";
import { inputsAfter, type Plans } from "../savedPlan.ts";
import { deploymentIn, heldIn, isSealed, listIn, nameIn } from "../stackState.ts";
import { urnsBefore } from "./aliases.ts";

/** A value with everything unknown that only the stack's key decrypts. */
function readable(value: unknown): unknown {
  if (isSealed(value)) return UNKNOWN;
  if (Array.isArray(value)) return value.map(readable);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, readable(inner)]))
    : value;
}

const readableInputs = (inputs: Values): Values => readable(inputs) as Values;

/** The inputs of an object that the plan imports: the engine reads them, and notes none. */
const unread: Values = Object.fromEntries(
  ["app", "config", "regions", "volume", "state", "sizeGb", "type", "plan", "diskSizeGb"].map((name) => [
    name,
    UNKNOWN,
  ]),
);

/** The type and the name of a resource of ours that the state does not have; undefined for all others. */
const named = (urn: string): { readonly type: string; readonly name: string } | undefined => heldIn({ urn });

const removes = new Set(["delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace"]);

/** Whether a step leaves a resource that the program only reads. */
const isRead = (step: string): boolean => step.startsWith("read");

/**
 * The resources of a stack that cost something, before and after a plan.
 * @param exported the output of `pulumi stack export`
 */
export function pricedIn(plans: Plans, exported: string, source: string): readonly Priced[] {
  const resources = listIn(deploymentIn(exported, source), "resources");
  const held = resources.flatMap((found) => {
    const resource = heldIn(found);
    // The Machines of a fleet are counted with the fleet, and an object that is being replaced with its replacement.
    const isOwn =
      resource !== undefined && !resource.isExternal && !resource.isReplaced && found["viewOf"] === undefined;
    return isOwn ? [resource] : [];
  });
  const before = new Map(
    held.map(({ urn, type, name, inputs }) => [urn, { type, name, inputs: readableInputs(inputs) }]),
  );
  const known = resources.flatMap(({ urn, delete: isGone }) => (typeof urn === "string" && !isGone ? [urn] : []));
  const urnBefore = urnsBefore(plans, new Set(known));
  const renamed = new Set<string>();
  const all = Object.entries(plans).flatMap(([urn, planned]): Priced[] => {
    const { goal, steps = [] } = planned;
    const formerUrn = urnBefore(urn);
    const former = formerUrn === undefined ? undefined : before.get(formerUrn);
    const { type, name } = former ?? named(urn) ?? {};
    if (type === undefined || name === undefined || steps.every(isRead)) return [];
    if (formerUrn !== undefined && formerUrn !== urn) renamed.add(formerUrn);
    const appUrn = goal?.propertyDependencies?.["app"]?.find((one) => /\bmachines[:/](index:)?App::/.test(one));
    const isGone = steps.length > 0 && steps.every((step) => removes.has(step));
    // The engine notes no goal of a resource that has no part in an update with targets.
    const kept = goal === undefined ? former?.inputs : readableInputs(inputsAfter(former?.inputs ?? {}, planned));
    const isImported = steps.some((step) => step.startsWith("import"));
    return [
      {
        ...{ type, name: nameIn(urn) || name },
        before: former?.inputs,
        after: isGone ? undefined : isImported ? unread : kept,
        appInProgram: appUrn === undefined ? undefined : nameIn(appUrn),
      },
    ];
  });
  // What the plan does not name, because it has targets, stays as it is.
  const others = [...before].flatMap(([urn, { type, name, inputs }]): Priced[] =>
    Object.hasOwn(plans, urn) || renamed.has(urn) ? [] : [{ type, name, before: inputs, after: inputs }],
  );
  return [...all, ...others];
}
