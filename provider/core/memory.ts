// What check saw of resources that are in the state, by owner. What is to replace one is checked as if there had been
// nothing, and created without a word of what it replaces: this is how we know all the same.
import { isProtected, mayLoseData, protectedFrom, unseenReplacement } from "./dataLoss.ts";
import { contextOf, type Resource, type Values } from "./resource.ts";

interface Known {
  readonly name?: unknown;
  /** Inputs of what is in the state. */
  readonly inputs?: Values;
  /** Id of what is in the state. */
  readonly id?: string;
  readonly inState: boolean;
  readonly mayLose: boolean;
}

const known = new Map<string, Known>();

/** Notes a resource of the program, and what check is told of it as it was. */
export function remember(resource: Resource, olds: Values, news: Values): void {
  const owner = contextOf(news).owner ?? contextOf(olds).owner;
  if (owner === undefined) return;
  const before = known.get(owner);
  const mayLose = mayLoseData(resource, news);
  // The engine checks a replacement a second time, without what it replaces; one by force in that way alone.
  const isThere = Object.keys(olds).some((name) => !name.startsWith("__"));
  known.set(
    owner,
    isThere
      ? { name: resource.autoname && olds[resource.autoname.property], inputs: olds, inState: true, mayLose }
      : { inState: false, ...before, mayLose },
  );
}

/** Notes the id of what is in the state: what is deleted under another one is a leftover. */
export function rememberId(id: string, state: Values): void {
  const { owner } = contextOf(state);
  const seen = owner === undefined ? undefined : known.get(owner);
  if (owner !== undefined && seen) known.set(owner, { ...seen, id });
}

/** What was created in this run and not looked at since, by type and id. */
const made = new Set<string>();

/** Notes what was created. */
export function rememberMade(resource: Resource, id: string): void {
  if (resource.takesOver) made.add(`${resource.name} ${id}`);
}

/** What is looked at or changed by its id is the program's own, and no leftover of a replacement. */
export const settleMade = (resource: Resource, id: string): void => void made.delete(`${resource.name} ${id}`);

/**
 * R4: whether what is to be deleted was taken over in this run. The engine makes a replacement, or the same thing under
 * another name, before it deletes; where it does so without asking for a diff, what is deleted is the new one. Nothing is
 * made and deleted in one run otherwise.
 */
export const isTakenOver = (resource: Resource, id: string): boolean => made.has(`${resource.name} ${id}`);

/** Forgets everything: another run begins in this process. */
export function forgetAll(): void {
  known.clear();
  made.clear();
}

/** Whether an owner's object is in the state, so that what is created takes its place. */
export const isInState = (owner: string | undefined): boolean =>
  owner !== undefined && known.get(owner)?.inState === true;

/** The id an owner's object has in the state, as far as this run was told. */
export const idInState = (owner: string | undefined): string | undefined =>
  owner === undefined ? undefined : known.get(owner)?.id;

/** The name an owner's object has in the state. */
export const nameInState = (owner: string | undefined): unknown =>
  owner === undefined ? undefined : known.get(owner)?.name;

/** The inputs an owner's object has in the state: what is to replace it is checked as if there had been nothing. */
export const inputsInState = (owner: string | undefined): Values =>
  (owner === undefined ? undefined : known.get(owner)?.inputs) ?? {};

const knownTo = (values: Values): Known | undefined => known.get(contextOf(values).owner ?? "");

/**
 * R9: a replacement that nobody's inputs ask for, because of another provider, a replaced App, or by force. Check did not
 * see it coming; it shows in the create of what is in the state.
 */
export function refuseReplacement(resource: Resource, inputs: Values): void {
  const seen = knownTo(inputs);
  if (resource.losesData === undefined || mayLoseData(resource, inputs)) return;
  if (seen?.inState && !seen.mayLose) throw unseenReplacement(resource);
}

/**
 * R9: the deletion of what is in the program, which is such a replacement; and of what the program no longer has, where that
 * is protected. What was left over when it was replaced goes: its replacement was allowed.
 */
export function refuseLoss(resource: Resource, state: Values, id: string): void {
  const seen = knownTo(state);
  if (resource.losesData === undefined || mayLoseData(resource, state)) return;
  if (seen === undefined) {
    if (isProtected(resource)) throw protectedFrom(resource, id);
    return;
  }
  const isLeftover = seen.id !== undefined && seen.id !== id;
  if (!seen.mayLose && !isLeftover) throw unseenReplacement(resource);
}
