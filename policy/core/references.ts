// Which resource of a stack another one is about.
import type { PolicyResource } from "@pulumi/policy";

/** Whether a property of a resource comes from another resource, by what the program made it of or by its value. */
export function refersTo(resource: PolicyResource, property: string, other: PolicyResource): boolean {
  const made = resource.propertyDependencies[property] ?? [];
  if (made.length > 0) return made.some(({ urn }) => urn === other.urn);
  const value = (resource.props as Record<string, unknown>)[property];
  const told = other.props as Record<string, unknown>;
  // Written out in the program: an id, or the bare name.
  return (
    typeof value === "string" &&
    [told["id"], told[property], told["name"]].some(
      (candidate) => typeof candidate === "string" && bare(candidate) === bare(value),
    )
  );
}

const bare = (id: string): string => id.slice(id.lastIndexOf("/") + 1);
