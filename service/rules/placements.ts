// Where Machines could go, counted from the room that create uses (docs/interface.md#placements).
import type { contract } from "../../api/index.ts";
import { refuse } from "../refusal.ts";
import type { Region } from "../runtime/regions.ts";
import type { Context } from "../context.ts";
import { orgOf } from "./find.ts";
import { capacityIn } from "./capacity.ts";
import type { Input, Rule } from "./rule.ts";

type Placements = typeof contract.platform.placements;

// ASSUMED: placements with `count: 0` tell up to 1000 Machines a region, and 50 may be created there at the same time.
const mostPerRegion = 1000;
const concurrency = 50;
// The documented defaults of the weights.
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

/** Regions an expression names, in order, each once: codes, parts of the world, `[region]` (the nearest) and `any`. */
function regionsNamed(context: Context, expression: string): Region[] {
  const open = [...context.regions.values()].filter(({ deprecated }) => !deprecated);
  const nearestFirst = byDistance(context, open);
  const named = partsOf(expression).flatMap((part) => {
    // ASSUMED: brackets around a region or another part of the expression of placements say no more than the part itself
    // does; in the documented default, `[region],any`, they show where the code of a region goes.
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

/** What stands between the commas. ASSUMED: an expression of placements that names nothing is the default one. */
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
 * Places one after the other where its cost is least: the place in the expression counts `region`, every Machine that is
 * in the region already counts `spread`. ASSUMED: of the order of placements the weights alone are documented, not how they are added up.
 */
function place(candidates: readonly Candidate[], count: number, weights: { region: number; spread: number }): void {
  const cost = ({ rank, count: placed }: Candidate): number => rank * weights.region + placed * weights.spread;
  // Up to 1000 for each of dozens of regions: sorting them every time would take long.
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
  // A region without room, or without a Machine, is absent (docs/interface.md#placements).
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
