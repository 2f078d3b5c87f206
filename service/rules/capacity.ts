// The free capacity of a region, for create, placements and the list of regions.
import { cpuKinds, type Region } from "../runtime/regions.ts";
import type { Context } from "../context.ts";

type Kind = (typeof cpuKinds)[number];

interface Use {
  readonly cpu_kind: string;
  readonly machines: number;
}

const useOf = (context: Context, region: string): Use[] =>
  context.store.all<Use>("SELECT cpu_kind, machines FROM region_use WHERE region = ?", region);

/** Number of Machines of a kind for which a region has capacity, regardless of other kinds. */
export const capacityFor = (context: Context, region: Region, kind: Kind): number =>
  capacityLeft(region, kind, useOf(context, region.code));

function capacityLeft({ capacity }: Region, kind: Kind, use: readonly Use[]): number {
  const used = use.find(({ cpu_kind }) => cpu_kind === kind)?.machines ?? 0;
  return Math.max(0, capacity[kind] - used);
}

/** Number of further Machines that a region accepts, of one kind or of all kinds together. */
export function capacityIn(context: Context, region: Region, kind?: Kind): number {
  const use = useOf(context, region.code);
  const used = use.reduce((sum, { machines }) => sum + machines, 0);
  const kinds: readonly Kind[] = kind === undefined ? cpuKinds : [kind];
  const ofKinds = kinds.reduce((sum, one) => sum + capacityLeft(region, one, use), 0);
  return Math.min(Math.max(0, region.capacity.total - used), ofKinds);
}
