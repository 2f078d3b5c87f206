// What check saw of resources that are in the state, by owner. What is to replace one is checked as if there had been
// nothing, and created without a word of what it replaces: this is how we know all the same.
import { MachinesError } from "./errors.ts";
import { contextOf, type Resource, type Values } from "./resource.ts";

interface Known {
  readonly name: unknown;
  readonly mayLoseData: boolean;
}

const known = new Map<string, Known>();

/** Notes a resource that is in the state and in the program. */
export function remember(resource: Resource, olds: Values, news: Values): void {
  const { owner } = contextOf(olds);
  if (owner === undefined || Object.keys(olds).every((name) => name.startsWith("__"))) return;
  known.set(owner, {
    name: resource.autoname && olds[resource.autoname.property],
    mayLoseData: news["allowDataLoss"] === true,
  });
}

/** The name an owner's object has in the state. */
export const nameInState = (owner: string | undefined): unknown =>
  owner === undefined ? undefined : known.get(owner)?.name;

/**
 * R9: a replacement that nobody's inputs ask for, because of another provider, a replaced App, or by force. Check did not
 * see it coming; it shows in the create of what is in the state, or in the delete of what is in the program.
 */
export function refuseReplacement(resource: Resource, values: Values): void {
  const { owner } = contextOf(values);
  const seen = owner === undefined ? undefined : known.get(owner);
  if (resource.losesData === undefined || !seen || seen.mayLoseData || values["allowDataLoss"] === true) return;
  throw new MachinesError(
    "refused",
    `the ${resource.name} would be replaced together with its provider or its App, or by force, and ${resource.losesData} destroyed; ` +
      "set allowDataLoss: true to allow that. If the provider's endpoint or organization was wrong for a while, run `pulumi refresh --run-program` with the right one first.",
  );
}
