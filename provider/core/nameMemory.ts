// Names that resources have in the state, by owner. What is to replace one is checked as if there had been nothing, and
// may keep the name all the same.
import { contextOf, type Resource, type Values } from "./resource.ts";

const names = new Map<string, unknown>();

/** Notes the name in a resource's old inputs. */
export function rememberName(resource: Resource, olds: Values): void {
  const { owner } = contextOf(olds);
  if (owner !== undefined && resource.autoname) names.set(owner, olds[resource.autoname.property]);
}

/** The name an owner's object has in the state, if its old inputs were seen. */
export const nameInState = (owner: string | undefined): unknown => (owner === undefined ? undefined : names.get(owner));
