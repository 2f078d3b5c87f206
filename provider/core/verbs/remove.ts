// The verb delete, which is called remove, because `delete` is a word of the language.
import { ignoreIfDeleted } from "../../client/existence.ts";
import { confirmSeen } from "../observations/observations.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import { formerOwnersIn } from "../run/program.ts";
import { forHandler } from "../state.ts";
import { withStoredConfiguration } from "../storedConfiguration.ts";
import { callOf, placeOf, type Caller } from "./caller.ts";

/**
 * Deletes the object; if it is proved to be gone, nothing is left to do (R8). It is kept if another resource of the
 * program claims it (R12), and the deletion is refused if it is guarded and still in the program (R11).
 */
export const remove = (resource: Resource, id: string, stored: Values, caller: Caller): Promise<void> =>
  withStoredConfiguration(caller, `${resource.name} ${id}`, () => removeNow(resource, id, stored, caller));

async function removeNow(resource: Resource, id: string, stored: Values, caller: Caller): Promise<void> {
  const { run } = caller;
  const { owner, name } = contextOf(stored);
  run.stateIds.note(contextOf(stored).stack);
  const holder = resource.claims === undefined ? run.program.remainingResource(resource, id) : undefined;
  if (holder !== undefined) {
    if (holder !== name)
      caller.warn(`${resource.name} ${id} is kept: ${JSON.stringify(holder)} of this program has it.`);
    return;
  }
  run.guards.refuseDeletion(resource, stored, id);
  const state = run.program.withCurrentOptions(resource, id, stored);
  const parts = resource.id.parse(id);
  const confirmed = await confirmSeen(resource, { id, inputs: undefined, state }, caller);
  const call = { ...callOf(resource, "delete", state, caller), ...confirmed };
  const place = placeOf(resource, parts);
  const endDeletion = run.deletions.begin(call.api, place.name);
  try {
    const otherClaimant = (claim: string) => run.program.remainingClaimant(claim, owner);
    const formerOwners = formerOwnersIn(stored, owner);
    const args = { id: parts, state: forHandler(resource, state), owner, formerOwners, otherClaimant };
    const work = () => resource.delete({ ...call, ...args });
    await ignoreIfDeleted(call.api, place, work);
    if (run.unfinished.of(resource.name, owner)?.id === id) run.unfinished.forget(resource.name, owner);
    run.journal.forget(owner, id);
  } finally {
    endDeletion();
  }
}
