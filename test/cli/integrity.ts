// Whether the engine accepts a state.
import type { DeploymentEntry } from "../../cli/entries.ts";

/** Why the engine would refuse a list of resources (`VerifyIntegrity`); empty if it accepts the list. */
export function problemsOf(entries: readonly DeploymentEntry[]): string[] {
  const seen = new Set<string>();
  const own = new Set<string>();
  return entries.flatMap((entry) => {
    const { urn, id, provider, parent, dependencies, propertyDependencies, deletedWith, replaceWith } = entry;
    const lists = [dependencies, replaceWith, Object.values(propertyDependencies ?? {})].flat(2);
    const needs = [provider, parent, deletedWith, ...lists].filter((need) => need !== undefined && need !== "");
    const missing = needs
      .filter((need) => !seen.has(String(need)))
      .map((need) => `${urn} comes before ${String(need)}`);
    const twice = entry["delete"] !== true && own.has(urn) ? [`${urn} is there twice`] : [];
    seen.add(urn).add(`${urn}::${String(id)}`);
    if (entry["delete"] !== true) own.add(urn);
    return [...missing, ...twice];
  });
}
