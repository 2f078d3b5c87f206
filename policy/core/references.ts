// Which resource of a stack another one is about.
import type { PolicyResource } from "@pulumi/policy";

/** Whether a property of a resource is about another resource, by what the program made it of or by its value. */
export function refersTo(resource: PolicyResource, property: string, other: PolicyResource): boolean {
  const made = resource.propertyDependencies[property] ?? [];
  if (made.some(({ urn }) => urn === other.urn)) return true;
  // Made of another resource of the type, it is about that one, also where its value is not known yet.
  if (made.some(({ type }) => type === other.type)) return false;
  const value = (resource.props as Record<string, unknown>)[property];
  const told = other.props as Record<string, unknown>;
  // Written out in the program, or made of what both are made of: an id, or the bare name.
  return (
    typeof value === "string" &&
    [told["id"], told[`${property}Id`], told[property], told["name"]].some(
      (candidate) => typeof candidate === "string" && bare(candidate) === bare(value),
    )
  );
}

const bare = (id: string): string => id.slice(id.lastIndexOf("/") + 1);
