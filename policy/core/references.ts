// References between the resources of a stack.
import type { PolicyResource } from "@pulumi/policy";
import { ifKnown } from "./unknown.ts";

/** Whether a property of a resource refers to another resource, by the program's dependencies or by its value. */
export function refersTo(resource: PolicyResource, property: string, other: PolicyResource): boolean {
  const dependencies = resource.propertyDependencies[property] ?? [];
  if (dependencies.some(({ urn }) => urn === other.urn)) return true;
  // A property computed from another resource of the type refers to that one, even if its value is not yet known.
  if (dependencies.some(({ type }) => type === other.type)) return false;
  const value = (resource.props as Record<string, unknown>)[property];
  const properties = other.props as Record<string, unknown>;
  const isIt = (candidate: unknown): boolean =>
    typeof value === "string" && typeof candidate === "string" && bare(candidate) === bare(value);
  // A literal id or name, without a value that only the service knows; or the same source for both.
  return (
    ["id", `${property}Id`, "name"].some((key) => isIt(ifKnown(() => properties[key]))) || isIt(properties[property])
  );
}

/** Whether one of several resources refers to another one. Unknown parts of some do not matter if another one does. */
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
