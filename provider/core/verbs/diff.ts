// The verb diff: what changed, whether the engine may replace the object for it, and whether the state needs a rewrite.
import { confirmPlaces } from "../../client/existence.ts";
import { known } from "../check.ts";
import { MachinesError } from "../../client/errors.ts";
import { inputChangeRefusal, mayLoseData } from "../dataLoss.ts";
import { diffInputs, type Diff } from "../diff.ts";
import { observePlanned } from "../observations/observations.ts";
import { contextOf, type Resource, type Values } from "../resource.ts";
import type { Run } from "../run/run.ts";
import { forHandler, isComputed } from "../state.ts";
import { located, pathText } from "../values.ts";
import { callOf, placeOf, type Caller } from "./caller.ts";

/** A diff, and what else makes an update necessary. */
export interface Compared extends Diff {
  /**
   * Whether an update has to rewrite the state although no input changed: a step after the last change failed, an alias
   * renamed the resource, or the protection of its cluster changed.
   */
  readonly mustRewrite: boolean;
}

/** Compares a state with the inputs of the program. @throws MachinesError `refused` for a replacement that is not allowed */
export async function diff(
  resource: Resource,
  id: string,
  state: Values,
  news: Values,
  caller: Caller,
): Promise<Compared> {
  // R14: the App or cluster of each object in the state must exist there too.
  if (caller.hasMoved)
    await confirmPlaces(callOf(resource, "read", {}, caller).api, [placeOf(resource, resource.id.parse(id))]);
  const found = guardedDiff(caller.run, resource, id, state, news);
  await refuseToReplace(resource, id, news, found, caller);
  const rewrites = mustRewrite(caller.run, resource, state, news);
  // After a refresh, the engine compares with the inputs in the state, too. These are not the program's.
  const isDeclared = caller.run.program.of(contextOf(news).owner) !== undefined;
  if (isDeclared && (found.changes.length > 0 || rewrites))
    await observePlanned(resource, { id, inputs: news, state }, caller);
  return { ...found, mustRewrite: rewrites };
}

/**
 * The diff, with the refusals that check cannot make (R3, R9). Check does not see the service's choice for an omitted input.
 * After an import, it does not see that the state lacks the value, and after a failed update not what the object still is.
 */
function guardedDiff(run: Run, resource: Resource, id: string, state: Values, news: Values): Diff {
  const found = withRecreation(diffInputs(resource, state, news), run.program.recreatedParentInput(resource, id));
  run.stateIds.note(contextOf(state).stack);
  run.program.noteDiff(resource, id, state, news, found.replaces.length > 0);
  const lost = run.guards.dataLossByParent(resource, state, news);
  if (lost) throw new MachinesError("refused", `${pathText(lost.path)}: ${lost.message}`);
  // A refresh declares nothing, so it is never refused.
  const isDeclared = run.program.isInState(contextOf(news).owner);
  const refused = isDeclared ? resource.refuseFromState?.(state, known(news) as Values) : undefined;
  if (refused) throw new MachinesError("refused", located(refused.path, refused.message));
  const leftOut = contextOf(state).left ?? [];
  const moved = found.replaces.find(
    (name) => leftOut.includes(name) || (isComputed(resource, name) && state[name] === undefined),
  );
  if (moved !== undefined && resource.losesData !== undefined && !mayLoseData(resource, news))
    throw new MachinesError("refused", `${moved}: ${inputChangeRefusal(resource, moved)}`);
  return found;
}

/** The diff of an object that was deleted with its parent: it has to be created again. */
function withRecreation(found: Diff, parent: string | undefined): Diff {
  if (parent === undefined || found.replaces.includes(parent)) return found;
  const change = { path: [parent], kind: "update", unknown: false, replaces: true } as const;
  return { ...found, changes: [...found.changes, change], replaces: [...found.replaces, parent] };
}

/**
 * R11: refuses a replacement for a reason that only the service knows. Check cannot ask, and a create would be too
 * late. In an update without a preview, the diff is the last moment. A refresh declares nothing, so it is never
 * refused.
 */
async function refuseToReplace(
  resource: Resource,
  id: string,
  news: Values,
  { replaces }: Diff,
  caller: Caller,
): Promise<void> {
  const isDeclared = caller.run.program.isInState(contextOf(news).owner);
  if (replaces.length === 0 || !resource.refuseToReplace || !isDeclared) return;
  const { api } = callOf(resource, "read", {}, caller);
  const why = await resource
    .refuseToReplace(resource.id.parse(id), forHandler(resource, news), api)
    .catch(() => undefined);
  if (why !== undefined) throw new MachinesError("refused", `${replaces[0] ?? "id"}: ${why}`);
}

/** A state of an earlier version lacks the protection of its cluster; it gets it with the next update. */
function mustRewrite(run: Run, resource: Resource, state: Values, news: Values): boolean {
  const { unfinished, inProtected: before } = contextOf(state);
  const { inProtected: now } = run.guards.protectionOf(resource, news);
  const isChanged = now !== undefined && before !== undefined && now !== before;
  return unfinished === true || isRenamed(resource, state, news) || isChanged;
}

/**
 * Whether an alias renamed the resource. A deletion gets only the state, and its guard reads the owner there (R11). So an
 * update has to write the new owner into the state; it sends nothing.
 */
const isRenamed = ({ losesData }: Resource, olds: Values, news: Values): boolean =>
  losesData !== undefined && contextOf(olds).owner !== undefined && contextOf(olds).owner !== contextOf(news).owner;
