// The room in a region, as create, placements and the list of regions see it.
import { cpuKinds, type Region } from "../runtime/regions.ts";
import type { World } from "../world.ts";

type Kind = (typeof cpuKinds)[number];

interface Use {
  readonly cpu_kind: string;
  readonly machines: number;
}

const useOf = (world: World, region: string): Use[] =>
  world.store.all<Use>("SELECT cpu_kind, machines FROM region_use WHERE region = ?", region);

/** Machines of a kind a region still has room for, whatever those of other kinds take. */
export function roomFor(world: World, { code, capacity }: Region, kind: Kind): number {
  const used = useOf(world, code).find(({ cpu_kind }) => cpu_kind === kind)?.machines ?? 0;
  return Math.max(0, capacity[kind] - used);
}

/** Machines of a kind a region takes more of; of all kinds together when none is named. */
export function roomIn(world: World, region: Region, kind?: Kind): number {
  const used = useOf(world, region.code).reduce((sum, { machines }) => sum + machines, 0);
  const kinds: readonly Kind[] = kind === undefined ? cpuKinds : [kind];
  const ofKinds = kinds.reduce((sum, one) => sum + roomFor(world, region, one), 0);
  return Math.min(Math.max(0, region.capacity.total - used), ofKinds);
}
