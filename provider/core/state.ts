// Builds states and inputs from each other and from what the service reports. Pure; no I/O.
import { CONTEXT, contextOf, kindOf, type Context, type Resource, type Values } from "./resource.ts";
import { formerOwnersIn } from "./run/program.ts";
import type { Run } from "./run/run.ts";
import { inSpellingOf, same, withBareIds, withoutUndefined } from "./values.ts";

/**
 * Builds the state from inputs and outputs: live values in the program's spelling; behaviour inputs, and those that no read
 * returns, unchanged; no write-only ones.
 */
export function stateFrom(resource: Resource, written: Values, live: Values, context: Context): Values {
  const state: Values = {};
  for (const [name, field] of Object.entries(resource.inputFields)) {
    if (field.meta.writeOnly) continue;
    const reported = kindOf(field) !== "behaviour" && live[name] !== undefined;
    const before = written[name] ?? field.default;
    if (live[name] === null) continue;
    state[name] = reported ? (inSpellingOf(field, before, live[name]) ?? before) : before;
  }
  for (const name of Object.keys(resource.outputFields)) {
    const field = resource.inputFields[name];
    // Inputs of the program already have its spelling in the state.
    const isTold = field !== undefined && kindOf(field) !== "behaviour" && state[name] !== undefined;
    if (live[name] !== undefined && !isTold) state[name] = live[name];
  }
  if (Object.keys(context).length > 0) state[CONTEXT] = context;
  return withoutUndefined(state);
}

/**
 * The context as the state keeps it. Without an owner there is no state; former owners matter only where data is guarded.
 * @param before the state, if there is one; the run knows former owners from it also for a replacement
 */
export function inStateOf(run: Run, resource: Resource, inputs: Values, before?: Values): Context {
  const context = contextOf(inputs);
  const { owner } = context;
  if (owner === undefined) return context;
  const { stack = run.stateIds.own, ...kept } = contextOf(before ?? {});
  const formerOwners = before ? formerOwnersIn(before, owner) : (run.program.of(owner)?.formerOwners ?? []);
  return {
    ...context,
    stack,
    ...protectionOf(run, resource, inputs, kept),
    ...(resource.losesData !== undefined && formerOwners.length > 0 ? { formerOwners } : {}),
  };
}

/** How the program protects the cluster of an object. A run that does not declare the cluster keeps what the state has. */
function protectionOf(run: Run, resource: Resource, inputs: Values, { inProtected, inCluster }: Context): Context {
  const now = run.guards.protectionOf(resource, inputs);
  return now.inProtected === undefined ? (withoutUndefined({ inProtected, inCluster }) as Context) : now;
}

/** The inputs in a state: those of the program, with their drift. */
export function inputsOf(resource: Resource, state: Values): Values {
  const leftOut = contextOf(state).left ?? [];
  const inputs: Values = {};
  for (const name of Object.keys(resource.inputFields)) {
    if (state[name] !== undefined && !leftOut.includes(name)) inputs[name] = state[name];
  }
  const { stack: _stack, formerOwners: _former, inProtected: _, inCluster: _cluster, ...context } = contextOf(state);
  if (Object.keys(context).length > 0) inputs[CONTEXT] = context;
  return inputs;
}

/** The inputs that a program would declare for an imported object: no defaults, behaviour inputs or transient values. */
export function importedInputs(resource: Resource, state: Values): Values {
  const reported = Object.entries(resource.inputFields).filter(
    ([name, field]) =>
      state[name] !== undefined &&
      kindOf(field) !== "behaviour" &&
      field.meta["passing"] !== true &&
      !(field.default !== undefined && same(field, state[name], field.default)),
  );
  return Object.fromEntries(reported.map(([name]) => [name, state[name]]));
}

/** The outputs in a state. */
export const outputsOf = (resource: Resource, state: Values): Values =>
  Object.fromEntries(
    Object.entries(state).filter(
      ([name]) => Object.hasOwn(resource.outputFields, name) && !Object.hasOwn(resource.inputFields, name),
    ),
  );

/** The values for handlers: without bookkeeping, with bare ids (R5). */
export function forHandler(resource: Resource, values: Values): Values {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([name]) => !name.startsWith("__"))
      .map(([name, value]) => {
        const field = resource.inputFields[name];
        return [name, field ? withBareIds(field, value) : value];
      }),
  );
}

/** The inputs of a create or an update, with those that the engine does not store. */
export const toSend = (run: Run, resource: Resource, inputs: Values): Values =>
  forHandler(resource, { ...inputs, ...run.program.writeOnlyOf(contextOf(inputs).owner) });

/** Whether the service decides on an input that is left out (R1). */
export const isComputed = (resource: Resource, name: string): boolean => {
  const field = resource.inputFields[name];
  return field !== undefined && kindOf(field) === "computed";
};
