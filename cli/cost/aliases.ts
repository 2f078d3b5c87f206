// The URNs that resources of a plan have in the state: others than in the plan, where aliases rename or move them.
import type { Alias, Plans } from "../savedPlan.ts";
import { nameIn } from "../stackState.ts";

const typesIn = (urn: string): string => urn.split("::")[2] ?? "";
const typeIn = (urn: string): string => typesIn(urn).split("$").at(-1) ?? "";

/** A URN below a parent, whose types are part of it. */
function below(parent: string | undefined, place: string, type: string, name: string): string {
  const types = typesIn(parent ?? "");
  const within = types === "" || types === "pulumi:pulumi:Stack" ? "" : `${types}$`;
  return `${place}::${within}${type}::${name}`;
}

/**
 * Finds the URN that a resource has in the state, as the engine does: by its own aliases, and by those of its parents.
 * @param known the URNs in the state
 */
export function urnsBefore(plans: Plans, known: ReadonlySet<string>): (urn: string) => string | undefined {
  const found = new Map<string, string | undefined>();
  const before = (urn: string): string | undefined => {
    if (known.has(urn)) return urn;
    if (!found.has(urn)) {
      // Set first, because aliases in a circle have no end.
      found.set(urn, undefined);
      const former = aliasesOf(urn).find((alias) => known.has(alias));
      found.set(urn, former);
    }
    return found.get(urn);
  };

  /** Parts that an alias leaves out are those of the resource. */
  const urnOf = (alias: Alias, urn: string, ownParent: string | undefined): string => {
    if (alias.URN) return alias.URN;
    const [root = "", project = ""] = urn.split("::");
    const place = `${alias.Stack ? `urn:pulumi:${alias.Stack}` : root}::${alias.Project || project}`;
    const parent = alias.NoParent ? undefined : alias.Parent ? (before(alias.Parent) ?? alias.Parent) : ownParent;
    return below(parent, place, alias.Type || typeIn(urn), alias.Name || nameIn(urn));
  };

  const aliasesOf = (urn: string): readonly string[] => {
    const { parent, structuredAliases = [] } = plans[urn]?.goal ?? {};
    const own = structuredAliases.map((alias) => urnOf(alias, urn, parent));
    const parentBefore = parent === undefined ? undefined : before(parent);
    if (parent === undefined || parentBefore === undefined || parentBefore === parent) return own;
    const place = urn.split("::").slice(0, 2).join("::");
    // A name that begins with that of the parent is renamed with it.
    const nameBefore = (name: string): string =>
      name.startsWith(nameIn(parent)) ? nameIn(parentBefore) + name.slice(nameIn(parent).length) : name;
    const inherited = [urn, ...own].map((one) => below(parentBefore, place, typeIn(one), nameBefore(nameIn(one))));
    return [...own, ...inherited];
  };
  return before;
}
