// Simulated placements of Machines, with the same capacities as create (docs/interface.md#placements).
import type { contract } from "../../api/index.ts";
import { refuse } from "../refusal.ts";
import type { Region } from "../runtime/regions.ts";
import type { Context } from "../context.ts";
import { orgOf } from "./find.ts";
import { capacityIn } from "./capacity.ts";
import type { Input, Rule } from "./rule.ts";

type Placements = typeof contract.platform.placements;

// ASSUMED: placements with `count: 0` return up to 1000 Machines per region, of which 50 may be created at once.
const mostPerRegion = 1000;
const concurrency = 50;
// The documented default weights.
const regionWeight = 50;
const spreadWeight = 1;

const everywhere = "[region],any";

// Parts of the world by their short names.
const aliases: Readonly<Record<string, string>> = {
  eu: "europe",
  na: "north_america",
  sa: "south_america",
  apac: "asia_pacific",
  ap: "asia_pacific",
  af: "africa",
};

/** Whether a region is in a part of the world. ASSUMED: `us` and `usa` are the regions of North America whose names end in `(US)`. */
function isIn({ geo_region, name }: Region, part: string): boolean {
  if (part === "us" || part === "usa") return geo_region === "north_america" && name.endsWith("(US)");
  return geo_region === (Object.hasOwn(aliases, part) ? aliases[part] : part);
}

/** The regions of an expression in order, each once: codes, parts of the world, `[region]` (the nearest) and `any`. */
function regionsNamed(context: Context, expression: string): Region[] {
  const open = [...context.regions.values()].filter(({ deprecated }) => !deprecated);
  const nearestFirst = byDistance(context, open);
  const named = partsOf(expression).flatMap((part) => {
    // ASSUMED: brackets around a part of the placement expression have no meaning; in the documented default, `[region],any`, they
    // mark the place of a region's code.
    const name = part === "[region]" ? context.nearest : part.replace(/^\[(.*)\]$/, "$1").trim();
    if (name === "any") return nearestFirst;
    const one = open.filter(({ code }) => code === name);
    const found = one.length > 0 ? one : nearestFirst.filter((region) => isIn(region, name));
    // ASSUMED: placements for a region that does not exist are 400.
    if (found.length === 0)
      throw refuse(400, `invalid region, got ${JSON.stringify(part.slice(0, 40))}, no such region`);
    return found;
  });
  return [...new Set(named)];
}

/** The parts between the commas. ASSUMED: an empty placement expression is the default one. */
function partsOf(expression: string): string[] {
  const parts = expression
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== "");
  return parts.length > 0 ? parts : everywhere.split(",");
}

function byDistance(context: Context, regions: readonly Region[]): Region[] {
  const home = context.regions.get(context.nearest);
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
 * Places each Machine where its cost is lowest: the position in the expression costs `region`, and every Machine that is already in
 * the region costs `spread`. ASSUMED: the costs of a region are added; the platform documents only the weights of placements.
 */
function place(candidates: readonly Candidate[], count: number, weights: { region: number; spread: number }): void {
  const cost = ({ rank, count: placed }: Candidate): number => rank * weights.region + placed * weights.spread;
  // Up to 1000 for each of dozens of regions: sorting them each time would be slow.
  for (let placed = 0; placed < count; placed++) {
    let best: Candidate | undefined;
    for (const candidate of candidates)
      if (candidate.count < candidate.room && (!best || cost(candidate) < cost(best))) best = candidate;
    if (!best) return;
    best.count++;
  }
}

/** The rule of the placements operation. */
export const placements: Rule<Placements> = (input: Input<Placements>) => {
  const { context, body } = input;
  orgOf(input, body.org_slug);
  const kind = body.compute?.cpu_kind ?? (body.compute ? "shared" : "performance");
  const candidates = regionsNamed(context, body.region ?? everywhere).map((region, rank) => ({
    region,
    rank,
    room: Math.min(capacityIn(context, region, kind), mostPerRegion),
    count: 0,
  }));
  const count = body.count ?? 0;
  const weights = {
    region: body.weights?.["region"] ?? regionWeight,
    spread: body.weights?.["spread"] ?? spreadWeight,
  };
  if (count === 0) for (const candidate of candidates) candidate.count = candidate.room;
  else place(candidates, count, weights);
  // A full region, or one without a Machine, is omitted (docs/interface.md#placements).
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
