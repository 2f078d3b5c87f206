// Where Machines could go, counted from the room that create uses (spec 4.7, bodies 9.2).
import type { contract } from "../../api/index.ts";
import { refuse } from "../refusal.ts";
import type { Region } from "../runtime/regions.ts";
import type { World } from "../world.ts";
import { orgOf } from "./find.ts";
import { roomIn } from "./room.ts";
import type { Input, Rule } from "./rule.ts";

type Placements = typeof contract.platform.placements;

// ASSUMED: placements with `count: 0` tell up to 1000 Machines a region, and 50 may be created there at the same time.
const mostPerRegion = 1000;
const concurrency = 50;
// The documented defaults of the weights.
const regionWeight = 50;
const spreadWeight = 1;

/** Regions an expression names, in order, each once: codes, parts of the world, `[region]` (the nearest) and `any`. */
function regionsNamed(world: World, expression: string): Region[] {
  const open = [...world.regions.values()].filter(({ deprecated }) => !deprecated);
  const aliases: Readonly<Record<string, string>> = {
    eu: "europe",
    us: "north_america",
    na: "north_america",
    sa: "south_america",
    apac: "asia_pacific",
    ap: "asia_pacific",
    af: "africa",
  };
  const nearestFirst = byDistance(world, open);
  const named = expression
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== "")
    .flatMap((part) => {
      if (part === "any") return nearestFirst;
      const code = part === "[region]" ? world.nearest : part;
      const one = open.filter((region) => region.code === code);
      const area = nearestFirst.filter((region) => region.geo_region === (aliases[part] ?? part));
      const found = one.length > 0 ? one : area;
      // ASSUMED: placements for a region that does not exist are 400.
      if (found.length === 0)
        throw refuse(400, `invalid region, got ${JSON.stringify(part.slice(0, 40))}, no such region`);
      return found;
    });
  return [...new Set(named)];
}

function byDistance(world: World, regions: readonly Region[]): Region[] {
  const home = world.regions.get(world.nearest);
  const far = ({ latitude, longitude }: Region): number =>
    home ? (latitude - home.latitude) ** 2 + (longitude - home.longitude) ** 2 : 0;
  return [...regions].sort((a, b) => far(a) - far(b));
}

interface Candidate {
  readonly region: Region;
  readonly rank: number;
  readonly room: number;
  count: number;
}

/**
 * Places one after the other where its cost is least: the place in the expression counts `region`, every Machine that is
 * in the region already counts `spread`. ASSUMED: of the order of placements the weights alone are documented, not how they are added up.
 */
function place(candidates: readonly Candidate[], count: number, weights: { region: number; spread: number }): void {
  const cost = ({ rank, count: placed }: Candidate): number => rank * weights.region + placed * weights.spread;
  for (let placed = 0; placed < count; placed++) {
    const open = candidates.filter((candidate) => candidate.count < candidate.room);
    const best = open.toSorted((a, b) => cost(a) - cost(b))[0];
    if (!best) return;
    best.count++;
  }
}

/** The rule of the placements operation. */
export const placements: Rule<Placements> = (input: Input<Placements>) => {
  const { world, body } = input;
  orgOf(input, body.org_slug);
  const kind = body.compute?.cpu_kind ?? (body.compute ? "shared" : "performance");
  const candidates = regionsNamed(world, body.region ?? "[region],any").map((region, rank) => ({
    region,
    rank,
    room: Math.min(roomIn(world, region, kind), mostPerRegion),
    count: 0,
  }));
  const count = body.count ?? 0;
  const weights = {
    region: body.weights?.["region"] ?? regionWeight,
    spread: body.weights?.["spread"] ?? spreadWeight,
  };
  if (count === 0) for (const candidate of candidates) candidate.count = candidate.room;
  else place(candidates, count, weights);
  // A region without room, or without a Machine, is absent (bodies 9.2).
  return {
    regions: candidates
      .filter((candidate) => candidate.count > 0)
      .map((candidate) => ({
        region: candidate.region.code,
        count: candidate.count,
        concurrency: Math.min(concurrency, candidate.room),
      })),
  };
};
