// Which resource of a stack another one is about.
import type { PolicyResource } from "@pulumi/policy";
import { ifKnown } from "./unknown.ts";

/** Whether a property of a resource is about another resource, by what the program made it of or by its value. */
export function refersTo(resource: PolicyResource, property: string, other: PolicyResource): boolean {
  const made = resource.propertyDependencies[property] ?? [];
  if (made.some(({ urn }) => urn === other.urn)) return true;
  // Made of another resource of the type, it is about that one, also where its value is not known yet.
  if (made.some(({ type }) => type === other.type)) return false;
  const value = (resource.props as Record<string, unknown>)[property];
  const told = other.props as Record<string, unknown>;
  const isIt = (candidate: unknown): boolean =>
    typeof value === "string" && typeof candidate === "string" && bare(candidate) === bare(value);
  // Written out in the program: an id or a name, and none that only the service will give. Or what both are made of.
  return ["id", `${property}Id`, "name"].some((key) => isIt(ifKnown(() => told[key]))) || isIt(told[property]);
}

/** Whether one of several resources is about another one; what is unknown of some does not matter where another one is. */
export function isReferredTo(other: PolicyResource, property: string, resources: readonly PolicyResource[]): boolean {
  const unknown: unknown[] = [];
  for (const resource of resources) {
    try {
      if (refersTo(resource, property, other)) return true;
    } catch (error) {
      unknown.push(error);
    }
  }
  if (unknown.length > 0) throw unknown[0];
  return false;
}

const bare = (id: string): string => id.slice(id.lastIndexOf("/") + 1);
