// The regions of the service and their capacities.
import type { knownRegions } from "../../api/names.ts";

// ASSUMED: a region has room for 100,000 Machines by default.
const room = 100_000;

/** A region in the answer of platform.regions (docs/interface.md#regions). */
export interface Region {
  readonly code: string;
  readonly name: string;
  readonly geo_region: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly gateway_available: boolean;
  readonly requires_paid_plan: boolean;
  readonly deprecated: boolean;
  readonly mpg_available: boolean;
  readonly capacity: Capacity;
}

/** Kinds of CPU. */
export const cpuKinds = ["shared", "performance"] as const;

/** Number of Machines for which a region has capacity: of each kind, and of all together. */
export type Capacity = Readonly<Record<(typeof cpuKinds)[number] | "total", number>>;

/** A capacity with defaults for absent members. */
export const capacityOf = (said: number | Partial<Capacity> = {}): Capacity => ({
  ...{ total: room, shared: room, performance: room },
  ...(typeof said === "number" ? { total: said } : said),
});

const databases = new Set(["ams", "fra", "gru", "iad", "lax", "lhr", "nrt", "ord", "sin", "sjc", "syd", "yyz"]);
const gateways = new Set([
  "ams",
  "cdg",
  "fra",
  "gru",
  "iad",
  "jnb",
  "lax",
  "lhr",
  "nrt",
  "ord",
  "sin",
  "sjc",
  "syd",
  "yyz",
]);
const place = (
  code: (typeof knownRegions)[number],
  name: string,
  geo_region: string,
  latitude: number,
  longitude: number,
): Region => ({
  code,
  name,
  geo_region,
  latitude,
  longitude,
  gateway_available: gateways.has(code),
  requires_paid_plan: false,
  deprecated: false,
  mpg_available: databases.has(code),
  capacity: capacityOf(),
});

/** The regions of docs/interface.md#regions. */
export const regions: readonly Region[] = [
  place("ams", "Amsterdam, Netherlands", "europe", 52.37, 4.9),
  place("arn", "Stockholm, Sweden", "europe", 59.65, 17.92),
  place("bom", "Mumbai, India", "asia_pacific", 19.09, 72.87),
  place("cdg", "Paris, France", "europe", 48.86, 2.35),
  place("dfw", "Dallas, Texas (US)", "north_america", 32.78, -96.8),
  place("ewr", "Secaucus, NJ (US)", "north_america", 40.79, -74.06),
  place("fra", "Frankfurt, Germany", "europe", 50.11, 8.68),
  place("gru", "Sao Paulo, Brazil", "south_america", -23.55, -46.64),
  place("iad", "Ashburn, Virginia (US)", "north_america", 39.02, -77.54),
  place("jnb", "Johannesburg, South Africa", "africa", -26.2, 28.04),
  place("lax", "Los Angeles, California (US)", "north_america", 33.94, -118.41),
  place("lhr", "London, United Kingdom", "europe", 51.52, -0.1),
  place("nrt", "Tokyo, Japan", "asia_pacific", 35.62, 139.75),
  place("ord", "Chicago, Illinois (US)", "north_america", 41.88, -87.63),
  place("sin", "Singapore, Singapore", "asia_pacific", 1.35, 103.82),
  place("sjc", "San Jose, California (US)", "north_america", 37.35, -121.96),
  place("syd", "Sydney, Australia", "asia_pacific", -33.87, 151.21),
  place("yyz", "Toronto, Canada", "north_america", 43.65, -79.38),
];

/** ASSUMED: `ams` is the nearest region of every caller by default: a Machine or volume without a region is placed there. */
export const nearest = "ams";
