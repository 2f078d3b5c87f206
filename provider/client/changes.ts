// Changes in an organization since the last read (docs/interface.md#organization-lists). The lists show changes late
// and in no certain order. So every read starts a little before the end of the last one, and leaves out reported
// changes.
import { MachinesError } from "./errors.ts";
import type { Api, AnswerOf } from "./api.ts";
import { orgMachinePages, orgVolumePages } from "./pages.ts";
import { apiOf, type Client } from "./publicClient.ts";

type OrgMachine = AnswerOf<"orgs", "machines">["machines"][number];
type OrgVolume = AnswerOf<"orgs", "volumes">["volumes"][number];
type Item = OrgMachine | OrgVolume;
type ItemOf<Kind> = Kind extends "machines" ? OrgMachine : OrgVolume;

/** The position where a read ended: plain JSON, to be kept in a file until the next one. */
export interface Position {
  /** RFC 3339 time of the latest change seen; empty if there was none. */
  readonly at: string;
  /** Reported changes that the next read from here returns again. */
  readonly told: readonly string[];
}

/** Selects the changes to read. */
export interface ChangesOptions<Kind extends "machines" | "volumes"> {
  /** Slug of the organization; the client's by default. */
  readonly organization?: string | undefined;
  readonly kind: Kind;
  /** `next` of the previous read, or an RFC 3339 time to begin at; by default the beginning. */
  readonly since?: Position | string | undefined;
  /**
   * Seconds until a change appears in the list, 60 by default. The real time is not documented: a longer overlap only costs
   * larger answers.
   */
  readonly overlapSeconds?: number | undefined;
}

/** The result of a read. */
export interface Changes<T> {
  /**
   * The changed objects in their current state, oldest change first. Destroyed ones are included, and their state says so.
   */
  readonly changes: readonly T[];
  /** The position where the next read begins. */
  readonly next: Position;
  /** Regions that did not answer; the next read begins where this one did, so that their changes are not missed. */
  readonly errorRegions: readonly string[];
}

// ASSUMED: a change shows up in the organization lists within a minute (docs/interface.md#organization-lists names no
// time).
const usualOverlap = 60;

/** Reads the changes in an organization since the last read, and the position where the next read begins. */
export async function changesSince<Kind extends "machines" | "volumes">(
  client: Client,
  { organization = client.organization, kind, since, overlapSeconds = usualOverlap }: ChangesOptions<Kind>,
): Promise<Changes<ItemOf<Kind>>> {
  const from = positionOf(since);
  const overlap = overlapSeconds * 1000;
  const { items, errorRegions } = await readPage(apiOf(client), kind, organization, before(from.at, overlap));
  const told = new Set(from.told);
  // A time is the program's starting point. Older changes were returned only because of the overlap.
  const isOld = (item: Item) => typeof since === "string" && timeOf(item) < secondOf(since);
  const changes = items.filter((item) => !told.has(wordsOf(item)) && !isOld(item));
  const latest = items.reduce(
    (at, item) => (timeOf(item) > timeOf({ updatedAt: at }) ? (item.updatedAt ?? at) : at),
    from.at,
  );
  const at = errorRegions.length > 0 ? from.at : latest;
  const least = secondOf(before(at, overlap));
  const met = items.filter((item) => timeOf(item) >= least).map(wordsOf);
  // A region that did not answer this time will report its earlier changes again.
  const kept = errorRegions.length > 0 ? [...new Set([...from.told, ...met])] : met;
  return { changes, next: { at, told: kept }, errorRegions };
}

function positionOf(since: Position | string | undefined): Position {
  if (typeof since !== "string") return since ?? { at: "", told: [] };
  if (Number.isNaN(Date.parse(since)))
    throw new MachinesError("invalid-input", `since: got ${JSON.stringify(since)}; must be an RFC 3339 time`);
  return { at: since, told: [] };
}

const before = (at: string, milliseconds: number): string =>
  at === "" ? "" : new Date(Date.parse(at) - milliseconds).toISOString();

/** Milliseconds since 1970; 0 for an object without a time. */
const timeOf = ({ updatedAt = "" }: { readonly updatedAt?: string | undefined }): number => Date.parse(updatedAt) || 0;

// ASSUMED: the lists compare exact times and show them cut to the second.
const secondOf = (time: string): number => Math.floor(timeOf({ updatedAt: time }) / 1000) * 1000;

/** A change as a text. Two changes at the same time differ in their content. */
const wordsOf = (item: Item): string =>
  [
    `${item.appName}/${item.id}`,
    item.updatedAt,
    item.state,
    "version" in item ? item.version : undefined,
    "sizeGb" in item ? item.sizeGb : undefined,
    "attachedMachineId" in item ? item.attachedMachineId : undefined,
  ]
    .map((part) => part ?? "")
    .join(" ");

/** Everything that changed after a time, each once, oldest change first: pages are unordered (rule 4). */
async function readPage(api: Api, kind: "machines" | "volumes", orgSlug: string, updatedAfter: string) {
  const args = { orgSlug, includeDeleted: true, ...(updatedAfter === "" ? {} : { updatedAfter }) };
  const found: Item[] = [];
  const errorRegions = new Set<string>();
  if (kind === "machines") {
    for await (const page of orgMachinePages(api, args)) {
      found.push(...page.machines);
      for (const region of page.errorRegions ?? []) errorRegions.add(region);
    }
  } else for await (const page of orgVolumePages(api, args)) found.push(...page.volumes);
  const sorted = found.toSorted((a, b) => timeOf(a) - timeOf(b));
  const latest = new Map(sorted.map((item) => [`${item.appName}/${item.id}`, item]));
  return {
    items: sorted.filter((item) => latest.get(`${item.appName}/${item.id}`) === item),
    errorRegions: [...errorRegions],
  };
}
