// The verb update.
import { sentChanges } from "../diff.ts";
import { confirmSeen } from "../observations/observations.ts";
import { PartialStateError } from "../partialState.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import { formerOwnersIn } from "../run/program.ts";
import { forHandler, inStateOf, isComputed, outputsOf, stateFrom, toSend } from "../state.ts";
import { callOf, type Caller } from "./caller.ts";
import { InitializationFailed, quotingPrograms, reporting } from "./unfinished.ts";

/** Warns of side effects that a change does not show, in preview and in the update. */
export function warnOf(resource: Resource, old: Values, inputs: Values, warn: (message: string) => void): void {
  for (const message of resource.warnings?.(old, inputs) ?? []) warn(`${resource.name}: ${message}`);
}

/**
 * Updates the object and returns its whole new state.
 * @throws InitializationFailed if it was changed and a later step failed.
 */
export async function update(
  resource: Resource,
  id: string,
  stored: Values,
  inputs: Values,
  caller: Caller,
): Promise<Values> {
  const { run } = caller;
  const { owner } = contextOf(inputs);
  run.stateIds.note(contextOf(stored).stack);
  // R13: changes that this run already applied are missing from the state that the engine stored before it.
  const reported = run.unfinished.of(resource.name, owner);
  const isAgain = reported?.id === id;
  try {
    const state = await change(resource, id, isAgain ? reported.properties : stored, inputs, caller);
    run.unfinished.forget(resource.name, owner);
    return state;
  } catch (error) {
    if (error instanceof InitializationFailed) throw reporting(run, resource, owner, error);
    // A later failure of another kind does not discard the state that this run reported.
    if (isAgain && error instanceof Error) throw new InitializationFailed(id, reported.properties, error);
    throw error;
  }
}

async function change(resource: Resource, id: string, old: Values, inputs: Values, caller: Caller): Promise<Values> {
  const parts = resource.id.parse(id);
  const before = { ...outputsOf(resource, old), ...noLongerSet(resource, old, inputs) };
  const { owner } = contextOf(inputs);
  const context = inStateOf(caller.run, resource, inputs, old);
  const found = (live: Values) => stateFrom(resource, inputs, { ...before, ...live }, context);
  warnOf(resource, old, inputs, caller.warn);
  // The program's inputs override the stored state, because an input may change how the update is done.
  if (!isWork(resource, old, inputs) && !mustReport(caller, old)) return found({});
  const confirmed = await confirmSeen(resource, { id, inputs, state: old }, caller);
  try {
    const call = { ...callOf(resource, "update", inputs, caller), ...confirmed };
    const update = () =>
      resource.update({
        ...call,
        id: parts,
        inputs: toSend(caller.run, resource, inputs),
        old: forHandler(resource, old),
        unfinished: contextOf(old).unfinished ?? false,
        owner,
        formerOwners: formerOwnersIn(old, owner),
        otherClaimant: (claim) => caller.run.program.remainingClaimant(claim, owner),
      });
    return found(await quotingPrograms(caller.run, update));
  } catch (error) {
    if (!(error instanceof PartialStateError)) throw error;
    throw new InitializationFailed(id, found(error.live), error);
  }
}

/**
 * R1: a change that is not sent only rewrites the state, because delete reads the inputs there.
 * The same applies if only the engine's encoding of an input changed.
 */
const isWork = (resource: Resource, old: Values, inputs: Values): boolean =>
  contextOf(old).unfinished === true || sentChanges(resource, old, inputs).length > 0;

/** Whether the views of the resource are to come into the state, or to leave it. */
const mustReport = ({ views }: Caller, old: Values): boolean =>
  views !== undefined && views.isKept !== (contextOf(old).viewsOf !== undefined);

/** Computed inputs that the program no longer sets keep their previous values (R1). */
const noLongerSet = (resource: Resource, old: Values, inputs: Values): Values =>
  Object.fromEntries(Object.entries(old).filter(([name]) => isComputed(resource, name) && inputs[name] === undefined));
