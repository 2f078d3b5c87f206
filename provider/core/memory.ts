// What check saw of resources that are in the state, by owner. What is to replace one is checked as if there had been
// nothing, and created without a word of what it replaces: this is how we know all the same.
import { MachinesError } from "./errors.ts";
import { contextOf, type Resource, type Values } from "./resource.ts";

interface Known {
  readonly name?: unknown;
  /** Inputs of what is in the state. */
  readonly inputs?: Values;
  /** Id of what is in the state. */
  readonly id?: string;
  readonly inState: boolean;
  readonly mayLoseData: boolean;
}

const known = new Map<string, Known>();

/** Notes a resource of the program, and what check is told of it as it was. */
export function remember(resource: Resource, olds: Values, news: Values): void {
  const owner = contextOf(news).owner ?? contextOf(olds).owner;
  if (owner === undefined) return;
  const before = known.get(owner);
  const mayLoseData = news["allowDataLoss"] === true;
  // The engine checks a replacement a second time, without what it replaces; one by force in that way alone.
  const isThere = Object.keys(olds).some((name) => !name.startsWith("__"));
  known.set(
    owner,
    isThere
      ? { name: resource.autoname && olds[resource.autoname.property], inputs: olds, inState: true, mayLoseData }
      : { inState: false, ...before, mayLoseData },
  );
}

/** Notes the id of what is in the state: what is deleted under another one is a leftover. */
export function rememberId(id: string, state: Values): void {
  const { owner } = contextOf(state);
  const seen = owner === undefined ? undefined : known.get(owner);
  if (owner !== undefined && seen) known.set(owner, { ...seen, id });
}

/** Forgets everything: another run begins in this process. */
export const forgetAll = (): void => known.clear();

/** The name an owner's object has in the state. */
export const nameInState = (owner: string | undefined): unknown =>
  owner === undefined ? undefined : known.get(owner)?.name;

/** The inputs an owner's object has in the state: what is to replace it is checked as if there had been nothing. */
export const inputsInState = (owner: string | undefined): Values =>
  (owner === undefined ? undefined : known.get(owner)?.inputs) ?? {};

/**
 * R9: a replacement that nobody's inputs ask for, because of another provider, a replaced App, or by force. Check did not
 * see it coming; it shows in the create of what is in the state, or in the delete (of an `id`) of what is in the program.
 */
export function refuseReplacement(resource: Resource, values: Values, id?: string): void {
  const { owner } = contextOf(values);
  const seen = owner === undefined ? undefined : known.get(owner);
  if (resource.losesData === undefined || !seen || seen.mayLoseData || values["allowDataLoss"] === true) return;
  const leftover = id !== undefined && seen.id !== undefined && seen.id !== id;
  if (leftover || (id === undefined && !seen.inState)) return;
  throw new MachinesError(
    "refused",
    `the ${resource.name} would be replaced together with its provider or its App, or by force, and ${resource.losesData} destroyed; ` +
      "set allowDataLoss: true to allow that, also to end a replacement that was begun. If the provider's endpoint or organization was wrong for a while, run `pulumi refresh --run-program` with the right one first.",
  );
}
