// Predicts the results of create and update as far as they are known before they run. Pure; no I/O.
import { matches, sentChanges } from "./diff.ts";
import { CONTEXT, contextOf, kindOf, type Resource, type Values } from "./resource.ts";
import { UNKNOWN, withoutUndefined } from "./values.ts";
import { withoutWriteOnly } from "./writeOnly.ts";

/** The predicted state, with {@link UNKNOWN} where only the run decides. */
export interface Predicted {
  /** Known if all of it is given. */
  readonly id: string | undefined;
  readonly state: Values;
}

/** Predicts the result of a create. */
export function predictCreate(resource: Resource, inputs: Values): Predicted {
  const state: Values = {};
  for (const name of [...Object.keys(resource.inputFields), ...Object.keys(resource.outputFields)])
    state[name] = inputs[name] ?? (isOptionalInput(resource, name) ? undefined : UNKNOWN);
  // Generated again when the create runs, unless the engine uses a saved plan.
  if (resource.autoname && contextOf(inputs).autonamed) state[resource.autoname.property] = UNKNOWN;
  const known = resource.id.parts.every((part) => typeof state[part] === "string" && state[part] !== UNKNOWN);
  return { id: known ? resource.id.render(state) : undefined, state: asStored(resource, state, inputs) };
}

/** An omitted input that is never read from the service stays out of the state. */
const isOptionalInput = (resource: Resource, name: string): boolean => {
  const field = resource.inputFields[name];
  if (field === undefined || Object.hasOwn(resource.outputFields, name)) return false;
  return kindOf(field) !== "computed" || field.meta["creation"] === true;
};

/** Predicts the result of an update. Outputs that the changed inputs cannot affect are known. */
export function predictUpdate(resource: Resource, old: Values, inputs: Values): Values {
  const sent = sentChanges(resource, old, inputs);
  const unfinished = contextOf(old).unfinished === true;
  const moves = (name: string): boolean => {
    const by = resource.dependsOn[name];
    if (by === undefined) return false;
    if (unfinished) return true;
    if (by === "any") return sent.length > 0;
    return sent.some(({ path }) => by.some((pattern) => matches(pattern.split("."), path)));
  };
  const state: Values = {};
  for (const [name, field] of Object.entries(resource.inputFields))
    state[name] = inputs[name] ?? (kindOf(field) === "computed" ? old[name] : undefined);
  for (const name of Object.keys(resource.outputFields)) {
    if (inputs[name] === undefined) state[name] = moves(name) ? UNKNOWN : old[name];
  }
  return asStored(resource, state, inputs);
}

const asStored = (resource: Resource, state: Values, inputs: Values): Values =>
  withoutUndefined(
    withoutWriteOnly(resource, inputs[CONTEXT] === undefined ? state : { ...state, [CONTEXT]: inputs[CONTEXT] }),
  );
