// How many Machines a fleet has in which region.

/** How a fleet says how many Machines it has in which region. */
export interface Placement {
  readonly regions?: Readonly<Record<string, number>> | undefined;
  readonly count?: number | undefined;
  readonly spreadOver?: readonly string[] | undefined;
}

/** The wanted number of Machines by region. */
export function regionsOf({ regions, count = 0, spreadOver = [] }: Placement): Readonly<Record<string, number>> {
  if (regions) return regions;
  const distinct = [...new Set(spreadOver)];
  const each = Math.floor(count / Math.max(1, distinct.length));
  return Object.fromEntries(distinct.map((region, i) => [region, each + (i < count % distinct.length ? 1 : 0)]));
}

/** The members that the wanted counts add up to. */
export const totalOf = (regions: Readonly<Record<string, number>>): number =>
  Object.values(regions).reduce((sum, count) => sum + count, 0);
