// The verb create.
import { confirmAnyPlace } from "../../client/existence.ts";
import { ApiError, MachinesError } from "../../client/errors.ts";
import { deleteBeforeReplaceAdvice, pendingDeletionAdvice } from "../dataLoss.ts";
import { confirmSeen } from "../observations/observations.ts";
import { PartialStateError } from "../partialState.ts";
import { contextOf, type Call, type Resource, type Values } from "../resource.ts";
import { idFrom } from "../run/program.ts";
import type { Run } from "../run/run.ts";
import { inStateOf, stateFrom, toSend } from "../state.ts";
import { callOf, type Caller } from "./caller.ts";
import { InitializationFailed, quotingPrograms, reporting } from "./unfinished.ts";
import { update } from "./update.ts";

/** An object with its id, as create and read give it to the engine. */
export interface Found {
  readonly id: string;
  readonly state: Values;
}

/** Creates the object. @throws InitializationFailed if it exists and a later step failed. */
export async function create(resource: Resource, inputs: Values, caller: Caller): Promise<Found> {
  const { run } = caller;
  const { owner } = contextOf(inputs);
  const before = run.unfinished.of(resource.name, owner);
  // R13: after an `onError` hook, the engine sends a create again although this run reported the object.
  if (before) return { id: before.id, state: await update(resource, before.id, before.properties, inputs, caller) };
  run.guards.refuseReplacement(resource, inputs);
  const call = callOf(resource, "create", inputs, caller);
  await confirmAnyPlace(call.api, run.program.parentsInState());
  await confirmSeen(resource, { id: idFrom(resource, inputs), inputs, state: undefined }, caller);
  await reportLeftover(run, resource, owner, call);
  const context = inStateOf(run, resource, inputs);
  const found = (live: Values): Found => {
    const state = stateFrom(resource, inputs, live, context);
    const id = resource.id.render(state);
    // An answer without a valid id is an error here: such an object could be neither read nor deleted.
    resource.id.parse(id);
    run.program.noteCreated(id, owner);
    // From here on the engine has the id.
    run.journal.settle(owner, id, context.stack);
    return { id, state };
  };
  try {
    const create = () => resource.create({ ...call, inputs: toSend(run, resource, inputs), owner });
    return found(await quotingPrograms(run, create));
  } catch (error) {
    if (!(error instanceof PartialStateError)) throw withOriginal(run, resource, owner, error);
    const { id, state } = found(error.live);
    throw reporting(run, resource, owner, new InitializationFailed(id, state, error));
  }
}

/**
 * The original may hold the taken name or volume. The engine does not mention it in a forced replacement; and it says nothing of one
 * whose deletion is pending.
 */
function withOriginal(run: Run, resource: Resource, owner: string | undefined, error: unknown): unknown {
  const isTaken = error instanceof ApiError && [409, 412, 422].includes(error.status);
  const mayBeOwn = resource.uniqueBy.length > 0 || resource.sharesWith !== undefined;
  if (!isTaken || !mayBeOwn) return error;
  const advice = run.program.isInState(owner) ? pendingDeletionAdvice : deleteBeforeReplaceAdvice;
  return new MachinesError(error.code, `${error.message} ${advice}`, { cause: error });
}

/**
 * Warns of an object that an earlier run reported for this owner and that still exists. If the engine was killed before
 * it saved the id, no state knows the object. It may also be in a state, so it is never changed, only reported. Objects
 * of the same name in another state are ignored.
 */
async function reportLeftover(
  run: Run,
  resource: Resource,
  owner: string | undefined,
  { api, warn }: Call,
): Promise<void> {
  if (resource.noImport !== undefined) return;
  for (const { id, endpoint, stack } of run.journal.delivered(owner)) {
    const isOfOthers = endpoint !== api.config.endpoint || (stack !== undefined && !run.stateIds.has(stack));
    if (isOfOthers || id === run.program.idInState(owner)) continue;
    // A warning must not fail the create. If the read fails, the next create asks again.
    const found = await resource
      .read({ api, run, warn, progress: () => undefined, id: resource.id.parse(id), state: undefined })
      .catch(() => undefined);
    if (found !== undefined)
      warn(
        `${resource.name} ${id} was created for this resource by an earlier run and still exists. Unless this run replaces it, no state may know of it: ` +
          "npx pulumi-machines orphans shows that; import it or delete it.",
      );
  }
}
