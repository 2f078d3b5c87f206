// Platform (spec 4.7, bodies 9.2).
import type { contract } from "../../api/index.ts";
import { refuse } from "../refusal.ts";
import { cpuKinds, type Region } from "../runtime/regions.ts";
import type { World } from "../world.ts";
import { placements } from "./placements.ts";
import type { Rules } from "./rule.ts";

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

/** The region asked for, or the nearest. ASSUMED: status and text for one that does not exist. */
export function regionOf(world: World, code: string | undefined): Region {
  const region = world.regions.get(code ?? world.nearest);
  if (!region || region.deprecated) throw refuse(422, `region ${JSON.stringify(code)} not found`);
  return region;
}

/** The rules of the platform operations. */
export const platform: Rules<typeof contract.platform> = {
  regions({ world }) {
    const regions = [...world.regions.values()].map((region) => ({ ...region, capacity: roomIn(world, region) }));
    return { nearest: world.nearest, regions };
  },

  placements,
};
