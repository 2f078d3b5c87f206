// The resources of a deployment as an export has them, and what each needs to come before it. No I/O.
import { isObject } from "../api/schema.ts";
import type { Values } from "../provider/core/resource.ts";

/** The relevant part of a resource in a deployment. */
export interface DeploymentEntry extends Values {
  readonly urn: string;
  readonly id?: string;
}

/** The dependencies of a resource: the provider as `urn::id`, everything else by its URN. */
function needsOf({
  provider,
  parent,
  dependencies,
  propertyDependencies,
  deletedWith,
  replaceWith,
}: DeploymentEntry): readonly string[] {
  const lists = isObject(propertyDependencies) ? Object.values(propertyDependencies) : [];
  const all: unknown[] = [provider, parent, deletedWith, dependencies, replaceWith, lists].flat(3);
  return all.filter((need) => typeof need === "string" && need !== "") as string[];
}

/** What others may need of an entry. */
const keysOf = ({ urn, id = "" }: DeploymentEntry): readonly string[] => [urn, `${urn}::${id}`];

/** An entry, preceded by its dependencies that `before` does not have. `rest` has it, and keeps its order. */
export function withNeeds(
  entry: DeploymentEntry,
  before: readonly DeploymentEntry[],
  rest: readonly DeploymentEntry[],
): DeploymentEntry[] {
  const known = new Set(before.flatMap(keysOf));
  const needed = new Set<DeploymentEntry>([entry]);
  const add = (one: DeploymentEntry): void => {
    for (const need of needsOf(one)) {
      const found = known.has(need) ? undefined : rest.find((other) => keysOf(other).includes(need));
      if (!found || needed.has(found)) continue;
      needed.add(found);
      add(found);
    }
  };
  add(entry);
  return rest.filter((one) => needed.has(one));
}

/** The entries in their order, except that each comes after all that it needs. */
export function inOrder(entries: readonly DeploymentEntry[]): DeploymentEntry[] {
  const byKey = new Map<string, DeploymentEntry[]>();
  for (const entry of entries) for (const key of keysOf(entry)) byKey.set(key, [...(byKey.get(key) ?? []), entry]);
  const begun = new Set<DeploymentEntry>();
  const ordered: DeploymentEntry[] = [];
  const add = (entry: DeploymentEntry): void => {
    if (begun.has(entry)) return;
    begun.add(entry);
    for (const need of needsOf(entry)) for (const needed of byKey.get(need) ?? []) add(needed);
    ordered.push(entry);
  };
  for (const entry of entries) add(entry);
  return ordered;
}
